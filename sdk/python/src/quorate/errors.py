"""What a failed call means for its caller.

Each error answers the two questions that matter: was it applied (`applied`), and what to do (`retry`). Nothing is guessed:
where the outcome of a write is not known, the error says so and has the id to ask with.

Owns the classes. `QuorateError` is above all of them; what the cluster refuses is a `RejectedError`, with a class for each code
that programs handle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from quorate._entry import Entry
    from quorate.types import Failed, InputFault, Problem

Applied = Literal["no", "yes", "unknown"]
Retry = Literal["never", "after_reading", "same_request_id"]


class QuorateError(Exception):
    """A call did not succeed.

    Attributes:
        code: What it is, such as `cas_mismatch`; of a newer cluster it may be one that is not listed here. `None` where no node
            said anything.
        status: The status of the answer; `None` without one.
        applied: Whether the call took effect: `no`, `yes` or `unknown`.
        retry: What to do: `never`, `after_reading` (read, and decide anew) or `same_request_id` (send the same again).
        detail: What is wrong, in words.
        request_id: The id under which `client.request_outcome` tells what became of a write.
        problem: The whole answer of the cluster, where there is one.
    """

    code: str | None = None
    status: int | None = None
    applied: Applied = "no"
    retry: Retry = "never"
    problem: Problem | None = None

    def __init__(self, detail: str, *, request_id: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.request_id = request_id

    @property
    def current(self) -> Entry[Any] | None:
        """The entry as it is, where the cluster showed it."""
        return self.problem.current if self.problem else None

    @property
    def failed(self) -> tuple[Failed, ...]:
        """The conditions that did not hold, and what was found instead."""
        return tuple(self.problem.failed or ()) if self.problem else ()

    @property
    def errors(self) -> tuple[InputFault, ...]:
        """What is wrong with the request, each with a pointer to it."""
        return tuple(self.problem.errors or ()) if self.problem else ()

    @property
    def oldest_revision(self) -> int | None:
        """The oldest revision that can be read, where one was asked for that cannot."""
        return self.problem.oldest_revision if self.problem else None

    @property
    def retry_after(self) -> float | None:
        """Seconds after which it makes sense to ask again, where the cluster says so."""
        after = self.problem.retry_after_ms if self.problem else None
        return None if after is None else after / 1000

    def __str__(self) -> str:
        name = f"{self.code}: " if self.code else ""
        return f"{name}{self.detail} (applied: {self.applied})"


class RejectedError(QuorateError):
    """The cluster decided against it. Definite."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail, request_id=problem.request_id)
        self.problem = problem
        self.code = problem.code
        self.status = problem.status
        self.applied = problem.applied
        self.retry = problem.retry


class AlreadyExistsError(RejectedError):
    """The key exists; `current` is its entry."""


class StaleCasError(RejectedError):
    """What the cas is of has changed since, or has gone. It is a `CasMismatchError` where the answer shows what is there."""


class CasMismatchError(StaleCasError):
    """The entry, or the collection, has changed since its cas was read.

    `current` is the entry as it is; of a collection it has the name as key and the rules as value.
    """

    def __init__(self, problem: Problem, current: Entry[Any]) -> None:
        super().__init__(problem)
        self._current = current

    @property
    def current(self) -> Entry[Any]:
        """The entry as it is."""
        return self._current


class ConditionNotMetError(RejectedError):
    """A condition does not hold; `failed` says which, `current` is the entry as it is."""


class NotFoundError(RejectedError):
    """There is no such key, name, session or id."""


class LockedError(RejectedError):
    """Somebody else holds it."""


class NotLockHolderError(RejectedError):
    """It is not locked by the caller, or not any more."""


class GuardFailedError(RejectedError):
    """The token of the guard does not hold the lock, or lead, any more. Nothing was written."""


class SessionExpiredError(RejectedError):
    """There is no such session, or not any more."""


class AlreadyQueuedError(RejectedError):
    """The session has a place in the queue with another mode or value."""


class DifferentSettingsError(RejectedError):
    """The lock, barrier or latch is in use with other settings."""


class CompactedError(RejectedError):
    """The revision cannot be read any more; `oldest_revision` can."""


class PreconditionRequiredError(RejectedError):
    """The collection takes no write that does not say what it expects."""


class InvalidDocumentError(RejectedError):
    """The document does not fit the rules of its collection; `errors` points at each fault."""


class UniqueViolationError(RejectedError):
    """Another document has these values in the fields of a unique index."""


class InvalidArgumentError(RejectedError):
    """The request is not well formed; `errors` points at each fault."""


class RequestIdReusedError(RejectedError):
    """The request id was used before, for another request."""


class TooDearError(RejectedError):
    """Conditions or operations take too much work on one document."""


class TooLargeError(RejectedError):
    """A key, a value, a body or an answer is over its limit."""


