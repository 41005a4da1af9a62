"""The examples of the README pass strict type checks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", (HOME / "README.md").read_text(), re.MULTILINE | re.DOTALL)
HEAD = 'import quorate\n\nclient = quorate.Client("127.0.0.1:7101")\n'
SETTINGS = {"include": ["."], "typeCheckingMode": "strict", "extraPaths": [str(HOME / "src")]}


@pytest.mark.parametrize("command", [["pyright", "--project", "."], ["mypy", "--strict", "--no-incremental", "."]])
def test_the_examples_pass_strict_type_checks(command: list[str], tmp_path: Path) -> None:
    for number, text in enumerate(EXAMPLES):
        (tmp_path / f"example_{number}.py").write_text(text if "import quorate\n\n" in text else HEAD + text)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    program = str(Path(sys.executable).with_name(command[0]))
    run = subprocess.run([program, *command[1:]], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
