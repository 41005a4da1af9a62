"""Writes the blocking client `src/quorate/_sync` out of the asynchronous one, `src/quorate/_async`.

The two differ in `_io.py`, which is written by hand in both. All else is the same text without `async` and `await`.

    python scripts/generate_sync.py [DIRECTORY]
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src/quorate/_async"
TARGET = HERE.parent / "src/quorate/_sync"
# Tests of both clients, written once.
TESTS = [HERE.parent / "tests" / f"{name}_async.py" for name in ("unit/test_calls", "unit/test_handles", "node/test_node")]
BY_HAND = {"_io.py", "__init__.py"}

# One level of brackets within brackets.
INNER = r"((?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*)"
RULES = [
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bOpening\[" + INNER + r"\]", r"\1"),
    (r"\bAwaitable\[" + INNER + r"\]", r"\1"),
    (r"\bCoroutine\[Any, Any, " + INNER + r"\]", r"\1"),
    (r"\bAsync(Iterator|Iterable)\b", r"\1"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\bAsync([A-Z])", r"\1"),
    (r"\b_async\b", "_sync"),
    (r"\basync_client\b", "client"),
]
# What is only needed for types that are no more.
UNUSED = re.compile(r"^(from collections\.abc import .*|from quorate\._sync\._io import .*)$", re.MULTILINE)


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    target.mkdir(exist_ok=True)
    written = [generate(source, target / source.name) for source in sorted(SOURCE.glob("*.py")) if source.name not in BY_HAND]
    for source in TESTS:
        name = source.name.replace("_async", "_sync")
        written.append(generate(source, source.with_name(name) if target == TARGET else target / name))
    for verb in (["check", "--fix-only", "--quiet", "--select", "F401,I"], ["format", "--quiet"]):
        command = [
            str(Path(sys.executable).with_name("ruff")),
            verb[0],
            "--config",
            str(HERE.parent / "pyproject.toml"),
        ]
        subprocess.run([*command, *verb[1:], *map(str, written)], check=True)
    if target == TARGET:
        for stale in set(target.glob("*.py")) - set(written) - {target / name for name in BY_HAND}:
            stale.unlink()


def generate(source: Path, path: Path) -> Path:
    text = transform(source.read_text())
    if source in TESTS:
        text = text.replace("out of quorate._async", f"out of {source.name}")
    path.write_text(text)
    return path


def transform(text: str) -> str:
    """The blocking form of a module."""
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    text = UNUSED.sub(lambda line: without(line.group(0), ("Opening", "Awaitable", "Coroutine")), text)
    return f"# Written by scripts/generate_sync.py out of quorate._async; do not edit.\n{text}"


def without(line: str, names: tuple[str, ...]) -> str:
    """An import line without these names."""
    head, _, imported = line.partition(" import ")
    kept = [name for name in imported.split(", ") if name not in names]
    return f"{head} import {', '.join(kept)}" if kept else ""


if __name__ == "__main__":
    main()