class QuotaExceededError(RejectedError):
    """There is no room for more."""


class UnauthenticatedError(RejectedError):
    """It is not known who asks."""


class PermissionDeniedError(RejectedError):
    """Who asks may not do this."""


class InternalError(RejectedError):
    """The cluster met a fault of its own."""


CLASSES: dict[str, type[RejectedError]] = {
    "already_exists": AlreadyExistsError,
    "already_queued": AlreadyQueuedError,
    "cas_mismatch": StaleCasError,
    "compacted": CompactedError,
    "condition_not_met": ConditionNotMetError,
    "different_settings": DifferentSettingsError,
    "guard_failed": GuardFailedError,
    "internal": InternalError,
    "invalid_argument": InvalidArgumentError,
    "invalid_document": InvalidDocumentError,
    "locked": LockedError,
    "not_found": NotFoundError,
    "not_lock_holder": NotLockHolderError,
    "permission_denied": PermissionDeniedError,
    "precondition_required": PreconditionRequiredError,
    "quota_exceeded": QuotaExceededError,
    "request_id_reused": RequestIdReusedError,
    "session_expired": SessionExpiredError,
    "too_dear": TooDearError,
    "too_large": TooLargeError,
    "unauthenticated": UnauthenticatedError,
    "unique_violation": UniqueViolationError,
    "unknown_field": InvalidArgumentError,
}


def rejected(problem: Problem) -> RejectedError:
    """The error of a problem document; of a code that is not known it is a plain `RejectedError`."""
    if problem.code == "cas_mismatch" and problem.current is not None:
        return CasMismatchError(problem, problem.current)
    return CLASSES.get(problem.code, RejectedError)(problem)


class GaveUpError(QuorateError):
    """A call was tried until its time or its tries ran out.

    Attributes:
        attempts: How often it was sent, or tried to be sent.
        elapsed: Seconds that took.
    """

    retry = "same_request_id"

    def __init__(self, detail: str, *, request_id: str | None, attempts: int, elapsed: float, problem: Problem | None) -> None:
        tries = "try" if attempts == 1 else "tries"
        super().__init__(f"gave up after {attempts} {tries} in {elapsed:.2f} s; the last: {detail}", request_id=request_id)
        self.attempts = attempts
        self.elapsed = elapsed
        self.problem = problem
        if problem is not None:
            self.code, self.status = problem.code, problem.status


class UnavailableError(GaveUpError):
    """No node could serve it in time. It was not applied and never will be."""

    applied = "no"


class UnknownOutcomeError(GaveUpError):
    """A write may have been applied, and no node could tell in time. Send it again under its `request_id`, or ask with that."""

    applied = "unknown"


class ProtocolError(QuorateError):
    """A server answered something that is not Quorate's API."""

    def __init__(self, address: str, detail: str, *, applied: Applied, request_id: str | None) -> None:
        super().__init__(f"unexpected answer from {address}: {detail}", request_id=request_id)
        self.address = address
        self.applied = applied


class ContendedError(QuorateError):
    """An update lost the race for its entry every time. Not applied; `current` is the entry as the last refusal showed it."""

    retry = "after_reading"

    def __init__(self, key: str, tries: int, last: RejectedError) -> None:
        super().__init__(f"`{key}` changed under each of {tries} tries to update it")
        self.key, self.tries = key, tries
        self.code, self.status, self.problem = last.code, last.status, last.problem


class SessionLostError(QuorateError):
    """A session is lost, or no renewal of it was confirmed lately: what it holds is not certain. Nothing was done.

    Attributes:
        session: Its id.
        loss: Why it is lost: `not_renewed`, `expired`, `ended` or `forked`; `None` where it is only suspect.
    """

    code = "session_expired"
    retry = "after_reading"

    def __init__(self, session: str, loss: str | None) -> None:
        words = {
            None: "is suspect: no renewal of it was confirmed lately",
            "not_renewed": "is lost: no renewal was confirmed in time",
            "expired": "is lost: the cluster says that it is over",
            "ended": "is lost: it was ended",
            "forked": "is lost here: it is of the process that this one was forked from",
        }
        super().__init__(f"session {session} {words.get(loss, loss)}")
        self.session, self.loss = session, loss


class BehindError(QuorateError):
    """A mirror did not come to a revision in time. What it has is older."""

    code = "timeout"
    retry = "after_reading"

    def __init__(self, prefix: str, revision: int, reached: int) -> None:
        super().__init__(f"the mirror of `{prefix}` is at revision {reached}, not yet at {revision}")
        self.prefix, self.revision, self.reached = prefix, revision, reached


class InvalidRequestError(QuorateError, ValueError):
    """The call makes no sense and was not sent."""


class DecodeError(QuorateError, ValueError):
    """A value is not of the model that was asked for."""
