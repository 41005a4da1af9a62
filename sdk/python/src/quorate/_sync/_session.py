# Written by scripts/generate_sync.py out of quorate._async; do not edit.
"""Sessions: a sign of life that entries, locks, leaderships and places in barriers hang on.

Owns the handle. It is renewed in the background (`_renewals`), and tells of itself only what is certain (`quorate._lease`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorate import types as wire
from quorate._lease import Lease, Loss, SessionState, wall_ahead
from quorate._lists import checked
from quorate._requests import Seconds, compact, end_of, get, path, post, query, seconds, span
from quorate._sync._barrier import Barrier
from quorate._sync._base import Base
from quorate._sync._core import Core
from quorate._sync._io import now, opening
from quorate._sync._places import Places
from quorate._sync._queue import Leadership, Lock, take_place
from quorate._sync._renewals import Renewed
from quorate._values import Place
from quorate.errors import InvalidRequestError, NotFoundError, SessionExpiredError

# A session that is created late is over before it is known: then another one is asked for, so many times.
STARTS_MAX = 3
WHAT = "the id of a session"


class Session:
    """A live session. Leave its `with`, or `end` it, and all that hangs on it goes with it.

    One that is only forgotten is not renewed any more, and ends by its time.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._renewed = places.renewed

    @property
    def id(self) -> str:
        """Its id: the same for all nodes and clients, and never used twice."""
        return self._renewed.id

    @property
    def ttl(self) -> float:
        """Seconds that it lives without a renewal."""
        return self._renewed.lease.ttl

    @property
    def state(self) -> SessionState:
        """What it is at this moment: `alive`, `suspect` or `lost`.

        It is suspect when no renewal was confirmed for half of its time, or since the machine may have been suspended: where its wall
        clock moved on by more than its monotonic one. We may be stopped right after we looked: what must not happen twice takes a guard.
        """
        return self._places.state

    @property
    def loss(self) -> Loss | None:
        """Why it is lost, if it is."""
        return self._renewed.lease.loss(now())

    def check(self) -> None:
        """Nothing while it is known to live.

        Raises:
            SessionLostError: That is not so.
        """
        self._places.check()

    def check_alive(self) -> None:
        """Nothing unless it is lost: suspect is well enough to ask for more.

        Raises:
            SessionLostError: It is lost.
        """
        self._places.check_alive()

    def changed(self, known: SessionState, timeout: Seconds | None = None) -> SessionState:
        """Waits until it is something else than `known`, or the time is over, and tells what it is."""
        until = end_of(timeout, now())
        while True:
            seen = self._renewed.changed.count
            state, changes_at = self.state, self._renewed.lease.changes_at(now())
            if state != known or (until is not None and now() >= until):
                return state
            moments = [moment for moment in (changes_at, until) if moment is not None]
            self._renewed.changed.wait(seen, min(moments) - now() if moments else None)

    def wait_lost(self, timeout: Seconds | None = None) -> Loss | None:
        """Waits until it is lost, and tells why; `None` when the time is over before."""
        until = end_of(timeout, now())
        while self.loss is None and (until is None or now() < until):
            self.changed(self.state, None if until is None else max(until - now(), 0))
        return self.loss

    def end(self) -> None:
        """Ends it, and with it all that hangs on it: entries, locks, leaderships, places. It is lost here in any case.

        In a forked child this does nothing: it is the parent's.
        """
        if self.loss == "forked":
            return
        self._places.on_over("ended")
        try:
            end_session(self._places.core, self.id, None)
        except SessionExpiredError:
            # It had ended by itself, or by an earlier call.
            pass

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        # What is lost may have been taken over with a delay, which an end would cut short.
        if self.loss is None:
            self.end()

    def lock(
        self,
        name: str,
        *,
        wait: Seconds | None = None,
        shared: bool = False,
        slots: int | None = None,
        max_waiters: int | None = None,
        delay: Seconds | None = None,
    ) -> Lock:
        """Acquires the lock of this name; waits as long as it takes, if nothing else is said.

        Locks are granted in the order in which they were asked for. A session has a lock once: what is to exclude one another takes a
        session each. A node that is lost is left for another, where the place in the queue is the same.

            with session.lock("books", wait=5) as lock:
                client.put("books/total", 4, guard=lock)

        Args:
            name: The name of the lock.
            wait: How long to wait, at most; 0 for not at all.
            shared: Beside any number of others that share; exclusive holders exclude all of them.
            slots: A semaphore: so many may hold it at once. All have to say the same number.
            max_waiters: How many may wait for it with us, at most, 1 to 1000; 1000 if nothing is said. Where so many wait already, we do
                not wait behind them.
            delay: How long nobody gets it after our session was not renewed in time, at most a minute.

        Raises:
            LockedError: It was not got in time, or as many wait already as may.
            SessionLostError: The session was lost meanwhile.
        """
        mode = "shared" if shared else None
        request = compact(session=self.id, mode=mode, slots=slots, max_waiters=max_waiters, delay_ms=span(delay, "delay"))
        place, wait_for = Place("lock", name), None if wait is None else seconds(wait, "wait")

        def start() -> Lock:
            return Lock(self, self._places, place, take_place(self._places, place, request, wait_for))

        return opening(start)

    def campaign(self, election: str, *, value: Any = None, wait: Seconds | None = None, delay: Seconds | None = None) -> Leadership:
        """Stands in the election of this name until we lead: as long as it takes, if nothing else is said.

            with session.campaign("scheduler", value="10.0.0.9:8080") as leadership:
                client.put("schedule/last", 1, guard=leadership)

        Args:
            election: The name of the election.
            value: What we say of ourselves once we lead, such as an address.
            wait: How long to stand, at most.
            delay: How long nobody leads after our session was not renewed in time, at most a minute.

        Raises:
            LockedError: Others led all the time.
            SessionLostError: The session was lost meanwhile.
        """
        request = compact(session=self.id, value=value, delay_ms=span(delay, "delay"))
        place, wait_for = Place("election", election), None if wait is None else seconds(wait, "wait")

        def start() -> Leadership:
            return Leadership(self, self._places, place, take_place(self._places, place, request, wait_for))

        return opening(start)

    def barrier(self, name: str, parties: int) -> Barrier:
        """The barrier of this name, which so many sessions open: all of them say the same number."""
        return Barrier(self._places, name, parties)


