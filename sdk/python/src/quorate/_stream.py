"""Operations on their way in streams: which are not decided yet, and what a line of an answer means for its operation.

Sends nothing. Each write keeps one request id over all streams that it goes in, so it is applied at most
once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from quorate import _codec
from quorate import types as wire
from quorate._convert import to_json
from quorate._entry import AnyEntry, entry_of
from quorate._lists import checked, iterated
from quorate._names import shown, with_names
from quorate._requests import checked_request_id
from quorate._retry import Attempts, Failure, RetryPolicy, is_final
from quorate.errors import (
    GaveUpError,
    InvalidRequestError,
    ProtocolError,
    QuorateError,
    UnavailableError,
    UnknownOutcomeError,
    rejected,
)
from quorate.ops import Op

CONTENT_TYPE = "application/x-ndjson"
# Operations of one request: about as many as a node has under way of one.
OPS_MAX = 1_000
# Bytes of its lines: they fit into what systems buffer, so that a node can always answer while we still send.
BYTES_MAX = 128 * 1024
# Longest line of an answer: an entry of the largest size, and what is around it. Protects the memory of the caller.
LINE_MAX = 32 * 1024 * 1024
READS = ("get", "get_and_lock", "get_and_touch")


@dataclass(frozen=True, slots=True)
class Streamed:
    """What became of one operation of a stream.

    Attributes:
        n: Which one, from 0.
        op: The operation.
        answer: The entry of one that reads, else the answer to the write; `None` where it failed.
        error: Why it failed.
    """

    n: int
    op: Op
    answer: wire.WriteAnswer | AnyEntry | None = None
    error: QuorateError | None = None


class Sent:
    """An operation that is not decided yet."""

    def __init__(self, n: int, op: Op, policy: RetryPolicy) -> None:
        self.n = n
        self.op = op
        body = dict(op.body)
        is_read = body.get("op") == "get"
        self.request_id = None if is_read else checked_request_id(body.get("request_id"))
        if self.request_id is not None:
            body["request_id"] = self.request_id
        if body.get("wait_ms") is not None:
            raise InvalidRequestError(f"operation {n}: one in a stream does not wait for a lock")
        self.json = to_json(body)
        self.attempts = Attempts("read" if is_read else "write", policy)
        self.started = time.monotonic()
        # When to try again; `None`: never.
        self.pause: float | None = 0.0
        self.failure: Failure | None = None

    def line(self, told: int) -> bytes:
        """The line that asks for it; a node has so many milliseconds."""
        return b'{"n":%d,"timeout_ms":%d,"op":%b}\n' % (self.n, told, self.json)

    def answered(self, answer: dict[str, Any]) -> Streamed:
        """What a good answer says.

        Raises:
            ValueError: It is about another key.
        """
        asked, said = self.op.about.get("key"), with_names(answer).get("key")
        if asked is not None and said is not None and said != asked:
            raise ValueError(f"it is about `{shown(said)}`, not `{shown(asked)}`")
        is_read = self.op.body.get("op") in READS
        return Streamed(self.n, self.op, entry_of(answer) if is_read else _codec.read(wire.WriteAnswer, answer))

    def failed(self, error: QuorateError) -> Streamed:
        """It is refused for this reason, which says nothing of attempts before."""
        is_open = self.attempts.fate_open or (self.request_id is not None and error.applied == "unknown")
        if is_open or isinstance(error, GaveUpError):
            return self._gave_up(str(error), error.problem, is_open)
        return Streamed(self.n, self.op, error=error)

    def gave_up(self) -> Streamed:
        """It is given up after its last failure."""
        assert self.failure is not None
        return self._gave_up(str(self.failure), self.failure.problem, self.attempts.fate_open)

    def _gave_up(self, detail: str, problem: wire.Problem | None, is_open: bool) -> Streamed:
        kind = UnknownOutcomeError if is_open else UnavailableError
        attempts, elapsed = max(self.attempts.failures, 1), time.monotonic() - self.started
        error = kind(detail, request_id=self.request_id, attempts=attempts, elapsed=elapsed, problem=problem)
        return Streamed(self.n, self.op, error=error)

    def on_failure(self, failure: Failure, nodes: int, roll: float) -> None:
        """An attempt brought no decision."""
        self.failure = failure
        self.pause = self.attempts.on_failure(failure, nodes, roll)


class Pending:
    """The operations of one batch, until all are decided."""

    def __init__(self, address: str, sent: Iterable[Sent], nodes: int, roll: float) -> None:
        self.address = address
        self._nodes = nodes
        self._roll = roll
        # Those that the stream can still answer.
        self.waiting = {one.n: one for one in sent}
        # Those to be tried again.
        self.again: list[Sent] = []
        self._begun = b""

    def feed(self, piece: bytes) -> Iterator[Streamed]:
        """Takes what came; the operations that it decides."""
        *lines, self._begun = (self._begun + piece).split(b"\n")
        if len(self._begun) > LINE_MAX:
            raise ValueError(f"a line of more than {LINE_MAX} bytes")
        for line in lines:
            if line.strip():
                yield from self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> Iterator[Streamed]:
        number, answer = line.get("n"), line["answer"]
        if number is None:
            yield from self._refused_rest(_codec.read(wire.Problem, answer))
            return
        sent = self.waiting.pop(number, None)
        if sent is None:
            raise ValueError(f"an answer to operation {number}, which was not asked for")
        try:
            if 200 <= line["status"] < 300:
                yield sent.answered(answer)
                return
            problem = _codec.read(wire.Problem, answer)
        except (ValueError, KeyError) as error:
            yield self._strange(sent, f"the answer of status {line['status']} is not what an operation answers: {error}")
            return
        if is_final(problem) and sent.attempts.settled_by(problem):
            yield Streamed(sent.n, sent.op, error=rejected(problem))
        elif is_final(problem):
            yield sent.failed(rejected(problem))
        else:
            self._again(sent, problem)

    def _refused_rest(self, problem: wire.Problem) -> Iterator[Streamed]:
        """The node takes none of the lines that it has not begun with, and does not say which those are."""
        rest, self.waiting = list(self.waiting.values()), {}
        for sent in rest:
            if not is_final(problem):
                self._again(sent, problem)
            elif len(rest) == 1:
                yield sent.failed(rejected(problem))
            else:
                yield self._strange(sent, f"the rest of a stream is refused: {problem.detail}")

    def _strange(self, sent: Sent, detail: str) -> Streamed:
        applied = "no" if sent.request_id is None else "unknown"
        return Streamed(sent.n, sent.op, error=ProtocolError(self.address, detail, applied=applied, request_id=sent.request_id))

    def _again(self, sent: Sent, problem: wire.Problem) -> None:
        failure = Failure(self.address, "problem", f"{problem.title}: {problem.detail}", problem)
        sent.on_failure(failure, self._nodes, self._roll)
        self.again.append(sent)

    def broke(self, detail: str) -> None:
        """The stream ended: whether what it did not answer was done is open."""
        failure = Failure(self.address, "broken", detail)
        for sent in self.waiting.values():
            sent.on_failure(failure, self._nodes, self._roll)
        self.again += self.waiting.values()
        self.waiting = {}


class Batches:
    """Takes operations as many at a time as go in one request."""

    def __init__(self, ops: Iterable[Op], policy: RetryPolicy) -> None:
        self._ops = enumerate(iterated(ops, "ops"))
        self._policy = policy
        self._held: Sent | None = None

    def next(self) -> list[Sent]:
        """The next batch; an empty one at the end."""
        batch, size = [] if self._held is None else [self._held], 0 if self._held is None else len(self._held.json)
        self._held = None
        for n, op in self._ops:
            checked(op, Op, f"ops/{n}")
            sent = Sent(n, op, self._policy)
            if batch and (size + len(sent.json) > BYTES_MAX or len(batch) == OPS_MAX):
                self._held = sent
                break
            batch.append(sent)
            size += len(sent.json)
        return batch
