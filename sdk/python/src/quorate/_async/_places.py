"""What a session has in queues: which places are taken, which are being given up, and whether the session lives to have any.

Owns what a session shares with the handles of what it holds. What is given up in the background is given up as long as the session lives:
after that it is gone by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from quorate._async._core import AsyncCore
from quorate._async._io import now, sleep, spawn, while_true
from quorate._async._renewals import AsyncRenewals, AsyncRenewed
from quorate._fork import tell_in_child
from quorate._lease import Loss, SessionState
from quorate._requests import Call
from quorate.errors import GaveUpError, QuorateError, SessionExpiredError, SessionLostError

T = TypeVar("T")
# How long after no node could decide what is given up it is tried again.
AGAIN_AFTER = 0.25


class AsyncPlaces:
    """The places of one session."""

    def __init__(self, core: AsyncCore, renewals: AsyncRenewals, renewed: AsyncRenewed) -> None:
        self.core = core
        self.renewed = renewed
        self._renewals = renewals
        self._lock = threading.Lock()
        # Places in queues that a handle has or waits for, of which the cluster knows one for each session, and barriers that it is in.
        self._taken: set[str] = set()
        # Places that are being given up in the background, and how often.
        self._leaving: dict[str, int] = {}
        tell_in_child(self, AsyncPlaces._forked)

    def _forked(self) -> None:
        """In a forked child: a thread that is not here may hold the lock. The session is lost here."""
        self._lock = threading.Lock()

    @property
    def session(self) -> str:
        """The id of the session."""
        return self.renewed.id

    @property
    def ttl(self) -> float:
        """Seconds that the session lives without a renewal."""
        return self.renewed.lease.ttl

    @property
    def loss(self) -> Loss | None:
        """Why the session is lost, if it is."""
        return self.renewed.lease.loss(now())

    @property
    def state(self) -> SessionState:
        """What the session is at this moment."""
        if self.renewed.lease.was_suspended():
            # The work in the background sleeps by a clock that stood still: it is to renew at once.
            self._renewals.look()
        return self.renewed.lease.state(now())

    def check(self) -> None:
        """Nothing while the session is known to live.

        Raises:
            SessionLostError: That is not so.
        """
        if self.state != "alive":
            raise SessionLostError(self.session, self.loss)

    def check_alive(self) -> None:
        """Nothing unless the session is lost: suspect is well enough to ask for more.

        Raises:
            SessionLostError: It is lost.
        """
        loss = self.loss
        if loss is not None:
            raise SessionLostError(self.session, loss)

    def on_over(self, loss: Loss) -> None:
        """The session is over."""
        self.renewed.lease.on_over(loss, now())
        self.renewed.changed.notify()
        self._renewals.look()

    async def or_lost(self, work: Coroutine[Any, Any, T]) -> T:
        """The outcome of the work, unless the session is lost before."""
        try:
            outcome = await while_true(work, self.renewed.changed, lambda: self.loss is None)
        except SessionExpiredError as error:
            self.on_over("expired")
            raise SessionLostError(self.session, self.loss) from error
        self.check_alive()
        assert outcome is not None
        return outcome

    def take(self, place: str) -> bool:
        """Takes a place for one handle; whether it was free."""
        with self._lock:
            is_free = place not in self._taken
            self._taken.add(place)
            return is_free

    def has(self, place: str) -> bool:
        """Whether a handle has this place, or waits for it; of a barrier, whether the session is in it."""
        with self._lock:
            return place in self._taken

    def leave(self, place: str) -> None:
        """Another handle may take this place now."""
        with self._lock:
            self._taken.discard(place)

    async def left(self, place: str) -> None:
        """Waits until this place is not being given up any more: what is asked for before that would be given up too."""
        while True:
            seen = self.renewed.changed.count
            if place not in self._leaving:
                return
            await self.renewed.changed.wait(seen)

    def give_up(self, place: str, asked: Call | None, give_up: Callable[[], Call]) -> None:
        """Gives up this place in the background.

        What is on its way is decided before it is taken back, or it could take effect afterwards and leave a place that nobody knows
        of in a queue.
        """
        if self.loss is not None:
            return
        with self._lock:
            self._leaving[place] = self._leaving.get(place, 0) + 1
        try:
            spawn(self._take_back, place, asked, give_up)
        except RuntimeError:
            # The event loop, or the interpreter, is at its end: the session ends by its time.
            self._on_left(place)

    async def _take_back(self, place: str, asked: Call | None, give_up: Callable[[], Call]) -> None:
        try:
            if asked is not None:
                # Once its id may not be sent any more it cannot be on its way either.
                await self._decide(lambda: asked, lambda: asked.patience.left() > 0)
            await self._decide(give_up, lambda: True)
        finally:
            self._on_left(place)

    def _on_left(self, place: str) -> None:
        with self._lock:
            self._leaving[place] -= 1
            if self._leaving[place] == 0:
                del self._leaving[place]
        self.renewed.changed.notify()

    async def _decide(self, call: Callable[[], Call], goes_on: Callable[[], bool]) -> None:
        """Sends it until a node decides it. Nobody is there to hear how, and the end of the session does the same."""
        while self.loss is None and goes_on():
            try:
                await self.core.send(call())
                return
            except GaveUpError:
                await sleep(AGAIN_AFTER)
            except QuorateError:
                return
