"""What the lines of a stream mean for their operations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quorate import InvalidRequestError, Op, ProtocolError, RetryPolicy, Streamed, UnavailableError, UnknownOutcomeError
from quorate._stream import BYTES_MAX, OPS_MAX, Batches, Pending, Sent

WRITTEN = {"key": "a", "revision": "7", "index": 1, "cas": "7", "version": 1}


def problem(code: str, retry: str, **more: Any) -> dict[str, Any]:
    known = {"code": code, "status": 409, "applied": "no", "retry": retry, "detail": code, "request_id": "r", "title": code}
    return {**known, "type": f"/errors/{code}", **more}


def line(n: int | None, status: int, answer: dict[str, Any]) -> bytes:
    return json.dumps({"n": n, "status": status, "term": "1", "leader": 1, "answer": answer}).encode() + b"\n"


def pending(*ops: Op, attempts_max: int = 3) -> Pending:
    return Pending("a:1", Batches(ops, RetryPolicy(attempts_max=attempts_max)).next(), 1, 0.0)


def all_of(made: Pending, *pieces: bytes) -> list[Streamed]:
    return [done for piece in pieces for done in made.feed(piece)]


def test_answers_come_in_any_order_and_in_any_pieces() -> None:
    made = pending(Op.put("a", 1), Op.get("b"))
    entry = {"key": "b", "value": 5, "content_type": "json", "cas": "1", "create_revision": "1", "mod_revision": "1", "version": 1}
    text = line(1, 200, entry) + b"\n" + line(0, 201, WRITTEN)
    done = all_of(made, *(text[at : at + 7] for at in range(0, len(text), 7)))
    assert [one.n for one in done] == [1, 0]
    assert getattr(done[0].answer, "value", None) == 5
    assert getattr(done[1].answer, "revision", None) == 7
    assert not made.waiting
    assert not made.again


def test_a_refusal_is_final_and_what_may_pass_is_tried_again() -> None:
    made = pending(Op.put("a", 1), Op.put("b", 1))
    done = all_of(made, line(0, 409, problem("cas_mismatch", "after_reading")), line(1, 503, problem("no_leader", "same_request_id")))
    assert [one.error.code for one in done if one.error] == ["cas_mismatch"]
    assert [(one.n, one.pause) for one in made.again] == [(1, 0.005)]
    assert not made.again[0].attempts.fate_open


def test_what_a_broken_stream_did_not_answer_keeps_its_id_and_is_open() -> None:
    made = pending(Op.put("a", 1), Op.get("b"), attempts_max=2)
    ids = [one.request_id for one in made.waiting.values()]
    made.broke("cut")
    assert [one.request_id for one in made.again] == ids
    again = Pending("b:1", made.again, 1, 0.0)
    # A refusal before the log says nothing of the first try; one that went through it does.
    refused = all_of(again, line(0, 401, problem("unauthenticated", "never")), line(1, 404, problem("not_found", "after_reading")))
    assert [type(one.error).__name__ for one in refused] == ["UnknownOutcomeError", "NotFoundError"]
    made = pending(Op.put("a", 1), Op.get("b"), attempts_max=1)
    made.broke("cut")
    gave_up = [one.gave_up().error for one in made.again]
    assert [type(one) for one in gave_up] == [UnknownOutcomeError, UnavailableError]
    assert gave_up[0] is not None
    assert gave_up[0].request_id is not None


def test_lines_that_a_node_does_not_take_are_told() -> None:
    made = pending(Op.put("a", 1))
    assert [one.error.code for one in all_of(made, line(None, 413, problem("too_large", "never"))) if one.error] == ["too_large"]
    made = pending(Op.put("a", 1), Op.put("b", 1))
    done = all_of(made, line(None, 413, problem("too_large", "never")))
    assert [(type(one.error), one.error.applied) for one in done if one.error] == [(ProtocolError, "unknown")] * 2
    made = pending(Op.put("a", 1))
    assert all_of(made, line(None, 503, problem("overloaded", "same_request_id"))) == []
    assert len(made.again) == 1
    made = pending(Op.put("a", 1))
    assert [type(one.error) for one in all_of(made, line(0, 200, {"what": 1}))] == [ProtocolError]
    with pytest.raises(ValueError, match="not asked for"):
        all_of(made, line(9, 200, WRITTEN))


def test_a_batch_is_bounded_by_count_and_bytes_and_ids_differ() -> None:
    batches = Batches((Op.put(f"k{n}", n) for n in range(OPS_MAX + 1)), RetryPolicy())
    first, second, third = batches.next(), batches.next(), batches.next()
    assert [len(first), len(second), len(third)] == [OPS_MAX, 1, 0]
    assert len({one.request_id for one in first + second}) == OPS_MAX + 1
    long = Batches([Op.put("a", 1), Op.put("b", "x" * BYTES_MAX), Op.put("c", 1)], RetryPolicy())
    assert [[one.n for one in long.next()] for _ in range(4)] == [[0], [1], [2], []]
    with pytest.raises(InvalidRequestError):
        Sent(0, Op({"op": "lock", "key": "k", "wait_ms": 5}), RetryPolicy())
