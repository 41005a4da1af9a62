"""What is generated is what the generators write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]
OPENAPI = HOME.parents[1] / "docs/openapi.json"


def run(script: str, target: Path) -> None:
    subprocess.run([sys.executable, str(HOME / "scripts" / script), str(target)], check=True)


@pytest.mark.skipif(not OPENAPI.exists(), reason="not in the repository")
def test_the_types_are_those_of_the_description(tmp_path: Path) -> None:
    run("generate_types.py", tmp_path / "types.py")
    assert (tmp_path / "types.py").read_text() == (HOME / "src/quorate/types.py").read_text()


def test_the_blocking_client_is_the_asynchronous_one(tmp_path: Path) -> None:
    target = tmp_path / "_sync"
    run("generate_sync.py", target)
    kept = {path.name: path for path in (HOME / "src/quorate/_sync").glob("*.py") if path.name not in ("_io.py", "__init__.py")}
    kept |= {path.name: path for path in (HOME / "tests").glob("*/test_*_sync.py")}
    assert {path.name for path in target.glob("*.py")} == kept.keys()
    for path in target.glob("*.py"):
        assert path.read_text() == kept[path.name].read_text(), path.name
