"""What a session knows of itself: until when it certainly lives, and when to renew it.

Owns the reckoning behind every token that is handed out. Pure: time comes in as an argument, nothing is sent. A session lives at
the nodes for its time to live from the moment at which a renewal *applies*, which is after it was sent; so it certainly lives
until the last confirmed one was *sent* and that time has passed, less a margin for clocks that differ. That is reckoned by the
monotonic clock, which stands still while the machine is suspended; where the wall clock shows that it may have been, nothing is
certain until a renewal that was sent after that is confirmed.
"""

from __future__ import annotations

import time
from typing import Literal

SessionState = Literal["alive", "suspect", "lost"]
# `forked`: it is of the process that this one was forked from, which goes on to renew it.
Loss = Literal["not_renewed", "expired", "ended", "forked"]

# Part of the time to live that is given away for clocks that do not run alike, and at least so many seconds.
MARGIN_PART = 0.1
MARGIN_MIN = 0.02
# A session is renewed at least so often in its time to live, whatever a node says.
RENEWALS = 3
# Part of the time to live that one renewal may take before it is sent anew: between the first and the deadline fit three.
ROUND_PART = 1 / 6
# A renewal may always take this long, and never longer than that.
ROUND_MIN = 0.02
ROUND_MAX = 3.0


def wall_ahead() -> float:
    """By how many seconds the wall clock is ahead of the monotonic one: by more once the machine was suspended, or its clock was set."""
    return time.time() - time.monotonic()


class Lease:
    """The reckoning of one session, in seconds of a monotonic clock."""

    def __init__(self, ttl: float, renew_in: float, sent: float, sent_ahead: float | None = None) -> None:
        self.ttl = ttl
        self._renew_in = min(renew_in, ttl / RENEWALS)
        # When the last request was sent that was confirmed: a renewal, or the creation.
        self._confirmed = sent
        # By how much the wall clock was ahead then, and when the renewal was sent that is on its way.
        self._confirmed_ahead = self._sent_ahead = wall_ahead() if sent_ahead is None else sent_ahead
        # Not before this, after a renewal that failed.
        self._again_at = 0.0
        # Whether a renewal is on its way.
        self._is_renewing = False
        self._lost: Loss | None = None

    def state(self, now: float) -> SessionState:
        """What it is now."""
        if self.loss(now) is not None:
            return "lost"
        return "suspect" if now >= self._suspect_at() or self.was_suspended() else "alive"

    def was_suspended(self) -> bool:
        """Whether the wall clock moved on by so much more than the monotonic one since the last confirmation that it may be over."""
        return wall_ahead() - self._confirmed_ahead > self._margin()

    def loss(self, now: float) -> Loss | None:
        """Why it is lost, if it is."""
        if self._lost is not None:
            return self._lost
        return "not_renewed" if now >= self.deadline() else None

    def deadline(self) -> float:
        """When it is lost unless it is renewed before."""
        return self._confirmed + max(self.ttl - self._margin(), 0.0)

    def _margin(self) -> float:
        return max(self.ttl * MARGIN_PART, MARGIN_MIN)

    def _suspect_at(self) -> float:
        return min(self._confirmed + self.ttl / 2, self.deadline())

    def changes_at(self, now: float) -> float | None:
        """When its state changes next, if nothing happens meanwhile."""
        state = self.state(now)
        if state == "alive":
            return self._suspect_at()
        return self.deadline() if state == "suspect" else None

    def renewal_at(self) -> float | None:
        """When to renew it; `None` while a renewal is on its way, and once it is lost."""
        if self._is_renewing or self._lost is not None:
            return None
        due = self._confirmed if self.was_suspended() else self._confirmed + self._renew_in
        return max(due, self._again_at)

    def may_join(self, now: float) -> bool:
        """Whether it may as well be renewed now, since another one is: a quarter of the time early at most."""
        due = self.renewal_at()
        return due is not None and now + self._renew_in / 4 >= due

    def round(self) -> float:
        """How long one renewal may take before it is sent anew, perhaps by another way."""
        return min(max(self.ttl * ROUND_PART, ROUND_MIN), ROUND_MAX)

    def on_sent(self) -> None:
        """A renewal goes out."""
        self._is_renewing = True
        self._sent_ahead = wall_ahead()

    def on_confirmed(self, sent: float, now: float) -> None:
        """A renewal that went out at `sent` was confirmed. Too late is never: who looked meanwhile was told that it is lost."""
        self._is_renewing = False
        self._again_at = 0.0
        loss = self.loss(now)
        if loss is not None:
            # Never set to nothing: in the blocking client another thread may just have ended it.
            self._lost = loss
        if sent > self._confirmed:
            self._confirmed, self._confirmed_ahead = sent, self._sent_ahead

    def on_failed(self, now: float) -> None:
        """A renewal brought no answer."""
        self._is_renewing = False
        self._again_at = now + self.round() / 8

    def on_over(self, loss: Loss, now: float) -> None:
        """It is over."""
        self._is_renewing = False
        self._lost = self.loss(now) or loss
