"""The way of every call from its first attempt to its final answer.

Owns the loops over attempts, for answers and for streams. What they decide with is pure: `_endpoints` (which node), `_retry` (whether
again). A write carries one request id over all its attempts, so whatever happens it is applied at most once.
"""

from __future__ import annotations

import json
import logging
import random
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn, TypeVar, cast

from quorate import _codec
from quorate import types as wire
from quorate._async._io import now, sleep, spawn
from quorate._async._transport import AsyncBody, AsyncLine
from quorate._credentials import Credentials
from quorate._endpoints import (
    INTRODUCTION_PAUSE,
    Endpoint,
    Endpoints,
    LeaderHint,
    is_clear,
    is_reachable,
    parse_endpoint,
    parse_endpoints,
)
from quorate._fork import tell_in_child
from quorate._http import Answer, Head
from quorate._names import with_names
from quorate._requests import Call, Preference, get
from quorate._retry import Attempts, Failure, is_final
from quorate._settings import Settings
from quorate._values import AttemptError, StrayedError
from quorate.errors import (
    InvalidRequestError,
    ProtocolError,
    QuorateError,
    UnavailableError,
    UnknownOutcomeError,
    rejected,
)

T = TypeVar("T")
# How long a node may take to say who it is.
INTRODUCTION_TIMEOUT = 1.0
# Follows in the error of a call that failed in doubt.
HOW_TO_GO_ON = (
    "; if the other one has replaced ours, as a restore does, try again: the client goes over once it has heard nothing else for 10 s;"
    " if not, put that node right, or take it off the endpoints"
)
log = logging.getLogger("quorate")


class AgainError(Exception):
    """The attempt is to be made again, with newer credentials."""


class AsyncWay:
    """The attempts of one call."""

    def __init__(self, core: AsyncCore, call: Call) -> None:
        self.core = core
        self.call = call
        self.attempts = Attempts(call.intent, core.settings.retry)
        self.started = now()
        # The node that failed last.
        self.failed: int | None = None
        # Whether it was refused for old credentials once.
        self.is_refreshed = False
        # The generation of the credentials of the attempt that is under way.
        self.generation = 0

    def pick(self) -> int:
        """The node of the next attempt."""
        self.generation = self.core.credentials.shown().generation
        preference = self.core.reads if self.call.preference == "read" else self.call.preference
        with self.core.lock:
            return self.core.endpoints.pick(preference, self.failed, now())

    def shows_newer_credentials(self, problem: wire.Problem) -> bool:
        """Whether to make a refused attempt again: what says who we are was exchanged, and we were late to see it. Once."""
        is_late = not self.is_refreshed and problem.code == "unauthenticated" and self.core.credentials.is_newer_than(self.generation)
        self.is_refreshed = self.is_refreshed or is_late
        return is_late

    def on_failure(self, node: int, failure: Failure) -> float | None:
        """The pause after an attempt that brought no final answer; `None`: no further one."""
        with self.core.lock:
            # One of another cluster is not asked anyway.
            if failure.kind != "foreign":
                self.core.endpoints.on_failure(node, now())
            nodes = len(self.core.lines)
        self.failed = node
        self.core.look_around()
        return self.attempts.on_failure(failure, nodes, random.random())

    def time_left(self, until: float | None = None) -> float:
        """Seconds until the deadline of the call, or until `until`, and until a write may not go under its id any more."""
        call, settings = self.call, self.core.settings
        if until is None:
            timeout = call.timeout if call.timeout is not None else settings.timeout
            until = self.started + timeout + call.hold
        left = until - now()
        return left if call.intent != "write" else min(left, call.patience.left() + call.hold)

    def give_up(self, failure: Failure, *, fate_open: bool, attempts: int) -> NoReturn:
        """Raises what a call ends with that no node decided."""
        kind = UnknownOutcomeError if fate_open else UnavailableError
        elapsed = now() - self.started
        request_id = self.call.request_id
        detail = str(failure)
        stranger = None if failure.problem is not None or failure.kind == "foreign" else self.core.stranger()
        if stranger is not None:
            detail += f"; {stranger}"
        if stranger is not None or failure.kind == "foreign":
            detail += HOW_TO_GO_ON
        raise kind(detail, request_id=request_id, attempts=attempts, elapsed=elapsed, problem=failure.problem) from None


