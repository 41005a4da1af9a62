from __future__ import annotations

import pytest

from quorate import _lease
from quorate._lease import Lease


def test_a_session_is_alive_then_suspect_then_lost() -> None:
    lease = Lease(10.0, 3.0, 100.0)
    assert [lease.state(at) for at in (100.0, 104.9, 105.0, 108.9, 109.0)] == ["alive", "alive", "suspect", "suspect", "lost"]
    assert lease.loss(109.0) == "not_renewed"
    assert lease.changes_at(100.0) == 105.0
    assert lease.changes_at(106.0) == 109.0
    assert lease.changes_at(120.0) is None


def test_a_confirmed_renewal_counts_from_when_it_was_sent() -> None:
    lease = Lease(10.0, 3.0, 100.0)
    assert lease.renewal_at() == 103.0
    lease.on_sent()
    assert lease.renewal_at() is None
    lease.on_confirmed(103.0, 104.5)
    assert lease.deadline() == 112.0
    assert lease.renewal_at() == 106.0


def test_a_renewal_that_failed_is_sent_again_soon() -> None:
    lease = Lease(6.0, 2.0, 0.0)
    lease.on_sent()
    lease.on_failed(2.5)
    assert lease.renewal_at() == pytest.approx(2.5 + 1.0 / 8)


def test_too_late_is_never() -> None:
    lease = Lease(1.0, 0.3, 0.0)
    assert lease.state(0.95) == "lost"
    lease.on_confirmed(0.5, 0.95)
    assert lease.state(0.96) == "lost"


def test_what_was_ended_stays_so_whatever_comes_late() -> None:
    lease = Lease(10.0, 3.0, 0.0)
    lease.on_sent()
    lease.on_over("ended", 1.0)
    lease.on_confirmed(0.5, 1.5)
    assert lease.loss(2.0) == "ended"
    assert lease.renewal_at() is None


def test_a_node_may_not_ask_for_fewer_renewals_than_three() -> None:
    assert Lease(9.0, 8.0, 0.0).renewal_at() == 3.0
    lease = Lease(9.0, 2.0, 0.0)
    assert lease.may_join(1.5)
    assert not lease.may_join(1.4)


@pytest.mark.parametrize(("ttl", "expected"), [(0.1, 0.02), (6.0, 1.0), (86_400.0, 3.0)])
def test_a_round_is_a_sixth_within_bounds(ttl: float, expected: float) -> None:
    assert Lease(ttl, ttl / 3, 0.0).round() == pytest.approx(expected)


class Ahead:
    """By how much the wall clock is ahead of the monotonic one."""

    def __init__(self) -> None:
        self.seconds = 1e9

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Ahead:
    ahead = Ahead()
    monkeypatch.setattr(_lease, "wall_ahead", ahead)
    return ahead


def test_after_a_suspend_a_session_is_suspect_until_a_renewal_that_was_sent_after_it(ahead: Ahead) -> None:
    lease = Lease(10.0, 3.0, 100.0)
    ahead.seconds += 0.9
    assert (lease.state(101.0), lease.renewal_at()) == ("alive", 103.0)
    lease.on_sent()
    ahead.seconds += 600
    assert lease.state(101.0) == "suspect"
    # It was on its way before.
    lease.on_confirmed(101.0, 102.0)
    assert (lease.state(102.0), lease.loss(102.0), lease.renewal_at()) == ("suspect", None, 101.0)
    lease.on_sent()
    lease.on_confirmed(102.0, 102.5)
    assert (lease.state(103.0), lease.renewal_at()) == ("alive", 105.0)
    # Nothing ends because a clock was set back.
    ahead.seconds -= 86_400
    assert lease.state(103.0) == "alive"


def test_a_session_whose_creation_a_suspend_fell_into_is_suspect(ahead: Ahead) -> None:
    sent_ahead = ahead()
    ahead.seconds += 600
    lease = Lease(10.0, 3.0, 100.0, sent_ahead)
    assert (lease.state(101.0), lease.renewal_at()) == ("suspect", 100.0)
