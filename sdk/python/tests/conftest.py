"""Runs tests that are coroutines, and finds the program of a node."""

from __future__ import annotations

import asyncio
import inspect
import os
from pathlib import Path
from typing import Any

import pytest

BUILT = Path(__file__).resolve().parents[3] / "target/debug/quorate-node"


def pytest_configure(config: pytest.Config) -> None:
    if "QUORATE_NODE" not in os.environ and BUILT.exists():
        os.environ["QUORATE_NODE"] = str(BUILT)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
