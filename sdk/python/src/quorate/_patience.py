"""How long a write may be repeated under one request id.

Owns the reckoning, for single calls, streams and everything else that sends an id again. A machine that sleeps, or is stopped to be copied,
may stop its monotonic clock with it, and a wall clock may be set back: the nodes forget meanwhile. So the time is over when either of the
two says so.
"""

from __future__ import annotations

import time

# Longest time in which a write is repeated under one request id. Nodes remember an id for at least 15 minutes, and would apply it a
# second time after that; what is still on its way, and clocks that differ, have the rest.
WRITE_PATIENCE_MAX = 5 * 60.0


class Patience:
    """The time that has passed since the id was made, in seconds."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._began_wall = time.time()

    def left(self) -> float:
        """Seconds for which the id may still be sent again: not at all from 0 on."""
        elapsed = max(time.monotonic() - self._began, time.time() - self._began_wall)
        return WRITE_PATIENCE_MAX - elapsed
