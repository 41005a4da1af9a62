# Written by scripts/generate_sync.py out of quorate._async; do not edit.
"""The renewals of all sessions of one client: background work that lives as long as there is one.

Owns when it wakes, and that sessions which are due about the same time go in one request. When a session is due, and what an answer
means for it, is its lease's. Holds no session: one that nobody else holds is not renewed any more.
"""

from __future__ import annotations

import threading
import weakref

from quorate import types as wire
from quorate._fork import tell_in_child
from quorate._lease import Lease
from quorate._requests import post
from quorate._sync._core import Core
from quorate._sync._io import Signal, Task, now, spawn
from quorate.errors import QuorateError

# Sessions of one request.
SESSIONS_RENEWED_MAX = 1_000
# At least so often they are looked at: waits stand still while the machine is suspended, and what is due by then is seen a moment
# after it.
LOOK_EVERY = 1.0


class Renewed:
    """What is known of a session that is renewed."""

    def __init__(self, id: str, lease: Lease) -> None:
        self.id = id
        self.lease = lease
        # Told after each change of the lease.
        self.changed = Signal()
        tell_in_child(self, Renewed._forked)

    def _forked(self) -> None:
        """In a forked child: nobody renews it here, and what hangs on it is held by the parent."""
        self.lease.on_over("forked", now())
        self.changed = Signal()


class Renewals:
    """The sessions of a client that are renewed."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._members: list[weakref.ref[Renewed]] = []
        self._task: Task | None = None
        self._news = Signal()
        tell_in_child(self, Renewals._forked)

    def _forked(self) -> None:
        """In a forked child: the work in the background is the parent's, and so are the sessions."""
        self._lock = threading.Lock()
        self._members.clear()
        self._task, self._news = None, Signal()

    def add(self, session: Renewed) -> None:
        """Renews this session from now on."""
        with self._lock:
            self._members.append(weakref.ref(session))
            is_running = self._task is not None and not self._task.is_done
            if not is_running:
                self._task = spawn(self._run)
        self._news.notify()

    def look(self) -> None:
        """Looks at the sessions again: one is over."""
        self._news.notify()

    def close(self) -> None:
        """Renews nothing any more."""
        with self._lock:
            self._members.clear()
            task, self._task = self._task, None
        self._news.notify()
        if task is not None:
            task.cancel()

    def _run(self) -> None:
        while True:
            seen = self._news.count
            live = self._live()
            if not live:
                return
            due, wake_at = choose(live, now())
            del live
            for start in range(0, len(due), SESSIONS_RENEWED_MAX):
                self._renew(due[start : start + SESSIONS_RENEWED_MAX])
            if not due:
                # Not to keep alive until then what nobody else holds.
                self._news.wait(seen, LOOK_EVERY if wake_at is None else min(wake_at - now(), LOOK_EVERY))

    def _live(self) -> list[Renewed]:
        """The sessions that are not lost; without any the work ends, under the lock, so that the next session begins it anew."""
        with self._lock:
            held = [session for session in (member() for member in self._members) if session is not None]
            live = [session for session in held if session.lease.loss(now()) is None]
            self._members = [weakref.ref(session) for session in live]
            if not live:
                self._task = None
        for session in held:
            if session not in live:
                session.changed.notify()
        return live

    def _renew(self, batch: list[Renewed]) -> None:
        """One request. Whatever comes of it, all its sessions hear."""
        sent = now()
        try:
            renewed, expired = self._ask([session.id for session in batch], min(one.lease.round() for one in batch))
        except QuorateError:
            renewed, expired = set[str](), set[str]()
        for session in batch:
            if session.id in expired:
                session.lease.on_over("expired", now())
            elif session.id in renewed:
                session.lease.on_confirmed(sent, now())
            else:
                # Also one that the answer does not name: of that nothing is known.
                session.lease.on_failed(now())
            session.changed.notify()

    def _ask(self, ids: list[str], round_time: float) -> tuple[set[str], set[str]]:
        """Renews these once, and says which live and which are over; half of the time for one node, so that another can be asked."""
        # To renew twice is as good as once.
        call = post("/v1/sessions/renew", {"sessions": ids}, intent="read", timeout=round_time)
        call.preference, call.attempt = "leader", round_time / 2
        answer = self._core.fetch(wire.RenewAnswer, call)
        expired = {renewal.session for renewal in answer.sessions if isinstance(renewal, wire.SessionExpired)}
        return {renewal.session for renewal in answer.sessions} - expired, expired


def choose(live: list[Renewed], at: float) -> tuple[list[Renewed], float | None]:
    """Which sessions to renew: if one is due, with it those that soon will be; and when to look again."""
    renewals = [session.lease.renewal_at() for session in live]
    if not any(due is not None and due <= at for due in renewals):
        # Also to notice in time that one is lost.
        wakes = [due if due is not None else one.lease.changes_at(at) for due, one in zip(renewals, live, strict=True)]
        return [], min((wake for wake in wakes if wake is not None), default=None)
    due = [session for session in live if session.lease.may_join(at)]
    for session in due:
        session.lease.on_sent()
    return due, None
