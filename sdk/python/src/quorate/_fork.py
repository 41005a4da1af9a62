"""What a forked child must not have in common with its parent.

Owns the list of the things that are told in the child, before anything else runs there. A connection that both used would give each the
answers of the other; a lock may be held by a thread that the child does not have; a session is renewed, and what hangs on it is held, by
the parent only.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_told: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()


def tell_in_child(thing: T, tell: Callable[[T], None]) -> None:
    """From now on `tell` is called with this thing in each forked child, for as long as somebody else holds it.

    Nothing else runs there at that moment. It takes no lock, sends nothing, and must not fail.
    """
    _told[thing] = tell


def _in_child() -> None:
    for thing, tell in list(_told.items()):
        tell(thing)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