def end_session(core: Core, session: str, request_id: str | None) -> wire.SessionEnded:
    """Ends a session by its id."""
    call = post(path("/v1/sessions/", session, WHAT), None, method="DELETE", request_id=request_id, about={"session": session})
    return core.fetch(wire.SessionEnded, call)


class SessionById:
    """A session by its id, whoever holds it."""

    def __init__(self, core: Core, id: str) -> None:
        self._core = core
        self.id = id

    def get(self) -> wire.SessionView | None:
        """What it is, and what hangs on it; `None` if there is no such session, or not any more."""
        try:
            return self._core.fetch(wire.SessionView, get(path("/v1/sessions/", self.id, WHAT), about={"session": self.id}))
        except (NotFoundError, SessionExpiredError):
            return None

    def renew(self) -> wire.RenewedAnswer:
        """Lets it live for its time from now."""
        # To renew twice is as good as once.
        call = post(path("/v1/sessions/", self.id, WHAT, "/renew"), None, intent="read", about={"session": self.id})
        call.preference = "leader"
        return self._core.fetch(wire.RenewedAnswer, call)

    def end(self, *, request_id: str | None = None) -> wire.SessionEnded:
        """Ends it with all that hangs on it."""
        return end_session(self._core, self.id, request_id)


class Sessions(Base):
    """The part of a client that has to do with sessions."""

    def session(
        self,
        *,
        ttl: Seconds | None = None,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        timeout: Seconds | None = None,
    ) -> Session:
        """Starts a session that renews itself in the background for as long as it is held.

            with client.session(ttl=5, owner="web-3") as session:
                client.put("services/web-3", "10.0.0.9:8080", session=session)

        Args:
            ttl: How long it lives without a renewal, 100 ms to a day; 10 s if nothing is said. Short: others go on soon after we have
                died. Long: we survive what goes on for long, such as the cluster electing a leader (about a second).
            owner: Whose it is, for people.
            labels: What else is to be known of it; at most 16.
            timeout: Deadline instead of the client's own.
        """

        def start() -> Session:
            return self._start_session(ttl, owner, labels, timeout)

        return opening(start)

    def create_session(
        self,
        *,
        ttl: Seconds | None = None,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> wire.SessionAnswer:
        """Creates a session without keeping it alive: for one that others renew."""
        labels = None if labels is None else checked(labels, Mapping, "labels")
        body = compact(ttl_ms=span(ttl, "ttl"), owner=owner, labels=dict(labels) if labels else None)
        call = post("/v1/sessions", body, request_id=request_id, timeout=timeout)
        return self._core.fetch(wire.SessionAnswer, call)

    def session_by_id(self, id: str) -> SessionById:
        """The session with this id."""
        return SessionById(self._core, id)

    def sessions(self, *, limit: int | None = None, cursor: str | None = None) -> wire.SessionList:
        """A page of all sessions, the oldest first."""
        return self._core.fetch(wire.SessionList, get(query("/v1/sessions", limit=limit, cursor=cursor)))

    def _start_session(self, ttl: Seconds | None, owner: str | None, labels: Mapping[str, str] | None, timeout: Seconds | None) -> Session:
        for start in range(1, STARTS_MAX + 1):
            sent, sent_ahead = now(), wall_ahead()
            try:
                answer = self.create_session(ttl=ttl, owner=owner, labels=labels, timeout=timeout)
            except SessionExpiredError:
                # A retry found that an earlier try, whose answer was lost, had created one, and that it is over.
                if start == STARTS_MAX:
                    raise
                continue
            lease = Lease(answer.ttl_ms / 1000, answer.renew_in_ms / 1000, sent, sent_ahead)
            if lease.loss(now()) is None:
                renewed = Renewed(answer.session, lease)
                self._renewals.add(renewed)
                return Session(Places(self._core, self._renewals, renewed))
        raise InvalidRequestError("each session was over before its creation was answered; give it more time to live")
