"""The types of the wire, as `/openapi.json` describes them.

Written by `scripts/generate_types.py`; do not edit.
"""

from __future__ import annotations

# pyright: reportUnusedImport=false
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from quorate._entry import AnyEntry


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerLine:
    """What `POST /v1/ops` answers."""

    answer: dict[str, Any]
    leader: int | None
    n: int | None
    status: int
    term: int


Applied: TypeAlias = Literal["no", "yes", "unknown"]


BarrierState: TypeAlias = Literal["waiting", "open", "empty"]


BulkOutcome: TypeAlias = Literal["applied", "skipped", "failed"]


CampaignState: TypeAlias = Literal["leader", "candidate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionRemoved:
    """What `DELETE /v1/collections/{name}` answers."""

    index: int
    name: str
    revision: int
    replayed: bool = False


ContentType: TypeAlias = Literal["json", "bytes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CountAnswer:
    """What `POST /v1/count` answers."""

    count: int
    examined: int
    index: int
    revision: int
    cursor: str | None = None
    index_used: list[str] | None = None


DeleteCause: TypeAlias = Literal["removed", "expired", "session_ended"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DigestAnswer:
    """What `GET /v1/cluster/digest` answers."""

    digest: str
    index: int
    node_id: int
    revision: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ElectionSummary:
    """Part of others: `ElectionSummary`."""

    candidate_count: int
    election: str
    has_leader: bool


ErrorCode: TypeAlias = str


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """Part of others: `Failed`."""

    detail: str
    pointer: str
    actual: Any | None = None
    actual_start: str | None = None
    path: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultedCommand:
    """Part of others: `FaultedCommand`."""

    at: str
    cluster_clock_ms: int
    command: str
    index: int
    level: int
    number: int
    revision: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultsReply:
    """What `POST /v1/cluster/faults` answers."""

    count: int
    index: int
    revision: int
    replayed: bool = False


FieldType: TypeAlias = Literal["any", "boolean", "long", "double", "varchar", "datetime", "object", "array"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FindAnswer:
    """What `POST /v1/find` answers."""

    entries: list[AnyEntry]
    examined: int
    index: int
    revision: int
    cursor: str | None = None
    index_used: list[str] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FullIndexRule:
    """Part of others: `FullIndexRule`."""

    fields: list[str]
    unique: bool = False


IndexRule: TypeAlias = list[str] | FullIndexRule


IndexState: TypeAlias = Literal["building", "ready", "failed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexView:
    """Part of others: `IndexView`."""

    fields: list[str]
    state: IndexState
    unique: bool
    detail: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFault:
    """Part of others: `InputFault`."""

    detail: str
    pointer: str


@dataclass(frozen=True, kw_only=True, slots=True)
class InvitationCreated:
    """What `POST /v1/cluster/invitations` answers."""

    for_ms: int
    id: str
    index: int
    revision: int
    token: str
    node_id: int | None = None
    standby: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class InvitationRevoked:
    """What `DELETE /v1/cluster/invitations/{id}` answers."""

    id: str
    index: int
    revision: int
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class InvitationView:
    """Part of others: `InvitationView`."""

    created: str
    id: str
    left_ms: int
    node_id: int | None = None
    standby: bool = False
    used_by: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LatchAnswer:
    """What `GET /v1/latches/{name}` answers."""

    count: int
    index: int
    latch: str
    left: int
    open: bool
    revision: int
    opened_revision: int | None = None
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LatchRemoved:
    """What `DELETE /v1/latches/{name}` answers."""

    index: int
    latch: str
    revision: int
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaderAnswer:
    """What `POST /v1/cluster/leader` answers."""

    leader_id: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaderEvent:
    """What `GET /v1/elections/{name}/observe` answers."""

    election: str
    owner: str
    revision: int
    session: str
    since: str
    term: int
    value: Any | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaderView:
    """Part of others: `LeaderView`."""

    age_ms: int
    owner: str
    session: str
    since: str
    term: int
    value: Any | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitsAnswer:
    """What `GET /v1/limits` answers."""

    body_bytes: int
    bulk_body_bytes: int
    bulk_operations: int
    find_entries: int
    key_bytes: int
    list_entries: int
    lock_ms: int
    session_ttl_ms: int
    ttl_ms: int
    txn_steps: int
    value_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ListAnswer:
    """What `GET /v1/kv` answers."""

    count: int
    entries: list[AnyEntry]
    index: int
    revision: int
    cursor: str | None = None


LockMode: TypeAlias = Literal["exclusive", "shared"]


LockState: TypeAlias = Literal["held", "waiting"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LockSummary:
    """Part of others: `LockSummary`."""

    holder_count: int
    lock: str
    slots: int
    waiter_count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LockWaiter:
    """Part of others: `LockWaiter`."""

    age_ms: int
    mode: LockMode
    owner: str
    place: int
    session: str
    wait_left_ms: int


MemberRole: TypeAlias = Literal["voter", "learner"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MemberView:
    """Part of others: `MemberView`."""

    client_addr: str
    id: int
    peer_addr: str
    voter: bool
    last_contact_ms: int | None = None
    matched_index: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MembersChanged:
    """What `POST /v1/cluster/members` answers."""

    changed: bool
    dry_run: bool
    explanation: list[str]
    learners: list[int]
    voters: list[int]


NodeCallerKind: TypeAlias = Literal["user", "address", "local_user", "strangers"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeConfigAnswer:
    """What `GET /v1/node/config` answers."""

    node_id: int
    settings: dict[str, str]
    version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeLogAnswer:
    """What `GET /v1/node/log` answers."""

    configured: str
    filter: str
    node_id: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeLogLinesAnswer:
    """What `GET /v1/node/log/lines` answers."""

    lines: list[str]
    node_id: int


NodeResourceKind: TypeAlias = Literal[
    "waits",
    "watches",
    "arriving",
    "bodies",
    "answers",
    "values",
    "stream_ops",
    "connections",
    "coordination",
    "point",
    "scan",
    "processors",
]


OpKind: TypeAlias = Literal[
    "get",
    "insert",
    "upsert",
    "replace",
    "update",
    "remove",
    "touch",
    "get_and_touch",
    "lock",
    "get_and_lock",
    "extend",
    "unlock",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParkedWork:
    """Part of others: `ParkedWork`."""

    at: str
    index: int
    kind: str
    revision: int
    subject: str
    work: str


Permission: TypeAlias = Literal["read", "write", "lock", "admin", "backup", "monitor"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProclaimAnswer:
    """What `POST /v1/elections/{name}/proclaim` answers."""

    election: str
    index: int
    revision: int
    term: int
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueStats:
    """What `GET /v1/tasks/{queue}/stats` answers."""

    cancelled_total: int
    claimed: int
    completed_total: int
    dead: int
    died_total: int
    done: int
    failed_total: int
    queue: str
    scheduled: int
    unplanned: int
    index: int | None = None
    next_at: str | None = None
    revision: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaAmounts:
    """Part of others: `QuotaAmounts`."""

    bytes: int | None = None
    entries: int | None = None
    locks: int | None = None
    sessions: int | None = None
    tasks: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaExceeded:
    """Part of others: `QuotaExceeded`."""

    bound: int
    counts: str
    used: int
    prefix: str | None = None
    principal: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaRemoved:
    """What `DELETE /v1/quotas/default` answers."""

    index: int
    revision: int
    prefix: str | None = None
    principal: str | None = None
    replayed: bool = False


QuotaState: TypeAlias = Literal["enforced", "counting"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseAnswer:
    """What `POST /v1/locks/{name}/release` answers."""

    index: int
    lock: str
    released: bool
    revision: int
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RenewedAnswer:
    """What `POST /v1/sessions/{session}/renew` answers."""

    expires_in_ms: int
    index: int
    renew_in_ms: int
    revision: int
    session: str
    ttl_ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairAnswer:
    """What `POST /v1/cluster/members/{id}/repair` answers."""

    node_id: int
    repaired: bool


RequestState: TypeAlias = Literal["applied", "rejected"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ResignAnswer:
    """What `POST /v1/elections/{name}/resign` answers."""

    election: str
    index: int
    resigned: bool
    revision: int
    replayed: bool = False


Retry: TypeAlias = Literal["after_reading", "same_request_id", "never"]


Role: TypeAlias = Literal["leader", "follower", "candidate", "learner", "outside"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleRemoved:
    """What `DELETE /v1/access/roles/{name}` answers."""

    index: int
    revision: int
    role: str
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SequenceAnswer:
    """What `GET /v1/sequences/{name}` answers."""

    index: int
    name: str
    revision: int
    value: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SequenceNext:
    """What `POST /v1/sequences/{name}` answers."""

    first: int
    index: int
    last: int
    name: str
    revision: int
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionAnswer:
    """What `POST /v1/sessions` answers."""

    expires_in_ms: int
    index: int
    labels: dict[str, str]
    owner: str
    renew_in_ms: int
    revision: int
    session: str
    ttl_ms: int
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionEnded:
    """What `DELETE /v1/sessions/{session}` answers."""

    count: int
    ended: bool
    index: int
    revision: int
    session: str
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionExpired:
    """Part of others: `SessionExpired`."""

    expired: bool
    session: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionHold:
    """Part of others: `SessionHold`."""

    name: str
    state: LockState
    place: int | None = None
    token: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionHolds:
    """Part of others: `SessionHolds`."""

    barriers: list[str]
    count: int
    elections: list[SessionHold]
    keys: list[str]
    locks: list[SessionHold]
    tasks: list[str] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionRenewed:
    """Part of others: `SessionRenewed`."""

    expires_in_ms: int
    renew_in_ms: int
    session: str
    ttl_ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionView:
    """What `GET /v1/sessions/{session}` answers."""

    age_ms: int
    created: str
    expires_in_ms: int
    labels: dict[str, str]
    owner: str
    session: str
    ttl_ms: int
    holds: SessionHolds | None = None
    index: int | None = None
    revision: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusAnswer:
    """What `GET /v1/cluster/status` answers."""

    applied_index: int
    cluster_clock_ms: int
    cluster_id: str
    committed_index: int
    digest: str
    incarnation: str
    last_log_index: int
    members: list[MemberView]
    node_id: int
    oldest_revision: int
    purged_index: int
    ready: bool
    revision: int
    role: Role
    snapshot_index: int
    term: int
    version: str
    disk_free_bytes: int | None = None
    disk_size_bytes: int | None = None
    entries: int | None = None
    epoch: int | None = None
    epoch_revision: int | None = None
    history_bytes: int | None = None
    leader_client_addr: str | None = None
    leader_id: int | None = None
    level: int | None = None
    level_known: int | None = None
    quota_bytes: int | None = None
    stored_bytes: int | None = None
    warnings: list[str] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskBackoff:
    """Part of others: `TaskBackoff`."""

    factor: float | None = None
    initial_ms: int | None = None
    max_ms: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskClaimed:
    """Part of others: `TaskClaimed`."""

    attempt: int
    execute_at: str
    id: str
    lease_ms: int
    max_attempts: int
    planned_at: str
    token: int
    last_error: str | None = None
    payload: Any | None = None
    payload_base64: str | None = None


TaskState: TypeAlias = Literal["scheduled", "claimed", "dead", "unplanned", "done", "gone"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskView:
    """What `GET /v1/tasks/{queue}/task/{id}` answers."""

    attempts: int
    backoff: TaskBackoff
    created_at: str
    id: str
    max_attempts: int
    runs: int
    state: TaskState
    cron: str | None = None
    died_at: str | None = None
    every_ms: int | None = None
    execute_at: str | None = None
    index: int | None = None
    kept_ms: int | None = None
    last_error: str | None = None
    lease_ms: int | None = None
    payload: Any | None = None
    payload_base64: str | None = None
    revision: int | None = None
    session: str | None = None
    worker: str | None = None
    zone: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TasksRequeued:
    """What `POST /v1/tasks/{queue}/requeue` answers."""

    count: int
    index: int
    more: bool
    revision: int
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenCreated:
    """What `POST /v1/access/tokens` answers."""

    id: str
    index: int
    revision: int
    token: str
    user: str
    expires: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenRemoved:
    """What `DELETE /v1/access/tokens/{id}` answers."""

    id: str
    index: int
    revision: int
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenView:
    """Part of others: `TokenView`."""

    created: str
    id: str
    note: str
    user: str
    expired: bool = False
    expires: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnFailed:
    """Part of others: `TxnFailed`."""

    detail: str
    key: str
    pointer: str
    current: AnyEntry | None = None
    failed: list[Failed] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnRead:
    """Part of others: `TxnRead`."""

    entry: AnyEntry | None
    key: str
    op: OpKind


TxnTag: TypeAlias = Literal["txn"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnWritten:
    """Part of others: `TxnWritten`."""

    key: str
    op: OpKind
    revision: int
    cas: str | None = None
    create_revision: int | None = None
    lock_ms: int | None = None
    prev: AnyEntry | None = None
    ttl_ms: int | None = None
    version: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class UserAnswer:
    """What `GET /v1/access/users/{name}` answers."""

    created: str
    roles: list[str]
    set_revision: int
    user: str
    index: int | None = None
    replayed: bool = False
    revision: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class UserList:
    """What `GET /v1/access/users` answers."""

    index: int
    revision: int
    users: list[UserAnswer]
    cursor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class UserRemoved:
    """What `DELETE /v1/access/users/{name}` answers."""

    index: int
    revision: int
    tokens: int
    user: str
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionAnswer:
    """What `GET /version` answers."""

    api: str
    version: str
    etcdcluster: str | None = None
    etcdserver: str | None = None


WatchEndCode: TypeAlias = Literal[
    "compacted",
    "slow_consumer",
    "no_leader",
    "stopping",
    "quarantined",
    "permission_denied",
    "unauthenticated",
    "too_dear",
    "not_ready",
    "timeout",
    "too_many_requests",
    "internal",
]


WatchEventKind: TypeAlias = Literal["put", "delete"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteAnswer:
    """What `DELETE /v1/kv/{key}` answers."""

    index: int
    key: str
    revision: int
    cas: str | None = None
    create_revision: int | None = None
    dry_run: bool = False
    lock_ms: int | None = None
    prev: AnyEntry | None = None
    replayed: bool = False
    ttl_ms: int | None = None
    version: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessCheckAnswer:
    """What `GET /v1/access/check` answers."""

    access_revision: int
    allowed: bool
    permission: Permission
    name: str | None = None
    prefix: str | None = None
    user: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditView:
    """Part of others: `AuditView`."""

    effect: str
    index: int
    op: str
    revision: int
    time: str
    principal: str | None = None
    refusal: ErrorCode | None = None
    request_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BarrierAnswer:
    """What `GET /v1/barriers/{name}` answers."""

    barrier: str
    entered: int
    index: int
    revision: int
    state: BarrierState
    opened_revision: int | None = None
    parties: int | None = None
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkResult:
    """Part of others: `BulkResult`."""

    key: str
    n: int
    outcome: BulkOutcome
    revision: int
    cas: str | None = None
    code: ErrorCode | None = None
    create_revision: int | None = None
    current: AnyEntry | None = None
    detail: str | None = None
    errors: list[InputFault] | None = None
    failed: list[Failed] | None = None
    lock_ms: int | None = None
    prev: AnyEntry | None = None
    status: int | None = None
    ttl_ms: int | None = None
    version: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignAnswer:
    """What `POST /v1/elections/{name}/campaign` answers."""

    election: str
    index: int
    revision: int
    session: str
    state: CampaignState
    ahead: int | None = None
    place: int | None = None
    replayed: bool = False
    term: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckAnswer:
    """What `GET /v1/locks/{name}/check` answers."""

    held: bool
    index: int
    lock: str
    mode: LockMode
    revision: int
    session: str
    token: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimAnswer:
    """What `POST /v1/claim` answers."""

    count: int
    entries: list[AnyEntry]
    examined: int
    index: int
    more: bool
    revision: int
    dry_run: bool = False
    failed: list[BulkResult] | None = None
    index_used: list[str] | None = None
    left_out: bool = False
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ElectionAnswer:
    """What `GET /v1/elections/{name}` answers."""

    candidate_count: int
    candidates: list[LockWaiter]
    delay_left_ms: int
    election: str
    index: int
    leader: LeaderView | None
    revision: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ElectionList:
    """What `GET /v1/elections` answers."""

    elections: list[ElectionSummary]
    index: int
    revision: int
    cursor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultsAnswer:
    """What `GET /v1/cluster/faults` answers."""

    commands: int
    kept: list[FaultedCommand]
    parked: int
    work: list[ParkedWork]


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldRule:
    """Part of others: `FieldRule`."""

    auto_update: bool = False
    default: Any | None = None
    max: int | None = None
    sequence: str | None = None
    type: FieldType | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """Part of others: `Grant`."""

    permission: Permission
    prefix: str


@dataclass(frozen=True, kw_only=True, slots=True)
class InvitationList:
    """What `GET /v1/cluster/invitations` answers."""

    index: int
    invitations: list[InvitationView]
    revision: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LockHolder:
    """Part of others: `LockHolder`."""

    age_ms: int
    mode: LockMode
    owner: str
    session: str
    token: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LockList:
    """What `GET /v1/locks` answers."""

    index: int
    locks: list[LockSummary]
    revision: int
    cursor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """Part of others: `Member`."""

    client_addr: str
    healthy: bool
    id: int
    leader: bool
    peer_addr: str
    role: MemberRole
    lag: int | None = None
    last_contact_ms: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MembersAnswer:
    """What `GET /v1/cluster/members` answers."""

    changing: bool
    leader_id: int
    members: list[Member]
    needed: int
    prospect: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeCaller:
    """Part of others: `NodeCaller`."""

    held: int
    kind: NodeCallerKind
    name: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeResource:
    """Part of others: `NodeResource`."""

    bound: int
    callers: list[NodeCaller]
    refused: int
    resource: NodeResourceKind
    share: int
    share_refused: int
    taken: int
    held_up: int | None = None
    late: bool = False


OpAnswer: TypeAlias = WriteAnswer | AnyEntry


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Part of others: `Problem`."""

    applied: Applied
    code: ErrorCode
    detail: str
    request_id: str
    retry: Retry
    status: int
    title: str
    type: str
    current: AnyEntry | None = None
    errors: list[InputFault] | None = None
    failed: list[Failed] | None = None
    holders: int | None = None
    index: int | None = None
    oldest_revision: int | None = None
    quota: QuotaExceeded | None = None
    replayed: bool = False
    retry_after_ms: int | None = None
    revision: int | None = None
    waiters: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueList:
    """What `GET /v1/tasks` answers."""

    index: int
    queues: list[QueueStats]
    revision: int
    cursor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaAnswer:
    """What `GET /v1/quotas/default` answers."""

    bounds: QuotaAmounts
    created: str | None = None
    index: int | None = None
    is_default: bool = False
    prefix: str | None = None
    principal: str | None = None
    replayed: bool = False
    revision: int | None = None
    set_revision: int | None = None
    state: QuotaState | None = None
    used: QuotaAmounts | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaList:
    """What `GET /v1/quotas/prefixes` answers."""

    index: int
    quotas: list[QuotaAnswer]
    revision: int
    cursor: str | None = None


Renewal: TypeAlias = SessionRenewed | SessionExpired


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestAnswer:
    """What `GET /v1/requests/{id}` answers."""

    decided_index: int
    decided_revision: int
    index: int
    request_id: str
    revision: int
    state: RequestState
    cas: str | None = None
    code: ErrorCode | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleAnswer:
    """What `GET /v1/access/roles/{name}` answers."""

    created: str
    grants: list[Grant]
    role: str
    set_revision: int
    index: int | None = None
    replayed: bool = False
    revision: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleList:
    """What `GET /v1/access/roles` answers."""

    index: int
    revision: int
    roles: list[RoleAnswer]
    cursor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SelfAnswer:
    """What `GET /v1/access/self` answers."""

    access_revision: int
    grants: list[Grant]
    user: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionList:
    """What `GET /v1/sessions` answers."""

    index: int
    revision: int
    sessions: list[SessionView]
    cursor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskAnswer:
    """What `POST /v1/tasks/{queue}/cancel` answers."""

    attempts: int
    id: str
    index: int
    max_attempts: int
    revision: int
    state: TaskState
    execute_at: str | None = None
    lease_ms: int | None = None
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskClaimAnswer:
    """What `POST /v1/tasks/{queue}/claim` answers."""

    count: int
    index: int
    revision: int
    tasks: list[TaskClaimed]
    waited_ms: int
    next_at: str | None = None
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskList:
    """What `GET /v1/tasks/{queue}` answers."""

    index: int
    revision: int
    tasks: list[TaskView]
    cursor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskScheduled:
    """Part of others: `TaskScheduled`."""

    attempts: int
    created: bool
    id: str
    max_attempts: int
    state: TaskState
    dry_run: bool = False
    execute_at: str | None = None
    index: int | None = None
    replaced: bool = False
    replayed: bool = False
    revision: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TasksScheduled:
    """Part of others: `TasksScheduled`."""

    created: int
    index: int
    revision: int
    tasks: list[TaskScheduled]
    dry_run: bool = False
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenList:
    """What `GET /v1/access/tokens` answers."""

    index: int
    revision: int
    tokens: list[TokenView]
    cursor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchEnd:
    """Part of others: `WatchEnd`."""

    code: WatchEndCode
    detail: str
    oldest_revision: int | None = None
    revision: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchEvent:
    """What `GET /v1/watch` answers."""

    key: str
    revision: int
    type: WatchEventKind
    cause: DeleteCause | None = None
    entry: AnyEntry | None = None
    index: int | None = None
    initial: bool = False
    prev: AnyEntry | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WhereAnswer:
    """What `POST /v1/delete_where` answers."""

    applied: int
    examined: int
    failed: int
    index: int
    matched: int
    results: list[BulkResult]
    revision: int
    skipped: int
    cursor: str | None = None
    dry_run: bool = False
    left_out: bool = False
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AcquireAnswer:
    """What `POST /v1/locks/{name}/acquire` answers."""

    index: int
    lock: str
    mode: LockMode
    revision: int
    session: str
    state: LockState
    ahead: int | None = None
    holders: list[LockHolder] | None = None
    place: int | None = None
    replayed: bool = False
    token: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditAnswer:
    """What `GET /v1/audit` answers."""

    index: int
    key: str
    lines: list[AuditView]
    oldest_revision: int
    revision: int
    cursor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkAnswer:
    """What `POST /v1/bulk` answers."""

    applied: int
    failed: int
    index: int
    results: list[BulkResult]
    revision: int
    skipped: int
    dry_run: bool = False
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionRules:
    """What `PUT /v1/collections/{name}` takes."""

    fields: dict[str, FieldRule] | None = None
    indexes: list[IndexRule] | None = None
    precondition_required: bool = False
    required: list[str] | None = None
    ttl_ms: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LockAnswer:
    """What `GET /v1/locks/{name}` answers."""

    delay_left_ms: int
    holder_count: int
    holders: list[LockHolder]
    index: int
    lock: str
    queue: list[LockWaiter]
    revision: int
    slots: int
    waiter_count: int
    mode: LockMode | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeCallersAnswer:
    """What `GET /v1/node/callers` answers."""

    node_id: int
    resources: list[NodeResource]


@dataclass(frozen=True, kw_only=True, slots=True)
class RenewAnswer:
    """What `POST /v1/sessions/renew` answers."""

    index: int
    revision: int
    sessions: list[Renewal]


ScheduleAnswer: TypeAlias = TaskScheduled | TasksScheduled


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionAnswer:
    """What `GET /v1/collections/{name}` answers."""

    cas: str
    create_revision: int
    indexes: list[IndexView]
    mod_revision: int
    name: str
    rules: CollectionRules
    version: int
    index: int | None = None
    replayed: bool = False
    revision: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionList:
    """What `GET /v1/collections` answers."""

    collections: list[CollectionAnswer]
    index: int
    revision: int
    cursor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnAnswer:
    """What `POST /v1/txn` answers."""

    index: int
    results: list[TxnResult]
    revision: int
    succeeded: bool
    dry_run: bool = False
    failed: list[TxnFailed] | None = None
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnBlockResult:
    """Part of others: `TxnBlockResult`."""

    op: TxnTag
    results: list[TxnResult]
    succeeded: bool
    failed: list[TxnFailed] | None = None


TxnResult: TypeAlias = TxnRead | TxnWritten | TxnBlockResult
