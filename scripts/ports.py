#!/usr/bin/env python3
"""Ports for what the tools of this repository start: the choice of the Python client, which cannot be imported without its dependencies.

usage: ports.py COUNT    prints so many ports, and holds them until nobody can read more of what it prints
"""

import importlib.util
import select
import sys
from pathlib import Path

_FILE = Path(__file__).resolve().parent.parent / "sdk/python/src/quorate/_ports.py"
_SPEC = importlib.util.spec_from_file_location("quorate_ports", _FILE)
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
Ports = _MODULE.Ports


def main(arguments):
    if len(arguments) != 1 or not arguments[0].isdecimal():
        raise SystemExit(__doc__)
    ports = Ports(int(arguments[0]))
    print(*ports.numbers, flush=True)
    # Of a pipe, poll tells that its reader is gone without being asked for it.
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    poll.poll()


if __name__ == "__main__":
    main(sys.argv[1:])
