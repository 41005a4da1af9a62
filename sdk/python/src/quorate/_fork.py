"""What a forked child must not have in common with its parent.

Owns the list of the things that are told in the child, before anything else runs there. A connection that both used would give each the
answers of the other; a lock may be held by a thread that the child does not have; a session is renewed, and what hangs on it is held, by
the parent only.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """Something that is told in a forked child that it is there."""

    def forked(self) -> None:
        """This is a child now. Nothing else runs; takes no lock, sends nothing, and must not fail."""


_told: weakref.WeakSet[Forked] = weakref.WeakSet()


def tell_in_child(thing: Forked) -> None:
    """From now on this is told in each forked child, for as long as somebody else holds it."""
    _told.add(thing)


def _in_child() -> None:
    for thing in list(_told):
        thing.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
