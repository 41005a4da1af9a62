# Written by scripts/generate_sync.py out of quorate._async; do not edit.
"""Watches: the changes of some keys as they happen, over whatever happens to nodes and connections.

Owns where a watch is: which revisions were handed out whole. Whatever breaks, it goes on at another node right behind them, so nobody is
shown an event twice, out of order, or a part of a transaction.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, Literal, TypeVar, overload

from quorate import _codec
from quorate import types as wire
from quorate._convert import to_json
from quorate._messages import BadMessageError, Message, Messages
from quorate._names import Key
from quorate._requests import Part, Seconds, get, milliseconds, part_query, query, seconds
from quorate._sync._base import Base
from quorate._sync._core import Core
from quorate._sync._io import now, opening
from quorate._sync._transport import Body
from quorate._values import BrokenStreamError, Restarted, Synced
from quorate.conditions import Criteria, criteria_list
from quorate.errors import ProtocolError, QuorateError, rejected

WATCH_CONTENT_TYPE = "text/event-stream"
# How often a silent node says that it is there, where nothing else is asked for.
HEARTBEAT_DEFAULT = 5.0
# A stream that is silent for so many heartbeats is dead.
SILENT_HEARTBEATS_MAX = 3


E = TypeVar("E", bound="wire.WatchEvent | Synced | Restarted")


class Events:
    """A stream of server-sent events."""

    def __init__(self, node: int, body: Body) -> None:
        self.node = node
        self.revision = body.head.revision
        self._body = body
        self._messages = Messages()

    def next(self, patience: float) -> Message:
        """The next event.

        Raises:
            BrokenStreamError: The stream ended.
        """
        while True:
            try:
                message = self._messages.next()
            except BadMessageError as error:
                raise BrokenStreamError(str(error)) from error
            if message is not None:
                return message
            piece = self._body.next(patience)
            if piece is None:
                raise BrokenStreamError("the stream ended")
            self._messages.feed(piece)

    def close(self) -> None:
        """Ends it. A `next` that is under way fails."""
        self._body.close()


def stream_end(data: str) -> QuorateError | None:
    """Why it makes no sense to go on after the message with which a node ends a stream; `None` where another node may serve it."""
    end = _codec.decode(wire.WatchEnd, data)
    statuses = {"compacted": 410, "permission_denied": 403, "unauthenticated": 401, "too_dear": 413}
    if end.code not in statuses:
        return None
    retry = "after_reading" if end.code == "compacted" else "never"
    problem = wire.Problem(
        applied="no",
        code=end.code,
        detail=end.detail,
        request_id="",
        retry=retry,
        status=statuses[end.code],
        title=end.code.replace("_", " ").capitalize(),
        type=f"/errors/{end.code}",
        oldest_revision=end.oldest_revision,
    )
    return rejected(problem)


class Follower:
    """What a watch and a mirror are made of: goes on by itself, at another node where it has to."""

    def __init__(
        self,
        core: Core,
        target: str,
        *,
        is_initial: bool,
        from_revision: int | None,
        heartbeat: float,
        patience: float | None,
    ) -> None:
        self._core = core
        self._target = target
        self._heartbeat = heartbeat
        self._patience = patience
        # Everything up to this revision was handed out, or is ready to be.
        self._position: int | None = None
        self._from_revision = from_revision
        self._events: Events | None = None
        # Events of a revision of which more may come.
        self._incomplete: list[wire.WatchEvent] = []
        self._ready: deque[wire.WatchEvent | Synced | Restarted] = deque()
        self._is_synced = not is_initial
        # Whether initial entries were handed out that a new stream would bring again.
        self._has_initial = False
        self._is_closed = False

    @property
    def revision(self) -> int | None:
        """The revision up to which everything was handed out, or will be next; `None` before all initial entries came."""
        return self._position

    @property
    def has_more(self) -> bool:
        """Whether something is at hand: the rest of a revision is, once its first event was handed out."""
        return bool(self._ready)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._is_closed

    def next(self) -> wire.WatchEvent | Synced | Restarted:
        """The next event."""
        while True:
            event = self.step()
            if event is not None:
                return event

    def step(self) -> wire.WatchEvent | Synced | Restarted | None:
        """The next event; `None` where something else happened."""
        if self._ready:
            return self._ready.popleft()
        if self._events is None:
            self.connect(self._patience)
            return None
        events = self._events
        try:
            message = events.next(self._heartbeat * SILENT_HEARTBEATS_MAX)
        except BrokenStreamError as error:
            self._leave(events)
            if self._is_closed:
                raise self._core.strange(events.node, "the watch is closed") from error
            return None
        self._take(events, message)
        return self._ready.popleft() if self._ready else None

    def connect(self, patience: float | None) -> None:
        """Opens a stream that goes on from where this is."""
        call = get(self._target, preference="any")
        if self._position is not None and self._is_synced:
            # The first stream begins as its URL says.
            call.headers.append(("Last-Event-ID", str(self._position)))
        until = None if patience is None else now() + patience
        node, body = self._core.open(call, WATCH_CONTENT_TYPE, until)
        events = Events(node, body)
        if self._is_closed:
            events.close()
            raise self._core.strange(node, "the watch is closed")
        if not self._is_synced and self._has_initial:
            self._has_initial = False
            self._ready.append(Restarted())
        if self._is_synced and self._position is None:
            self._position = events.revision if self._from_revision is None else max(self._from_revision - 1, 0)
        self._events = events

    def close(self) -> None:
        """Ends it. A `next` that is under way fails."""
        self._is_closed = True
        events, self._events = self._events, None
        if events is not None:
            events.close()

    def _leave(self, events: Events) -> None:
        """Leaves a stream that is of no more use. What did not come whole comes again."""
        events.close()
        self._events = None
        self._incomplete.clear()
        if not self._is_closed:
            self._core.node_failed(events.node)

    def _take(self, events: Events, message: Message) -> None:
        try:
            if message.name in ("put", "delete"):
                self._take_event(_codec.decode(wire.WatchEvent, message.data), message.id is not None)
            elif message.name == "synced":
                self._position, self._is_synced = int(json.loads(message.data)["revision"]), True
                self._ready.append(Synced(self._position))
            elif message.name == "progress":
                self._position = max(self._position or 0, int(json.loads(message.data)["revision"]))
            elif message.name == "end":
                self._leave(events)
                error = stream_end(message.data)
                if error is not None:
                    raise error
            # Others are of a later version.
        except (ValueError, KeyError) as error:
            if isinstance(error, QuorateError):
                raise
            # What cannot be read ends the stream, not the watch; the caller is told.
            self._leave(events)
            raise self._bad(events, message, error) from error

    def _take_event(self, event: wire.WatchEvent, is_last: bool) -> None:
        if event.initial:
            self._has_initial = True
            self._ready.append(event)
            return
        self._incomplete.append(event)
        if is_last:
            self._ready.extend(self._incomplete)
            self._incomplete.clear()
            self._position = event.revision

    def _bad(self, events: Events, message: Message, error: Exception) -> ProtocolError:
        return self._core.strange(events.node, f"the event `{message.name}` is not what it should be: {error}")


class Watch(Generic[E]):
    """A watch that goes on by itself, at another node where it has to. Iterate over it, or ask for the `next` event."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    @property
    def revision(self) -> int | None:
        """The revision up to which everything was handed out, or will be next.

        A new watch `from_revision` the one after it goes on where this one is; `None` before all initial entries came.
        """
        return self._follower.revision

    @property
    def has_more(self) -> bool:
        """Whether `next` has something at hand: the rest of a revision is, once its first event was handed out."""
        return self._follower.has_more

    def next(self) -> E:
        """The next event. Breaks are gone over, so this fails only where it makes no sense to go on.

        Raises:
            CompactedError: What follows is lost to this watch; a new one with `initial` is the way out.
            UnavailableError: `patience` is at its end.
        """
        return self._follower.next()  # pyright: ignore[reportReturnType] - other kinds occur only with `initial`

    def close(self) -> None:
        """Ends it. A `next` that is under way fails."""
        self._follower.close()

    def __enter__(self) -> Watch[E]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[E]:
        return self

    def __next__(self) -> E:
        if self._follower.is_closed:
            raise StopIteration
        return self.next()


