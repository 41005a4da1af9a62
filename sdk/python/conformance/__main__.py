"""Runs files of the common suite with the Python client, asynchronous or blocking.

python sdk/python/conformance [--sync] [--quick] [FILE ...]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from runner import SUITE, load, run_all


def main() -> int:
    """Exits with 1 if any file failed."""
    parser = argparse.ArgumentParser(description="Runs files of the common suite with the Python client.")
    parser.add_argument("--sync", action="store_true", help="with the blocking client")
    parser.add_argument("--quick", action="store_true", help="only files that say `quick: true`")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="all files if none is named")
    options = parser.parse_args()
    paths = options.files or sorted(SUITE.glob("*.yaml"))
    if options.quick:
        paths = [path for path in paths if load(path).get("quick")]
    return 0 if asyncio.run(run_all(paths, options.sync)) else 1


if __name__ == "__main__":
    sys.exit(main())
