"""Places in the queues of locks and elections: asked for, waited in, held, given up.

Owns the loop that waits, and the handles of what is held. A place belongs to the session: whichever node a question reaches, it finds
the same place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quorate import types as wire
from quorate._async._base import AsyncBase
from quorate._async._core import AsyncCore
from quorate._async._io import Opening, now, opening, sleep
from quorate._async._observe import AsyncObservation
from quorate._async._places import AsyncPlaces
from quorate._lease import Loss
from quorate._requests import Call, Seconds, checked_request_id, get, post, query
from quorate._retry import WAIT_PAUSE
from quorate._values import Place, StrayedError, problem_here
from quorate.errors import (
    AlreadyQueuedError,
    DifferentSettingsError,
    GaveUpError,
    InvalidRequestError,
    LockedError,
    NotLockHolderError,
    QuorateError,
    SessionExpiredError,
)
from quorate.ops import Guard

if TYPE_CHECKING:
    from quorate._async._session import AsyncSession

# Longest wait that nodes take.
WAIT_MAX = 24 * 3600.0
# A node holds a question back for a third of the session's time to live, but never longer: if the node has died silently, another is
# to be asked while what was granted meanwhile still lives. And never shorter, since each question is an entry in the log.
POLL_MIN = 0.5
POLL_MAX = 10.0
# A node that is silent for so long is left for another, unless a sixth of the session's time to live is longer.
ATTEMPT_MIN = 0.25
ATTEMPT_MAX = 3.0
# At the end of a wait the node is to say so, not to send us back once more.
POLL_BEYOND = 1.0


async def take_place(places: AsyncPlaces, place: Place, request: dict[str, Any], wait: float | None) -> int:
    """Waits for a place until it holds, and gives its token; for the parts of the client."""
    places.check_alive()
    if not places.take(place.path()):
        raise InvalidRequestError(
            f"this session has `{place.name}` or waits for it already: give that up first, or ask with another session"
        )
    waiting = AsyncWaiting(places, place, request, wait)
    is_held = False
    try:
        await places.left(place.path())
        token = await places.or_lost(waiting.rounds())
        is_held = True
        return token
    except BaseException as error:
        at = found_at(place, error)
        # A place of another handle is kept. One got by mistake is given up, on the path that got it.
        if not leaves_nothing(error) and (at == place.path() or not places.has(at)):
            # With any other error the place of an earlier answer may still be there, or the last question on its way.
            places.give_up(at, waiting.asked, lambda: place.leave(places.session))
        raise
    finally:
        if not is_held:
            places.leave(place.path())


def found_at(place: Place, error: BaseException) -> str:
    """The path of the place that an answer was about: another one, where a proxy changed the path. Whoever asks for that waits."""
    cause = error.__cause__
    if isinstance(cause, StrayedError) and cause.field == place.kind and cause.said:
        return Place(place.kind, cause.said).path()
    return place.path()


def leaves_nothing(error: BaseException) -> bool:
    """Whether an error says that there is no place of this question, or one that is another handle's."""
    kinds = (InvalidRequestError, LockedError, AlreadyQueuedError, DifferentSettingsError, SessionExpiredError)
    return isinstance(error, kinds)


class AsyncWaiting:
    """Questions for a place until the answer is final."""

    def __init__(self, places: AsyncPlaces, place: Place, request: dict[str, Any], wait: float | None) -> None:
        self._places = places
        self._place = place
        self._request = request
        self._wait = wait
        self._started = now()
        # The question that is on its way, under its own request id but without a wait: to repeat it is to learn its outcome.
        self.asked: Call | None = None

    async def rounds(self) -> int:
        """Asks until the place holds; its token."""
        undecided: tuple[float, Call] | None = None
        while True:
            # What nobody could tell the outcome of is asked again as it was: under another id it might be decided twice. Once its id may
            # not be sent any more it cannot be on its way either.
            if undecided is not None and undecided[1].patience.left() > 0:
                left, self.asked = undecided
            else:
                left = self._left()
                self.asked = self._call(left, 0.0, checked_request_id(None))
            undecided = None
            self._places.check_alive()
            call = self._call(left, self._poll(left), self.asked.request_id)
            call.patience = self.asked.patience
            try:
                answer = await self._places.core.fetch_json(call)
            except GaveUpError:
                # No node could tell. The place is kept, so the same is asked again, wherever somebody answers.
                if self._left() <= 0:
                    raise
                undecided = (left, self.asked)
                await sleep(WAIT_PAUSE)
                continue
            token = answer.get("token") or answer.get("term")
            if token is not None:
                return int(token)
            if left <= 0:
                raise LockedError(problem_here("locked", 423, f"`{self._place.name}` was not got in time"))
            self.asked = None

    def _left(self) -> float:
        if self._wait is None:
            return WAIT_MAX
        return min(max(self._wait - (now() - self._started), 0.0), WAIT_MAX)

    def _poll(self, left: float) -> float:
        """How long the node is to hold its answer back."""
        poll = min(max(self._places.ttl / 3, POLL_MIN), POLL_MAX)
        if left <= 0:
            return 0.0
        return left + POLL_BEYOND if left <= poll else poll

    def _call(self, left: float, poll: float, request_id: str | None) -> Call:
        body = {**self._request, "wait_ms": round(left * 1000), "poll_ms": round(poll * 1000)}
        about = {**self._place.about, "session": self._places.session}
        call = post(self._place.path(self._place.ask_verb), body, request_id=request_id, about=about)
        call.hold = poll
        call.attempt = min(max(self._places.ttl / 6, ATTEMPT_MIN), ATTEMPT_MAX)
        return call


