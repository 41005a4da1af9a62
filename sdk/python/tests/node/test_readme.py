"""Every example of the README runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from quorate.testing import TestCluster

README = Path(__file__).resolve().parents[2] / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
HEAD = "import quorate\n\nclient = quorate.Client('127.0.0.1:7101')\n"
# What the first examples print.
PRINTED = {0: "too late, it is {'left': 4}\nput stock/pears\nput stock/pears\nput stock/pears\nput stock/counted\n"}

pytestmark = pytest.mark.node


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, quorate_node: TestCluster, tmp_path: Path) -> None:
    text = EXAMPLES[number] if "import quorate\n\n" in EXAMPLES[number] else HEAD + EXAMPLES[number]
    program = tmp_path / "example.py"
    program.write_text(text.replace("127.0.0.1:7101", quorate_node.endpoints))
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stderr
    assert number not in PRINTED or run.stdout == PRINTED[number]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 9
