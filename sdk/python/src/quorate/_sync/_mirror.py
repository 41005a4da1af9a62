# Written by scripts/generate_sync.py out of quorate._async; do not edit.
"""A prefix kept in memory: listed once, then followed by a watch.

Owns the work that follows, and what is said of how far it is. What is kept, and how it is found, is `quorate._mirror_state`'s.
"""

from __future__ import annotations

import random
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from quorate import types as wire
from quorate._entry import AnyEntry
from quorate._fork import tell_in_child
from quorate._lists import listed
from quorate._mirror_state import Entries
from quorate._names import Key, name_text, shown
from quorate._requests import Part, Seconds, get, milliseconds, part_query, query, seconds
from quorate._sync._base import Base
from quorate._sync._core import Core
from quorate._sync._io import Signal, now, opening, spawn
from quorate._sync._watch import Follower
from quorate._values import MirrorChange, Restarted, Resynced, Synced
from quorate.errors import BehindError, InvalidRequestError, QuorateError

# How often a silent node says how far it is, where nothing else is asked for: so long a `sync` may take while nothing changes below the
# prefix. The shortest that nodes take.
HEARTBEAT_DEFAULT = 0.5
# Changes that a slow reader may be behind.
CHANGES_KEPT = 1_024
# Pauses before a watch that failed is begun anew.
AGAIN_MIN = 0.05
AGAIN_MAX = 5.0


class News:
    """What a listener of a mirror was told and has not taken yet; for the mirror."""

    def __init__(self) -> None:
        self.signal = Signal()
        self.waiting: deque[MirrorChange | Resynced] = deque()
        self.is_closed = False

    def tell(self, change: MirrorChange | Resynced) -> None:
        """One more."""
        if isinstance(change, Resynced) or len(self.waiting) >= CHANGES_KEPT:
            self.waiting.clear()
            change = Resynced(change.revision)
        self.waiting.append(change)
        self.signal.notify()

    def close(self) -> None:
        """There is nothing more to come."""
        self.is_closed = True
        self.signal.notify()


class MirrorChanges:
    """What happens to a mirror from now on: iterate over it. Ends with the mirror, with its `with`, or when it is closed."""

    def __init__(self, news: News) -> None:
        # The mirror does not keep it: nobody is told any more once this has gone.
        self._news = news

    def next(self) -> MirrorChange | Resynced:
        """The next change, which the mirror shows by then.

        Raises:
            InvalidRequestError: The mirror is closed, or this is.
        """
        while True:
            seen = self._news.signal.count
            if self._news.waiting:
                return self._news.waiting.popleft()
            if self._news.is_closed:
                raise InvalidRequestError("the changes of the mirror are closed, or it is")
            self._news.signal.wait(seen)

    def close(self) -> None:
        """Hears of no more. A `next` that is under way fails."""
        self._news.waiting.clear()
        self._news.close()

    def __enter__(self) -> MirrorChanges:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[MirrorChange | Resynced]:
        return self

    def __next__(self) -> MirrorChange | Resynced:
        while True:
            seen = self._news.signal.count
            if self._news.waiting:
                return self._news.waiting.popleft()
            if self._news.is_closed:
                raise StopIteration
            self._news.signal.wait(seen)


