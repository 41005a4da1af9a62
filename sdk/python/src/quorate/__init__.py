"""Client of Quorate, a replicated compare-and-swap store.

`Client` blocks, `AsyncClient` is for asyncio; both have the same methods. What the cluster answers is in `quorate.types`, what can go wrong
in `quorate.errors`, conditions in `quorate.conditions`, operations for bulks and transactions in `quorate.ops`.
"""

__version__ = "0.1.0"

from quorate._async._barrier import AsyncBarrier, AsyncLatch
from quorate._async._cluster import AsyncAccess, AsyncMembers
from quorate._async._documents import AsyncClaimed, AsyncCollection, AsyncCounter
from quorate._async._mirror import AsyncMirror, AsyncMirrorChanges
from quorate._async._observe import AsyncObservation
from quorate._async._queue import AsyncElection, AsyncLeadership, AsyncLock, AsyncNamedLock
from quorate._async._session import AsyncSession, AsyncSessionById
from quorate._async._tasks import AsyncClaimedTask, AsyncTaskQueue
from quorate._async._watch import AsyncWatch
from quorate._async._worker import AsyncTaskRun, AsyncWorker
from quorate._async.client import AsyncClient
from quorate._entry import Entry
from quorate._lease import Loss, SessionState
from quorate._names import Key
from quorate._retry import RetryPolicy
from quorate._stream import Streamed
from quorate._sync._barrier import Barrier, Latch
from quorate._sync._cluster import Access, Members
from quorate._sync._documents import Claimed, Collection, Counter
from quorate._sync._mirror import Mirror, MirrorChanges
from quorate._sync._observe import Observation
from quorate._sync._queue import Election, Leadership, Lock, NamedLock
from quorate._sync._session import Session, SessionById
from quorate._sync._tasks import ClaimedTask, TaskQueue
from quorate._sync._watch import Watch
from quorate._sync._worker import TaskRun, Worker
from quorate._sync.client import Client
from quorate._values import (
    Backoff,
    Change,
    Leads,
    MemberStatus,
    MirrorChange,
    NodeMetrics,
    NodeStatus,
    Page,
    Restarted,
    Resynced,
    SavedBackup,
    Synced,
    TaskFailure,
    TaskSpec,
    Updated,
    Version,
    WorkerReport,
)
from quorate.conditions import NOW, all_of, any_of, field, not_
from quorate.errors import (
    AlreadyExistsError,
    AlreadyQueuedError,
    BehindError,
    CasMismatchError,
    CompactedError,
    ConditionNotMetError,
    ContendedError,
    DecodeError,
    DifferentSettingsError,
    GaveUpError,
    GuardFailedError,
    InternalError,
    InvalidArgumentError,
    InvalidDocumentError,
    InvalidRequestError,
    LockedError,
    NotFoundError,
    NotLockHolderError,
    PermissionDeniedError,
    PreconditionRequiredError,
    ProtocolError,
    QuorateError,
    QuotaExceededError,
    RejectedError,
    RequestIdReusedError,
    SessionExpiredError,
    SessionLostError,
    StaleCasError,
    TooDearError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
    UniqueViolationError,
    UnknownOutcomeError,
)
from quorate.ops import Check, Guard, Op, Txn, check
from quorate.types import WatchEvent, WriteAnswer

__all__ = [
    "NOW",
    "Access",
    "AlreadyExistsError",
    "AlreadyQueuedError",
    "AsyncAccess",
    "AsyncBarrier",
    "AsyncClaimed",
    "AsyncClaimedTask",
    "AsyncClient",
    "AsyncCollection",
    "AsyncCounter",
    "AsyncElection",
    "AsyncLatch",
    "AsyncLeadership",
    "AsyncLock",
    "AsyncMembers",
    "AsyncMirror",
    "AsyncMirrorChanges",
    "AsyncNamedLock",
    "AsyncObservation",
    "AsyncSession",
    "AsyncSessionById",
    "AsyncTaskQueue",
    "AsyncTaskRun",
    "AsyncWatch",
    "AsyncWorker",
    "Backoff",
    "Barrier",
    "BehindError",
    "CasMismatchError",
    "Change",
    "Check",
    "Claimed",
    "ClaimedTask",
    "Client",
    "Collection",
    "CompactedError",
    "ConditionNotMetError",
    "ContendedError",
    "Counter",
    "DecodeError",
    "DifferentSettingsError",
    "Election",
    "Entry",
    "GaveUpError",
    "Guard",
    "GuardFailedError",
    "InternalError",
    "InvalidArgumentError",
    "InvalidDocumentError",
    "InvalidRequestError",
    "Key",
    "Latch",
    "Leadership",
    "Leads",
    "Lock",
    "LockedError",
    "Loss",
    "MemberStatus",
    "Members",
    "Mirror",
    "MirrorChange",
    "MirrorChanges",
    "NamedLock",
    "NodeMetrics",
    "NodeStatus",
    "NotFoundError",
    "NotLockHolderError",
    "Observation",
    "Op",
    "Page",
    "PermissionDeniedError",
    "PreconditionRequiredError",
    "ProtocolError",
    "QuorateError",
    "QuotaExceededError",
    "RejectedError",
    "RequestIdReusedError",
    "Restarted",
    "Resynced",
    "RetryPolicy",
    "SavedBackup",
    "Session",
    "SessionById",
    "SessionExpiredError",
    "SessionLostError",
    "SessionState",
    "StaleCasError",
    "Streamed",
    "Synced",
    "TaskFailure",
    "TaskQueue",
    "TaskRun",
    "TaskSpec",
    "TooDearError",
    "TooLargeError",
    "Txn",
    "UnauthenticatedError",
    "UnavailableError",
    "UniqueViolationError",
    "UnknownOutcomeError",
    "Updated",
    "Version",
    "Watch",
    "WatchEvent",
    "Worker",
    "WorkerReport",
    "WriteAnswer",
    "all_of",
    "any_of",
    "check",
    "field",
    "not_",
]
