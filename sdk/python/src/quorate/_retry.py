"""Whether, and how soon, to try again.

Owns the policy and the bookkeeping of one call's attempts. Pure: knows neither the clock nor the network. Retries are safe by
construction: what is tried again is a read, or a write under one request id, or was certainly not applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from quorate._requests import Intent
    from quorate.types import Problem

# A node that has too much to do says when to come again. Another one may have room sooner.
ADVICE_MAX = 1.0
# Before a wait that no node could serve within a call's deadline goes on with another call.
WAIT_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How eagerly a call is retried, within its deadline.

    Attributes:
        backoff_min: Seconds of pause after all nodes failed once. The first failure is retried at another node at once.
        backoff_max: Longest pause in seconds. Short, since a new leader is there within a second.
        attempts_max: Most attempts of one call; 1 for no retries.
    """

    backoff_min: float = 0.01
    backoff_max: float = 0.25
    attempts_max: int = 1_000

    def pause(self, failures: int, nodes: int, roll: float) -> float:
        """The pause after so many failures of one call over so many nodes; `roll` in 0..1 is the jitter."""
        if failures % max(nodes, 1) != 0:
            return 0.0
        rounds = failures // max(nodes, 1)
        full = min(self.backoff_min * 2.0 ** min(max(rounds - 1, 0), 16), self.backoff_max)
        return full * (0.5 + 0.5 * roll)


# How an attempt can fail: no connection came about; one side does not believe the other's certificate; the connection was lost
# before the request went out, or after that; no answer came; the node cannot serve this now; a 5xx that is none of a node; the node is of
# another cluster, so nothing was applied in ours.
FailureKind = Literal["connect", "tls", "not_sent", "broken", "timed_out", "problem", "strange", "foreign"]


@dataclass(frozen=True, slots=True)
class Failure:
    """One attempt that brought no final answer."""

    address: str
    kind: FailureKind
    detail: str
    problem: Problem | None = None

    @property
    def leaves_fate_open(self) -> bool:
        """Whether a write could have been applied, or could still be, by this attempt."""
        if self.problem is not None:
            return self.problem.applied != "no"
        return self.kind in ("broken", "timed_out", "strange")

    def __str__(self) -> str:
        return f"{self.address}: {self.detail}"


def is_final(problem: Problem) -> bool:
    """Whether a problem document ends the call. If not, another attempt may find a better moment or a better node."""
    # A full disk does not clear up within a deadline: the caller should hear of it now.
    futile = problem.retry != "same_request_id" or problem.code == "quota_exceeded"
    return futile and problem.applied != "unknown"


class Attempts:
    """The attempts of one call so far."""

    def __init__(self, intent: Intent, policy: RetryPolicy) -> None:
        self.intent = intent
        self.policy = policy
        self.failures = 0
        # Whether an attempt may have been applied. Stays set: a later attempt's `not applied` speaks for itself only.
        self.fate_open = False

    def settled_by(self, problem: Problem) -> bool:
        """Whether a final problem document decides the whole call.

        What went through the log does, since request ids make all attempts one; a refusal before it was proposed says nothing
        about earlier attempts.
        """
        return not self.fate_open or problem.index is not None

    def on_failure(self, failure: Failure, nodes: int, roll: float) -> float | None:
        """Counts a failure; the pause before the next attempt, or `None` for none."""
        self.failures += 1
        self.fate_open = self.fate_open or (failure.leaves_fate_open and self.intent != "read")
        if (self.fate_open and self.intent == "once") or self.failures >= self.policy.attempts_max:
            return None
        if failure.problem is not None and failure.problem.code == "too_many_requests":
            advice = min((failure.problem.retry_after_ms or 0) / 1000, ADVICE_MAX)
            return max(self.policy.pause(self.failures * nodes, nodes, roll), advice)
        # Certificates do not get better within a deadline, but another node may have good ones.
        if failure.kind == "tls" and self.failures >= nodes:
            return None
        return self.policy.pause(self.failures, nodes, roll)
