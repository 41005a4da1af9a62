# Written by scripts/generate_sync.py out of quorate._async; do not edit.
"""Observing an election: who leads, each change in order, over whatever happens to nodes and connections.

Owns where an observation is. Whatever breaks, it goes on at another node right behind the last change that was handed out.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator

from quorate import _codec
from quorate import types as wire
from quorate._messages import Message
from quorate._names import shown
from quorate._requests import get, query
from quorate._sync._core import Core
from quorate._sync._io import now
from quorate._sync._watch import WATCH_CONTENT_TYPE, Events, stream_end
from quorate._values import BrokenStreamError, Leads
from quorate.errors import CompactedError, QuorateError

# How often a silent node says that it is there, and after how many of these it is dead.
HEARTBEAT = 2.0
SILENT_HEARTBEATS_MAX = 3


class Observation:
    """An observation that goes on by itself, at another node where it has to. Iterate over it."""

    def __init__(self, core: Core, election: str, path: str) -> None:
        self._core = core
        self._election = election
        self._target = query(path, heartbeat_ms=round(HEARTBEAT * 1000))
        # Every change up to this revision was handed out, or is ready to be.
        self._position: int | None = None
        self._events: Events | None = None
        self._ready: deque[Leads] = deque()
        self._is_closed = False

    def next(self) -> Leads:
        """Who leads: at first as it is, then after each change. Breaks are gone over.

        Raises:
            CompactedError: Changes were missed that can no longer be read; called again it begins anew, with who leads by then.
        """
        while not self._ready:
            if self._events is None:
                self.connect(None)
            self._step()
        return self._ready.popleft()

    def connect(self, patience: float | None) -> None:
        """Opens a stream that goes on from where this is; for the client."""
        call = get(self._target, preference="any")
        if self._position is not None:
            call.headers.append(("Last-Event-ID", str(self._position)))
        try:
            until = None if patience is None else now() + patience
            node, body = self._core.open(call, WATCH_CONTENT_TYPE, until)
        except CompactedError:
            self._position = None
            raise
        self._events = Events(node, body)

    def close(self) -> None:
        """Ends it. A `next` that is under way fails."""
        self._is_closed = True
        events, self._events = self._events, None
        if events is not None:
            events.close()

    def __enter__(self) -> Observation:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Leads]:
        return self

    def __next__(self) -> Leads:
        if self._is_closed:
            raise StopIteration
        return self.next()

    def _step(self) -> None:
        events = self._events
        assert events is not None
        try:
            message = events.next(HEARTBEAT * SILENT_HEARTBEATS_MAX)
        except BrokenStreamError as error:
            if self._is_closed:
                raise self._core.strange(events.node, "the observation is closed") from error
            self._leave(events)
            return
        try:
            self._take(events, message)
        except CompactedError:
            self._position = None
            raise
        except (ValueError, KeyError) as error:
            if isinstance(error, QuorateError):
                raise
            self._leave(events)
            detail = f"the event `{message.name}` of an election is not what it should be: {error}"
            raise self._core.strange(events.node, detail) from error

    def _leave(self, events: Events) -> None:
        events.close()
        self._events = None
        self._core.node_failed(events.node)

    def _check(self, election: str) -> None:
        """Refuses what is told of another election: a proxy may have changed the path."""
        if election != self._election:
            raise ValueError(f"it is about `{shown(election)}`, not `{shown(self._election)}`")

    def _take(self, events: Events, message: Message) -> None:
        if message.name == "leader":
            leader = _codec.decode(wire.LeaderEvent, message.data)
            self._check(leader.election)
            self._ready.append(Leads(leader.revision, leader))
        elif message.name == "vacant":
            vacant = json.loads(message.data)
            self._check(vacant["election"])
            self._ready.append(Leads(int(vacant["revision"]), None))
        elif message.name == "progress":
            self._reached(int(json.loads(message.data)["revision"]))
        elif message.name == "end":
            self._leave(events)
            error = stream_end(message.data)
            if error is not None:
                raise error
        # The state at the begin is that of a later revision than its change.
        if message.id is not None and message.id.isdigit():
            self._reached(int(message.id))

    def _reached(self, revision: int) -> None:
        self._position = max(self._position or 0, revision)
