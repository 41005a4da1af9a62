"""Barriers and latches.

A barrier opens once so many sessions have entered, and closes once all have left. A latch is counted down to 0, where it opens for
good; it hangs on no session.
"""

from __future__ import annotations

from typing import Literal

from quorate import types as wire
from quorate._async._core import AsyncCore
from quorate._async._io import now, sleep
from quorate._async._places import AsyncPlaces
from quorate._async._queue import leaves_nothing
from quorate._requests import Call, Seconds, checked_request_id, end_of, get, path, post, query, seconds
from quorate._retry import WAIT_PAUSE
from quorate._values import StrayedError
from quorate.errors import GaveUpError, UnavailableError

# A node holds a question back for at most this long: if it has died silently, another is asked soon.
POLL_MAX = 5.0
# A node that is silent for so long after that is left for another.
ATTEMPT = 1.0

Verb = Literal["enter", "leave"]


def barrier_path(name: str, verb: str = "") -> str:
    """The path of what is done to a barrier."""
    return path("/v1/barriers/", name, "the name of a barrier", verb)


def found_at(place: str, error: BaseException) -> str:
    """The path of the barrier that an answer was about: another one than this, where a proxy changed the path."""
    cause = error.__cause__
    return barrier_path(cause.said) if isinstance(cause, StrayedError) and cause.said else place


class AsyncBarrier:
    """A barrier for one session."""

    def __init__(self, places: AsyncPlaces, name: str, parties: int) -> None:
        self._places = places
        self._parties = parties
        self.name = name
        self._asked: Call | None = None

    async def enter(self, wait: Seconds | None = None) -> wire.BarrierAnswer:
        """Enters, and waits until it is open; without a time, as long as the session lives.

        When the time is over before, it is left again, and the answer says `waiting`.

        Raises:
            LockedError: Those who opened it have not all left.
        """
        place = barrier_path(self.name)
        end_of(wait, 0.0, "wait")
        await self._places.left(place)
        try:
            answer = await self._places.or_lost(self._rounds("enter", wait))
            if answer.state == "open":
                self._places.take(place)
            else:
                # Before the caller is told, so that whoever enters next does not find us there.
                await self._places.or_lost(self._rounds("leave", 0.0))
            return answer
        except BaseException as error:
            at = found_at(place, error)
            # What the session is in is kept. What was entered by mistake is left, on the path that got it.
            if not leaves_nothing(error) and (at == place or not self._places.has(at)):
                self._places.give_up(at, self._asked, lambda: self._call("leave", 0.0, checked_request_id(None)))
            raise

    async def leave(self, wait: Seconds | None = None) -> wire.BarrierAnswer:
        """Leaves, and waits until the others have left too: then it can be entered anew."""
        answer = await self._places.or_lost(self._rounds("leave", wait))
        self._places.leave(barrier_path(self.name))
        return answer

    async def _rounds(self, verb: Verb, wait: Seconds | None) -> wire.BarrierAnswer:
        """Asks until all are there, or gone, or the time is over."""
        until = end_of(wait, now(), "wait")
        undecided: Call | None = None
        opened: int | None = None
        while True:
            left = POLL_MAX if until is None else min(max(until - now(), 0.0), POLL_MAX)
            # What nobody could tell the outcome of is asked again as it was, as long as nodes are sure to know its id.
            is_again = undecided is not None and undecided.patience.left() > 0
            self._asked = undecided if is_again and undecided is not None else self._call(verb, 0.0, checked_request_id(None))
            self._places.check_alive()
            try:
                call = self._call(verb, left, self._asked.request_id)
                call.patience = self._asked.patience
                answer = await self._places.core.fetch(wire.BarrierAnswer, call)
            except GaveUpError:
                if left <= 0:
                    raise
                undecided = self._asked
                await sleep(WAIT_PAUSE)
                continue
            undecided, self._asked = None, None
            if is_done(verb, answer, opened) or left <= 0:
                return answer
            # Others are awaited.
            opened = answer.opened_revision

    def _call(self, verb: Verb, wait: float, request_id: str | None) -> Call:
        body = {"session": self._places.session, "wait_ms": round(wait * 1000)}
        if verb == "enter":
            body["parties"] = self._parties
        call = post(barrier_path(self.name, f"/{verb}"), body, request_id=request_id, about={"barrier": self.name})
        call.hold, call.attempt = wait, ATTEMPT
        return call


def is_done(verb: Verb, answer: wire.BarrierAnswer, opened: int | None) -> bool:
    """Whether it is as it was wanted; `opened` is when it opened, by the answer before."""
    if verb == "enter":
        return answer.state == "open"
    # One that is not open, or open anew, has been empty in between.
    return answer.state != "open" or (opened is not None and answer.opened_revision != opened)


class AsyncLatch:
    """A latch by its name."""

    def __init__(self, core: AsyncCore, name: str) -> None:
        self._core = core
        self.name = name

    async def create(self, count: int, *, request_id: str | None = None) -> wire.LatchAnswer:
        """Makes it: it opens after so many counts. The same again changes nothing.

        Raises:
            DifferentSettingsError: It is there with another count.
        """
        call = post(self._path(), {"count": count}, method="PUT", request_id=request_id, about=self._about)
        return await self._core.fetch(wire.LatchAnswer, call)

    async def count_down(self, by: int = 1, *, request_id: str | None = None) -> wire.LatchAnswer:
        """Counts it down; more than is left is as good as what is left."""
        return await self._core.fetch(
            wire.LatchAnswer, post(self._path("/count_down"), {"by": by}, request_id=request_id, about=self._about)
        )

    async def remove(self, *, request_id: str | None = None) -> wire.LatchRemoved:
        """Removes it."""
        return await self._core.fetch(
            wire.LatchRemoved, post(self._path(), None, method="DELETE", request_id=request_id, about=self._about)
        )

    async def get(self) -> wire.LatchAnswer:
        """What it is now."""
        return await self._look(0.0)

    async def wait(self, wait: Seconds) -> wire.LatchAnswer:
        """Waits until it is open, at most for so long; tells what it is then."""
        until = now() + seconds(wait, "wait")
        while True:
            left = max(until - now(), 0.0)
            try:
                answer = await self._look(min(left, POLL_MAX))
            except UnavailableError:
                if left <= 0:
                    raise
                await sleep(WAIT_PAUSE)
                continue
            if answer.open or left <= 0:
                return answer

    async def _look(self, wait: float) -> wire.LatchAnswer:
        call = get(query(self._path(), wait_ms=round(wait * 1000) or None), hold=wait, about=self._about)
        call.attempt = ATTEMPT
        return await self._core.fetch(wire.LatchAnswer, call)

    @property
    def _about(self) -> dict[str, str]:
        return {"latch": self.name}

    def _path(self, verb: str = "") -> str:
        return path("/v1/latches/", self.name, "the name of a latch", verb)
