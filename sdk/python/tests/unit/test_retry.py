from __future__ import annotations

from typing import Any

import pytest

from quorate._requests import Intent
from quorate._retry import ADVICE_MAX, Attempts, Failure, FailureKind, RetryPolicy, is_final
from quorate.types import Problem


def problem(code: str, applied: Any = "no", retry: Any = "same_request_id", **more: Any) -> Problem:
    shared: dict[str, Any] = {"detail": "", "request_id": "r", "status": 503, "title": "", "type": ""}
    return Problem(code=code, applied=applied, retry=retry, **{**shared, **more})


def failure(kind: FailureKind, told: Problem | None = None) -> Failure:
    return Failure("n:1", kind, "", told)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (problem("cas_mismatch", retry="after_reading"), True),
        (problem("no_leader"), False),
        (problem("quota_exceeded"), True),
        (problem("timeout", applied="unknown"), False),
        (problem("internal", applied="unknown", retry="never"), False),
        (problem("internal", retry="never"), True),
    ],
)
def test_which_problems_end_a_call(told: Problem, expected: bool) -> None:
    assert is_final(told) is expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("connect", False), ("tls", False), ("not_sent", False), ("broken", True), ("timed_out", True), ("strange", True)],
)
def test_which_failures_leave_the_fate_of_a_write_open(kind: FailureKind, expected: bool) -> None:
    assert failure(kind).leaves_fate_open is expected


@pytest.mark.parametrize(("intent", "goes_on"), [("read", True), ("write", True), ("once", False)])
def test_what_has_no_request_id_is_not_sent_again_once_it_may_be_applied(intent: Intent, goes_on: bool) -> None:
    attempts = Attempts(intent, RetryPolicy())
    assert attempts.on_failure(failure("connect"), 3, 0.5) is not None
    assert (attempts.on_failure(failure("broken"), 3, 0.5) is not None) is goes_on


def test_a_refusal_before_the_log_says_nothing_of_earlier_tries() -> None:
    attempts = Attempts("write", RetryPolicy())
    attempts.on_failure(failure("broken"), 3, 0.5)
    assert attempts.fate_open
    assert not attempts.settled_by(problem("permission_denied", retry="never"))
    assert attempts.settled_by(problem("cas_mismatch", retry="after_reading", index=7))


def test_pauses_come_after_all_nodes_failed_and_grow_to_a_bound() -> None:
    policy = RetryPolicy(backoff_min=0.01, backoff_max=0.1)
    assert [policy.pause(n, 3, 1.0) for n in (1, 2)] == [0.0, 0.0]
    assert [round(policy.pause(n, 1, 1.0), 3) for n in (1, 2, 3, 4, 5, 60)] == [0.01, 0.02, 0.04, 0.08, 0.1, 0.1]
    assert policy.pause(1, 1, 0.0) == pytest.approx(0.005)


def test_a_node_with_too_much_to_do_is_given_the_time_that_it_asks_for() -> None:
    attempts = Attempts("read", RetryPolicy())
    told = problem("too_many_requests", retry_after_ms=400)
    assert attempts.on_failure(failure("problem", told), 3, 0.5) == pytest.approx(0.4)
    told = problem("too_many_requests", retry_after_ms=60_000)
    assert attempts.on_failure(failure("problem", told), 3, 0.5) == ADVICE_MAX


def test_certificates_do_not_get_better_and_tries_are_bounded() -> None:
    attempts = Attempts("read", RetryPolicy())
    assert attempts.on_failure(failure("tls"), 2, 0.5) is not None
    assert attempts.on_failure(failure("tls"), 2, 0.5) is None
    attempts = Attempts("read", RetryPolicy(attempts_max=1))
    assert attempts.on_failure(failure("connect"), 2, 0.5) is None