class AsyncHeld:
    """What is held until it is given up, or its session is lost.

    Locally nobody can be sure of it: we may be stopped for a minute after we looked. What must not happen after it is lost has to say
    the token to whoever does it: to the cluster with `guard=`, to others with the token, which is greater than that of every holder
    before.
    """

    def __init__(self, session: AsyncSession, places: AsyncPlaces, place: Place, token: int) -> None:
        self._session = session
        self._places = places
        self._place = place
        self._token = token
        # Whether it was begun to give it up: from then on it is not certainly held, whatever came of that.
        self._is_leaving = False
        # Whether the place may be another handle's, and whether it is certain that it is not held any more.
        self._is_given_up = False
        self._is_gone = False

    @property
    def name(self) -> str:
        """The name of the lock or the election."""
        return self._place.name

    @property
    def session(self) -> AsyncSession:
        """The session that holds it."""
        return self._session

    @property
    def guard(self) -> Guard:
        """For writes that are applied only while it is held, which the cluster decides when it applies them."""
        if self._place.kind == "lock":
            return Guard(self._token, lock=self.name)
        return Guard(self._token, election=self.name)

    async def wait_lost(self, timeout: Seconds | None = None) -> Loss | None:
        """Waits until it is lost with its session, and tells why; `None` when the time is over before."""
        return await self._session.wait_lost(timeout)

    def _certain_token(self) -> int:
        self._places.check()
        if self._is_leaving:
            raise NotLockHolderError(problem_here("not_lock_holder", 409, f"`{self.name}` is not held any more: it was given up"))
        return self._token

    async def _give_up(self) -> None:
        if self._places.loss == "forked":
            # Whoever holds it, that is not this process.
            self._places.check_alive()
        # Whether it may have gone with an earlier try, whose outcome nobody could tell.
        was_open, self._is_leaving = self._is_leaving and not self._is_gone, True
        try:
            await self._places.core.send(self._place.release(self._token))
        except (NotLockHolderError, SessionExpiredError):
            self._on_gone()
            if not was_open:
                raise
        except QuorateError:
            raise
        except BaseException:
            # Broken off, and it may not have been sent: nobody says that it is tried again.
            self._hand_over()
            raise
        else:
            self._on_gone()

    def _on_gone(self) -> None:
        self._is_gone = True
        self._on_given_up()

    def _on_given_up(self) -> None:
        self._is_leaving = True
        if not self._is_given_up:
            self._is_given_up = True
            self._places.leave(self._place.path())

    def _hand_over(self) -> None:
        """Lets the session give it up in the background: it is not to stay as long as the session does."""
        self._places.give_up(self._place.path(), None, lambda: self._place.release(self._token))
        self._on_given_up()

    async def _exit(self) -> None:
        """At the end of a block: what is lost has gone already."""
        if self._places.loss is not None:
            self._on_gone()
        if self._is_given_up:
            return
        try:
            await self._give_up()
        except (NotLockHolderError, SessionExpiredError):
            # It was taken from us, which a guard has told whoever wrote.
            return
        except GaveUpError:
            self._hand_over()
        except QuorateError:
            self._hand_over()
            raise


class AsyncLock(AsyncHeld):
    """A lock that is held until it is released, its `async with` is left, or its session is lost."""

    @property
    def token(self) -> int:
        """The fencing token.

        Raises:
            SessionLostError: The lock is not certainly held at this moment.
            NotLockHolderError: It was released, or that was tried: whatever came of it, it is not certainly held.
        """
        return self._certain_token()

    async def release(self) -> None:
        """Gives it up; the next in the queue has it at once. After an error whose outcome is unknown it may be called again.

        Raises:
            NotLockHolderError: It was lost or released before.
        """
        await self._give_up()

    async def __aenter__(self) -> AsyncLock:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._exit()