class Watches(Base):
    """The part of a client that watches."""

    @overload
    def watch(
        self,
        prefix: Key | None = None,
        *,
        key: Key | None = None,
        start: Key | None = None,
        end: Key | None = None,
        initial: Literal[False] = False,
        from_revision: int | None = None,
        where: Criteria | None = None,
        part: Part | None = None,
        events: Literal["put", "delete"] | None = None,
        prev: bool = False,
        keys_only: bool = False,
        local: bool = False,
        heartbeat: Seconds = HEARTBEAT_DEFAULT,
        patience: Seconds | None = None,
    ) -> Watch[wire.WatchEvent]: ...

    @overload
    def watch(
        self,
        prefix: Key | None = None,
        *,
        key: Key | None = None,
        start: Key | None = None,
        end: Key | None = None,
        initial: bool,
        from_revision: int | None = None,
        where: Criteria | None = None,
        part: Part | None = None,
        events: Literal["put", "delete"] | None = None,
        prev: bool = False,
        keys_only: bool = False,
        local: bool = False,
        heartbeat: Seconds = HEARTBEAT_DEFAULT,
        patience: Seconds | None = None,
    ) -> Watch[wire.WatchEvent | Synced | Restarted]: ...

    def watch(
        self,
        prefix: Key | None = None,
        *,
        key: Key | None = None,
        start: Key | None = None,
        end: Key | None = None,
        initial: bool = False,
        from_revision: int | None = None,
        where: Criteria | None = None,
        part: Part | None = None,
        events: Literal["put", "delete"] | None = None,
        prev: bool = False,
        keys_only: bool = False,
        local: bool = False,
        heartbeat: Seconds = HEARTBEAT_DEFAULT,
        patience: Seconds | None = None,
    ) -> Any:
        """Watches the keys that begin with `prefix`, all keys for an empty one; or one key; or those from `start` to `end`.

            with client.watch("settings/") as watch:
                for event in watch:
                    print(event.type, event.key)

        Without more it shows what changes from now on: from when it is opened, nothing is missed.

        Args:
            prefix: Of the keys.
            key: Only this key.
            start: The first key of a range.
            end: The end of a range, exclusive; none for no end.
            initial: First all entries as they are, then `Synced`, then what changes.
            from_revision: From this revision on.
            where: Only changes of entries of which this holds, after the change, or before it where they are gone.
            part: Only changes of keys of one of several parts, `(index, of)`: what workers that share a prefix watch, each its own. Which
                part a key is in never changes, and is the same for listings.
            events: Only events of this kind.
            prev: With the entry as it was before each change.
            keys_only: Without values.
            local: Begins with whatever the asked node has, maybe stale.
            heartbeat: How often a node says that it is there while nothing happens: 0.5 to 60 s. One that is silent for three times as
                long is left for another.
            patience: For how long to try to go on after a break before `next` fails; without it for ever. The first stream has the
                deadline of the client in any case.

        Raises:
            CompactedError: `from_revision` can no longer be read.
        """
        criteria = criteria_list(where, "where")
        target = query(
            "/v1/watch",
            key=key,
            prefix="" if prefix is None and key is None and start is None else prefix,
            start=start,
            end=end,
            where=None if criteria is None else to_json(criteria).decode(),
            **part_query(part),
            events=events,
            prev=prev,
            keys_only=keys_only,
            consistency="local" if local else None,
            initial=initial,
            from_=from_revision,
            heartbeat_ms=milliseconds(heartbeat, "heartbeat"),
        )
        core = self._core

        def begin() -> Watch[Any]:
            follower = Follower(
                core,
                target,
                is_initial=initial,
                from_revision=from_revision,
                heartbeat=seconds(heartbeat, "heartbeat"),
                patience=None if patience is None else seconds(patience, "patience"),
            )
            follower.connect(core.settings.timeout)
            return Watch(follower)

        return opening(begin)