class Mirror:
    """All entries below a prefix, in memory, kept as they are in the cluster until it is closed.

    Reads are answered at once, from what this process knows: they may be a moment old (`staleness`), but each shows whole transactions
    only, and never goes back in time. Who needs to see every write that was acknowledged before asks for `sync` first.
    """

    def __init__(self, core: Core, prefix: Key, fields: tuple[str, ...], part: Part | None, heartbeat: float) -> None:
        self._core = core
        self._part = part
        self._fields = fields
        self._heartbeat = heartbeat
        self._lock = threading.Lock()
        self._entries = Entries(fields, ())
        self._revision = 0
        self._progress = Signal()
        self._heard = now()
        self._trouble: QuorateError | None = None
        self._listeners: weakref.WeakSet[News] = weakref.WeakSet()
        self._watch: Follower | None = None
        self.prefix = name_text(prefix)
        self.is_closed = False
        self._is_forked = False
        tell_in_child(self, Mirror._forked)

    def _forked(self) -> None:
        """In a forked child: nobody follows here, a change may be half done, and a thread that is not here may hold the lock."""
        self._lock, self._progress = threading.Lock(), Signal()
        self._is_forked = self.is_closed = True
        # Not by closing the watch: its connection may not have heard yet that it is the parent's.
        for listener in list(self._listeners):
            listener.is_closed = True

    def get(self, key: Key) -> AnyEntry | None:
        """An entry."""
        self._check_here()
        with self._lock:
            return self._entries.get(key)

    def list(self, prefix: Key = "") -> tuple[AnyEntry, ...]:
        """The entries whose keys begin with `prefix`, by key, all of one moment."""
        self._check_here()
        with self._lock:
            return self._entries.list(prefix)

    def find_by(self, field: str, value: Any) -> tuple[AnyEntry, ...]:
        """The entries whose field has this value, by key: numbers are compared by value, and an array has each of its elements.

        Raises:
            InvalidRequestError: `index_by` did not name the field.
        """
        self._check_here()
        with self._lock:
            found = self._entries.find(field, value)
        if found is None:
            raise InvalidRequestError(f"the mirror of `{shown(self.prefix)}` has no index by `{field}`")
        return found

    def __len__(self) -> int:
        self._check_here()
        with self._lock:
            return len(self._entries.entries)

    @property
    def revision(self) -> int:
        """The revision up to which it shows every change."""
        return self._revision

    @property
    def staleness(self) -> float:
        """Seconds since the cluster last said that this is how things are: mostly less than the heartbeat."""
        return now() - self._heard

    @property
    def trouble(self) -> QuorateError | None:
        """Why it does not follow at the moment; `None` while it does. It keeps trying, and answers from what it has."""
        return self._trouble

    def sync(self) -> int:
        """Asks the cluster which revision it is at, and waits until the mirror is there.

        What is read after this is as fresh as a linearizable read.

        Raises:
            BehindError: That takes longer than the deadline of the client.
        """
        self._check_here()
        asked = self._core.fetch_json(get(query("/v1/kv", prefix=self.prefix, limit=1, keys_only=True)))
        return self.wait_for(int(asked["revision"]))

    def wait_for(self, revision: int) -> int:
        """Waits until the mirror shows this revision, such as that of a write of one's own; the one that it shows.

        Raises:
            BehindError: That takes longer than the deadline of the client.
        """
        self._check_here()
        until = now() + self._core.settings.timeout
        while True:
            seen = self._progress.count
            if self._revision >= revision:
                return self._revision
            if now() >= until or self.is_closed:
                raise BehindError(self.prefix, revision, self._revision) from self._trouble
            self._progress.wait(seen, until - now())

    def changes(self) -> MirrorChanges:
        """What happens to it from now on. Who is more than some hundred changes behind is told `Resynced` instead of them.

        Close it, or use it in a `with`, when it is not needed any more.
        """
        news = News()
        if self.is_closed:
            news.close()
        self._listeners.add(news)
        return MirrorChanges(news)

    def close(self) -> None:
        """Follows no more."""
        self.is_closed = True
        if self._watch is not None:
            self._watch.close()
        self._progress.notify()
        for listener in list(self._listeners):
            listener.close()

    def __enter__(self) -> Mirror:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def start(self) -> None:
        """Fills it, and follows from then on; for the client."""
        self._fill()
        spawn(self._follow)

    def _fill(self) -> None:
        """Begins a new watch, and exchanges everything for what it brings."""
        target = query(
            "/v1/watch", prefix=self.prefix, **part_query(self._part), initial=True, heartbeat_ms=milliseconds(self._heartbeat, "heartbeat")
        )
        watch = Follower(self._core, target, is_initial=True, from_revision=None, heartbeat=self._heartbeat, patience=None)
        self._watch = watch
        watch.connect(self._core.settings.timeout)
        entries: list[AnyEntry] = []
        while True:
            event = watch.next()
            if isinstance(event, Synced):
                break
            if isinstance(event, Restarted):
                entries.clear()
            elif event.entry is not None:
                entries.append(event.entry)
        with self._lock:
            self._entries = Entries(self._fields, entries)
        self._reached(watch.revision or 0)

    def _follow(self) -> None:
        """Follows until it is closed. What cannot be followed any more is filled anew."""
        pause = AGAIN_MIN
        is_filled = True
        while not self.is_closed:
            try:
                if not is_filled:
                    self._fill()
                    self._tell(Resynced(self._revision))
                is_filled, pause = True, AGAIN_MIN
                self._follow_watch()
            except QuorateError as error:
                if self.is_closed:
                    return
                self._trouble, is_filled = error, False
                seen = self._progress.count
                self._progress.wait(seen, pause * random.uniform(0.5, 1.0))
                pause = min(pause * 2, AGAIN_MAX)

    def _follow_watch(self) -> None:
        watch = self._watch
        assert watch is not None
        events: list[wire.WatchEvent] = []
        while not self.is_closed:
            event = watch.step()
            if isinstance(event, wire.WatchEvent):
                events.append(event)
            # The rest of a revision is at hand: all of it takes effect at once.
            if not watch.has_more:
                self._apply(events)
                events = []
                self._reached(watch.revision or 0)

    def _apply(self, events: list[wire.WatchEvent]) -> None:
        changes: list[MirrorChange] = []
        with self._lock:
            for event in events:
                before = self._entries.set(event.key, event.entry)
                changes.append(MirrorChange(event.key, event.entry, before, event.revision))
        for change in changes:
            self._tell(change)

    def _tell(self, change: MirrorChange | Resynced) -> None:
        for listener in list(self._listeners):
            if not listener.is_closed:
                listener.tell(change)

    def _check_here(self) -> None:
        if self._is_forked:
            detail = f"the mirror of `{shown(self.prefix)}` is of the process that this one was forked from: make a new one"
            raise InvalidRequestError(detail)

    def _reached(self, revision: int) -> None:
        self._heard, self._trouble = now(), None
        if revision != self._revision:
            self._revision = revision
            self._progress.notify()


class Mirrors(Base):
    """The part of a client that mirrors."""

    def mirror(
        self,
        prefix: Key = "",
        *,
        index_by: str | Iterable[str] = (),
        part: Part | None = None,
        heartbeat: Seconds = HEARTBEAT_DEFAULT,
    ) -> Mirror:
        """Keeps all entries whose keys begin with `prefix` in memory.

            with client.mirror("users/", index_by="email") as users:
                print(len(users), users.find_by("email", "ann@example.org"))

        Args:
            prefix: Of the keys; all there are for an empty one.
            index_by: Fields by which `find_by` finds entries: dotted paths or JSON pointers.
            part: Only the entries whose keys are in one of several parts, `(index, of)`, as `watch` has it.
            heartbeat: How often a node says how far it is while nothing happens below the prefix: 0.5 to 60 s. A `sync` may take as long.
        """
        fields = (index_by,) if isinstance(index_by, str) else tuple(listed(index_by, str, "index_by"))

        def begin() -> Mirror:
            mirror = Mirror(self._core, prefix, fields, part, seconds(heartbeat, "heartbeat"))
            mirror.start()
            return mirror

        return opening(begin)