class AsyncCore:
    """What all parts of a client share: the nodes, the connections to them, the settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.credentials = Credentials(settings.sources)
        self.given = parse_endpoints(settings.endpoints, settings.sources.has_ca)
        self.lines = [AsyncLine(endpoint, self.credentials) for endpoint in self.given]
        self.endpoints = Endpoints(len(self.given), random.randrange(1 << 16))
        self.lock = threading.Lock()
        self.is_closed = False
        # Answers that are taken as they come, to be closed with the client.
        self._open: weakref.WeakSet[AsyncBody] = weakref.WeakSet()
        # A token is never sent in clear to an address that was not given.
        if settings.discover_members and not (self.credentials.has_token and is_clear(self.given, settings.sources.has_ca)):
            self.endpoints.discover(now())
        tell_in_child(self, AsyncCore._forked)

    def _forked(self) -> None:
        """In a forked child: a thread that is not here may hold the lock, or have been about to add a member."""
        self.lock = threading.Lock()
        count = min(len(self.lines), len(self.endpoints.nodes))
        del self.lines[count:], self.endpoints.nodes[count:]

    @property
    def is_tls(self) -> bool:
        """Whether members that were not given are reached by TLS."""
        ways = [endpoint.is_tls for endpoint in self.given if endpoint.socket is None]
        return any(ways) if ways else self.settings.sources.has_ca

    @property
    def reads(self) -> Preference:
        """Where a linearizable read goes."""
        return "leader" if self.settings.reads == "leader" else "any"

    def close(self) -> None:
        """Closes all kept connections; calls are refused from then on."""
        self.is_closed = True
        for line in self.lines:
            line.end()
        for body in list(self._open):
            body.close()

    async def fetch(self, kind: type[T], call: Call) -> T:
        """Makes the call, decodes the answer."""
        address, answer = await self.send(call)
        try:
            return _codec.read(kind, parsed(call, answer))
        except ValueError as error:
            raise self._undecodable(call, address, answer, error) from error

    async def fetch_json(self, call: Call) -> Any:
        """Makes the call, gives the JSON of the answer."""
        address, answer = await self.send(call)
        try:
            return parsed(call, answer)
        except ValueError as error:
            raise self._undecodable(call, address, answer, error) from error

    async def send(self, call: Call) -> tuple[str, Answer]:
        """Makes the call: attempts it until it is decided or its time is up."""
        self._check_open()
        way = AsyncWay(self, call)
        while True:
            node = way.pick()
            line = self.lines[node]
            attempt = call.attempt if call.attempt is not None else self.settings.attempt_timeout
            try:
                answer = await line.send(call, max(min(way.time_left(), attempt + call.hold), 0.001))
                failure = await self._judge(way, node, answer)
                if failure is None:
                    return line.address, answer
            except AgainError:
                continue
            except AttemptError as error:
                failure = error.failure
            pause = way.on_failure(node, failure)
            if pause is None or pause >= way.time_left():
                way.give_up(failure, fate_open=way.attempts.fate_open, attempts=way.attempts.failures)
            if pause > 0:
                await sleep(pause)

    async def open(self, call: Call, kind: str, until: float | None) -> tuple[int, AsyncBody]:
        """Opens an answer of this content type that is taken as it comes.

        Tries one node after the other until one has it, refuses for good, or the time is up; without a time for ever.
        """
        way = AsyncWay(self, call)
        while True:
            self._check_open()
            node = way.pick()
            left = self.settings.attempt_timeout if until is None else way.time_left(until)
            try:
                opened = await self.lines[node].open(call, kind, max(min(left, self.settings.attempt_timeout), 0.001))
                if isinstance(opened, AsyncBody):
                    failure = self._stranger(node, opened.head)
                    if failure is None:
                        self.learn(node, opened.head.hint)
                        self._open.add(opened)
                        return node, opened
                    opened.close()
                else:
                    failure = await self._judge(way, node, opened)
                if failure is None:
                    assert isinstance(opened, Answer)
                    raise self.strange(node, f"status {opened.status} without {kind}; is this a Quorate node?")
            except AgainError:
                continue
            except AttemptError as error:
                failure = error.failure
            pause = way.on_failure(node, failure)
            if pause is None and until is None:
                # Tries are bounded for calls. A watch goes on as long as its time does.
                pause = self.settings.retry.backoff_max
            if pause is None or (until is not None and pause >= way.time_left(until)):
                way.give_up(failure, fate_open=way.attempts.fate_open, attempts=way.attempts.failures)
            if pause > 0:
                await sleep(pause)

    def line_to(self, address: str) -> AsyncLine:
        """The way to a member that was not given, at the address that it advertises."""
        if not self.is_tls and self.credentials.has_token:
            raise InvalidRequestError(f"{address}: a token is never sent in clear to an address that was not given")
        return AsyncLine(parse_endpoint(address, self.is_tls), self.credentials)

    async def fetch_from(self, kind: type[T], line: AsyncLine, call: Call, budget: float) -> T:
        """One attempt at one node, whatever is known of it."""
        answer = await self.answer_from(line, call, budget)
        try:
            return _codec.decode(kind, answer.body)
        except ValueError as error:
            raise self._undecodable(call, line.address, answer, error) from error

    async def answer_from(self, line: AsyncLine, call: Call, budget: float) -> Answer:
        """The good answer of one node to one attempt."""
        try:
            answer = await line.send(call, budget)
        except AttemptError as error:
            raise UnavailableError(str(error.failure), request_id=None, attempts=1, elapsed=0.0, problem=None) from error
        node = next((node for node, known in enumerate(self.lines) if known is line), None)
        failure = self._foreign(node, answer.head.cluster) if node is not None else None
        if failure is not None:
            raise UnavailableError(str(failure), request_id=None, attempts=1, elapsed=0.0, problem=None)
        problem = problem_of(answer)
        if problem is not None:
            raise rejected(problem)
        if not 200 <= answer.status < 300:
            raise ProtocolError(line.address, strange_status(answer.status), applied="no", request_id=None)
        return answer

    def node_failed(self, node: int) -> None:
        """A node that was well is not any more."""
        with self.lock:
            self.endpoints.on_failure(node, now())

    def strange(self, node: int, detail: str) -> ProtocolError:
        """An error about what a node sent in a stream."""
        return ProtocolError(self.lines[node].address, detail, applied="no", request_id=None)

    def learn(self, node: int, hint: LeaderHint) -> None:
        """A node answered; what it said of the cluster may be a reason to look at the others."""
        with self.lock:
            self.endpoints.on_answer(node, hint)
            is_stranger = self.endpoints.begin_introduction(now())
            is_due = self.endpoints.begin_discovery(now()) or is_stranger
        if is_due and not self.is_closed:
            spawn(self._introduce_all)

    def look_around(self) -> None:
        """An attempt failed: where a node of another cluster is known, all say who they are now and then."""
        if not self.is_closed and self._begins_introduction():
            spawn(self._introduce_all)

    def _begins_introduction(self) -> bool:
        with self.lock:
            return self.endpoints.begin_introduction(now())

    def _is_in_doubt(self) -> bool:
        with self.lock:
            return self.endpoints.is_in_doubt(now())

    def stranger(self) -> Failure | None:
        """While in doubt: that a given node is of another cluster."""
        with self.lock:
            node = self.endpoints.stranger()
            return None if node is None else self._of_another(node)

    def _of_another(self, node: int) -> Failure:
        told, ours = self.endpoints.nodes[node].cluster, self.endpoints.cluster
        return Failure(self.lines[node].address, "foreign", f"it is a node of the cluster {told}, not of {ours}")

    def _foreign(self, node: int, cluster: str | None) -> Failure | None:
        """That a node is of another cluster than ours; `None` where it is not, or does not say it."""
        with self.lock:
            was_foreign = self.endpoints.is_foreign(node)
            if not cluster or self.endpoints.is_ours(node, cluster, now()):
                return None
            failure = self._of_another(node)
        # A new connection may lead to another node behind the same address.
        self.lines[node].close()
        if not was_foreign:
            log.warning("%s; what it says is not believed", failure)
        return failure

    def _stranger(self, node: int, head: Head) -> Failure | None:
        return self._foreign(node, head.cluster)

    def _check_open(self) -> None:
        if self.is_closed:
            raise InvalidRequestError("the client is closed")

    async def _judge(self, way: AsyncWay, node: int, answer: Answer) -> Failure | None:
        """What an answer means for the call: `None` where it is good, a failure where another attempt may do better."""
        call, address = way.call, self.lines[node].address
        stranger = self._stranger(node, answer.head)
        if stranger is not None:
            return stranger
        # What HEAD is answered has no problem document, so only a node may say that there is no entry.
        is_missing = call.method == "HEAD" and answer.status == 404 and answer.head.hint.term > 0
        if 200 <= answer.status < 300 or answer.status == 304 or is_missing:
            self.learn(node, answer.head.hint)
            return None
        problem = problem_of(answer)
        if problem is None:
            detail = strange_status(answer.status)
            if answer.status >= 500 or answer.status == 429:
                return Failure(address, "strange", detail)
            applied = "unknown" if way.attempts.fate_open else "no"
            raise ProtocolError(address, detail, applied=applied, request_id=call.request_id)
        if not is_final(problem):
            return Failure(address, "problem", f"{problem.title}: {problem.detail}", problem)
        self.learn(node, answer.head.hint)
        if way.shows_newer_credentials(problem):
            raise AgainError
        if way.attempts.settled_by(problem):
            raise rejected(problem)
        failure = Failure(address, "problem", f"{problem.title}: {problem.detail}", problem)
        return way.give_up(failure, fate_open=True, attempts=way.attempts.failures + 1)

    @staticmethod
    def _undecodable(call: Call, address: str, answer: Answer, error: ValueError) -> ProtocolError:
        detail = f"the body of status {answer.status} is not what {call.method} {call.target} answers: {error}"
        # The status says it worked, the body does not say what.
        applied = "no" if call.intent == "read" else "unknown"
        return ProtocolError(address, detail, applied=applied, request_id=call.request_id)

    async def _introduce_all(self) -> None:
        """Asks every node who it is.

        While others than ours answer it goes on, so that their words come without gaps until the doubt is over.
        """
        while not await self._introduce_each() and self._is_in_doubt():
            await sleep(INTRODUCTION_PAUSE)
            # Where another round has begun meanwhile, that goes on in place of this.
            if self.is_closed or not self._begins_introduction():
                return

    async def _introduce_each(self) -> bool:
        """Asks every node who it is, and from what they say finds members that are not among them. Whether any of ours answered."""
        statuses: dict[int, wire.StatusAnswer] = {}
        # Beside each other: some may not answer, and words of the others come without gaps.
        asked = [spawn(self._ask, node, statuses) for node in range(len(self.lines))]
        for one in asked:
            await one.join()
        believed = [node for node, status in sorted(statuses.items()) if self._introduce(node, status)]
        with self.lock:
            # One may have been believed before others outvoted it.
            ours = [statuses[node] for node in believed if not self.endpoints.is_foreign(node)]
        if ours and self.endpoints.discovers:
            await self._discover(max(ours, key=lambda status: status.applied_index))
        return bool(ours)

    async def _ask(self, node: int, statuses: dict[int, wire.StatusAnswer]) -> None:
        """One that does not answer stays unknown until the next round."""
        with suppress(QuorateError):
            call = get("/v1/cluster/status")
            statuses[node] = await self.fetch_from(wire.StatusAnswer, self.lines[node], call, INTRODUCTION_TIMEOUT)

    def _introduce(self, node: int, status: wire.StatusAnswer) -> bool:
        """Hears what a node says of itself: whether it is one of ours."""
        if self._foreign(node, status.cluster_id) is not None:
            return False
        with self.lock:
            self.endpoints.introduce(node, status.node_id, LeaderHint(status.term, status.leader_id))
        return bool(status.cluster_id)

    async def _discover(self, view: wire.StatusAnswer) -> None:
        """Asks the members that are not known for who they are, and adds those that answer as they should."""
        with self.lock:
            self.endpoints.retain([member.id for member in view.members])
            unknown = [member for member in view.members if not self.endpoints.is_known(member.id)]
        for member in unknown:
            if is_reachable(member.client_addr, self.given):
                await self._make_acquaintance(member, view.cluster_id)

    async def _make_acquaintance(self, member: wire.MemberView, cluster_id: str) -> None:
        """Adds the member, if it is there and is who the others say."""
        try:
            line = self.line_to(member.client_addr)
            call = get("/v1/cluster/status")
            status = await self.fetch_from(wire.StatusAnswer, line, call, INTRODUCTION_TIMEOUT)
        except QuorateError:
            return
        if status.node_id != member.id or status.cluster_id != cluster_id:
            return
        with self.lock:
            # Another round may have been faster, and the client may have gone over since.
            if not self.endpoints.is_known(member.id) and cluster_id == self.endpoints.cluster:
                self.lines.append(line)
                self.endpoints.add(member.id)
                self.endpoints.is_ours(len(self.lines) - 1, cluster_id, now())


def parsed(call: Call, answer: Answer) -> Any:
    """The JSON of an answer; `None` where nothing has changed.

    Raises:
        ValueError: It is none, or is about something else than was asked for.
    """
    if answer.status == 304:
        return None
    data: Any = json.loads(answer.body)
    named: Mapping[str, Any] = {}
    if call.about and isinstance(data, dict):
        named = with_names(cast("dict[str, Any]", data))
    for field, asked in call.about.items():
        said = named.get(field, asked)
        if said != asked:
            raise StrayedError(field, str(said), asked)
    return cast("Any", data)


def problem_of(answer: Answer) -> wire.Problem | None:
    """The problem document of an answer, if it is one."""
    if answer.status < 400:
        return None
    try:
        return _codec.decode(wire.Problem, answer.body)
    except ValueError:
        return None


def strange_status(status: int) -> str:
    """A status that a node would explain."""
    return f"status {status} without a problem document; is this a Quorate node?"


def known_endpoints(core: AsyncCore) -> list[Endpoint]:
    """All nodes that calls may go to: those given, and members that were discovered."""
    return [line.endpoint for line in core.lines]