class AsyncLeadership(AsyncHeld):
    """A leadership, until it is resigned, its `async with` is left, or its session is lost."""

    @property
    def term(self) -> int:
        """The term: a fencing token, greater than that of every leader before.

        Raises:
            SessionLostError: We do not certainly lead at this moment.
            NotLockHolderError: It was resigned, or that was tried.
        """
        return self._certain_token()

    async def proclaim(self, value: Any) -> wire.ProclaimAnswer:
        """Says something else of ourselves."""
        call = post(self._place.path("/proclaim"), {"term": str(self._token), "value": value}, about=self._place.about)
        return await self._places.core.fetch(wire.ProclaimAnswer, call)

    async def resign(self) -> None:
        """Gives it up; the next candidate leads at once. After an error whose outcome is unknown it may be called again.

        Raises:
            NotLockHolderError: It was lost or resigned before.
        """
        await self._give_up()

    async def __aenter__(self) -> AsyncLeadership:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._exit()


class AsyncNamedLock:
    """A lock by its name, whoever holds it: looked at, checked, and released for others."""

    def __init__(self, core: AsyncCore, name: str) -> None:
        self._core = core
        self._place = Place("lock", name)

    async def get(self) -> wire.LockAnswer:
        """Who holds it, and who waits for it."""
        return await self._core.fetch(wire.LockAnswer, get(self._place.path(), about=self._place.about))

    async def check(self, token: int) -> wire.CheckAnswer:
        """Whether this token holds it.

        Raises:
            GuardFailedError: It does not.
        """
        return await self._core.fetch(wire.CheckAnswer, get(query(self._place.path("/check"), token=token), about=self._place.about))

    async def release(self, token: int, *, request_id: str | None = None) -> wire.ReleaseAnswer:
        """Takes it from the holder of this token, who is not asked and not told: its guarded writes are refused from now on."""
        return await self._core.fetch(wire.ReleaseAnswer, self._place.release(token, request_id))

    async def release_session(self, session: str, *, request_id: str | None = None) -> wire.ReleaseAnswer:
        """Gives up whatever this session has there, a place in the queue too."""
        return await self._core.fetch(wire.ReleaseAnswer, self._place.leave(session, request_id))


class AsyncElection:
    """An election by its name."""

    def __init__(self, core: AsyncCore, name: str) -> None:
        self._core = core
        self._place = Place("election", name)

    @property
    def name(self) -> str:
        """Its name."""
        return self._place.name

    async def get(self) -> wire.ElectionAnswer:
        """Who leads, and who stands."""
        return await self._core.fetch(wire.ElectionAnswer, get(self._place.path(), about=self._place.about))

    async def leader(self) -> wire.LeaderView | None:
        """Who leads, if anybody does."""
        return (await self.get()).leader

    async def proclaim(self, term: int, value: Any, *, request_id: str | None = None) -> wire.ProclaimAnswer:
        """Lets the leader of this term say something else of itself."""
        body = {"term": str(term), "value": value}
        call = post(self._place.path("/proclaim"), body, request_id=request_id, about=self._place.about)
        return await self._core.fetch(wire.ProclaimAnswer, call)

    async def resign(self, term: int, *, request_id: str | None = None) -> wire.ResignAnswer:
        """Takes leadership from the leader of this term, who is not asked and not told."""
        return await self._core.fetch(wire.ResignAnswer, self._place.release(term, request_id))

    async def resign_session(self, session: str, *, request_id: str | None = None) -> wire.ResignAnswer:
        """Gives up whatever this session has there."""
        return await self._core.fetch(wire.ResignAnswer, self._place.leave(session, request_id))

    def observe(self) -> Opening[AsyncObservation]:
        """Observes it: first who leads now, then each change."""

        async def begin() -> AsyncObservation:
            observation = AsyncObservation(self._core, self.name, self._place.path("/observe"))
            await observation.connect(self._core.settings.timeout)
            return observation

        return opening(begin)


class AsyncQueues(AsyncBase):
    """The part of a client that looks at locks and elections."""

    def lock(self, name: str) -> AsyncNamedLock:
        """The lock of this name, whoever holds it. To acquire it: `session.lock`."""
        return AsyncNamedLock(self._core, name)

    async def locks(self, *, limit: int | None = None, cursor: str | None = None) -> wire.LockList:
        """A page of all locks that somebody holds or waits for, by name."""
        return await self._core.fetch(wire.LockList, get(query("/v1/locks", limit=limit, cursor=cursor)))

    def election(self, name: str) -> AsyncElection:
        """The election of this name. To stand in it: `session.campaign`."""
        return AsyncElection(self._core, name)

    async def elections(self, *, limit: int | None = None, cursor: str | None = None) -> wire.ElectionList:
        """A page of all elections in which somebody leads or stands, by name."""
        return await self._core.fetch(wire.ElectionList, get(query("/v1/elections", limit=limit, cursor=cursor)))
