"""What the two clients hand out, beside the answers of the cluster.

Pure: nothing here asks a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from quorate import types as wire
from quorate._convert import value_fields
from quorate._entry import AnyEntry, Entry, entry_of
from quorate._names import shown
from quorate._requests import Call, Seconds, compact, path, post, span
from quorate._retry import Failure
from quorate.errors import QuorateError

T = TypeVar("T")
Ended = Literal["completed", "failed", "lost", "released"]


@dataclass(frozen=True, slots=True)
class Synced:
    """All initial entries were handed out, as of this revision; changes follow."""

    revision: int
    type: Literal["synced"] = "synced"


@dataclass(frozen=True, slots=True)
class Restarted:
    """The stream broke among the initial entries: those handed out so far count no more, all of them come anew."""

    type: Literal["restarted"] = "restarted"


@dataclass(frozen=True, slots=True)
class Updated(Generic[T]):
    """What an update did.

    Attributes:
        value: What it wrote; `None` where the function left things as they are.
        answer: The answer to the write, where there was one.
        tries: How often it was tried.
    """

    value: T | None
    answer: wire.WriteAnswer | None
    tries: int

    @property
    def is_written(self) -> bool:
        """Whether it wrote."""
        return self.answer is not None


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What came of waiting for a change.

    Attributes:
        kind: `none` where the entry is as it was known, `entry` where it is another, `gone` where there is none.
        entry: The entry as it is now.
    """

    kind: Literal["none", "entry", "gone"]
    entry: Entry[T] | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of entries.

    Attributes:
        entries: The entries, in order.
        cursor: For the next page; `None` on the last one. All pages show the same revision.
        revision: The revision that they are of.
        examined: How many entries a find looked at.
        index_used: The fields of the index that a find used.
    """

    entries: tuple[Entry[T], ...]
    cursor: str | None
    revision: int
    examined: int | None = None
    index_used: tuple[str, ...] | None = None


def page_of(data: dict[str, Any], model: Any) -> Page[Any]:
    """The page that this answer is."""
    entries = tuple(entry_of(entry, model) for entry in data["entries"])
    used = data.get("index_used")
    return Page(entries, data.get("cursor"), int(data["revision"]), data.get("examined"), None if used is None else tuple(used))


@dataclass(frozen=True, slots=True)
class Version:
    """What an entry was from one change on.

    Attributes:
        revision: The revision of the change.
        time: When that was, by the clock of the leader, as RFC 3339.
        op: What was done.
        entry: The entry after it; `None` where it was removed.
        principal: Who did it, where that is known.
        request_id: Under which request id.
    """

    revision: int
    time: str
    op: str
    entry: Entry[Any] | None
    principal: str | None
    request_id: str | None


@dataclass(frozen=True, slots=True)
class MirrorChange:
    """An entry of a mirror changed.

    Attributes:
        key: Which.
        entry: As it is now; `None`: it is gone.
        before: As the mirror knew it before.
        revision: The revision of the change.
    """

    key: str
    entry: AnyEntry | None
    before: AnyEntry | None
    revision: int


@dataclass(frozen=True, slots=True)
class Resynced:
    """Anything may have changed: the mirror was filled anew, or who listens was too slow."""

    revision: int


@dataclass(frozen=True, slots=True)
class Leads:
    """What an observer sees.

    Attributes:
        revision: The revision of the change.
        leader: Who leads, if anybody does.
    """

    revision: int
    leader: wire.LeaderEvent | None


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pauses between attempts: the first, the longest, and by which factor each is longer than the one before."""

    first: Seconds | None = None
    longest: Seconds | None = None
    factor: float | None = None

    def body(self) -> dict[str, Any]:
        """As the API takes it."""
        return compact(initial_ms=span(self.first, "first"), max_ms=span(self.longest, "longest"), factor=self.factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """A task to be scheduled.

    Attributes:
        payload: What it is about: what has a JSON form, or `bytes`.
        id: While it is in use, another task with it is not scheduled. Where that task is dead, the schedule is refused (`already_exists`).
        at: It is due at this time: RFC 3339, Unix milliseconds, or a `datetime` with a zone.
        delay: It is due after this time.
        every: It comes again every so often.
        cron: It comes again by this cron pattern.
        zone: The time zone of the pattern, by its IANA name; UTC without it.
        max_attempts: Most attempts.
        backoff: The pauses between them.
        keep: How long its id stays in use after it was completed.
        replace: Take the place of a task with its id that waits or is dead; refused where that is worked on or was completed.
    """

    payload: Any = None
    id: str | None = None
    at: str | int | datetime | None = None
    delay: Seconds | None = None
    every: Seconds | None = None
    cron: str | None = None
    zone: str | None = None
    max_attempts: int | None = None
    backoff: Backoff | None = None
    keep: Seconds | None = None
    replace: bool = False

    def body(self) -> dict[str, Any]:
        """As the API takes it."""
        payload = {"payload" if name == "value" else "payload_base64": part for name, part in value_fields(self.payload).items()}
        at = self.at.isoformat() if isinstance(self.at, datetime) else self.at
        return payload | compact(
            id=self.id,
            execute_at=at,
            delay_ms=span(self.delay, "delay"),
            every_ms=span(self.every, "every"),
            cron=self.cron,
            zone=self.zone,
            max_attempts=self.max_attempts,
            backoff=self.backoff.body() if self.backoff else None,
            keep_ms=span(self.keep, "keep"),
            replace=self.replace,
        )


class TaskFailure(Exception):  # noqa: N818 - it is not an error of this library
    """What a handler raises to say how its task failed. Anything else that it raises is a reason to try again, too.

    Args:
        reason: Why, for people.
        retry_in: Try again after this pause, instead of that of the task.
        dead: Do not try again: it would fail again.
        give_back: Give the task back as if it had not been claimed.

    Raises:
        InvalidRequestError: `retry_in` is no time.
    """

    def __init__(self, reason: str = "", *, retry_in: Seconds | None = None, dead: bool = False, give_back: bool = False) -> None:
        super().__init__(reason)
        # Here it still fails the task, with a reason that says so; when it is sent it would be too late.
        span(retry_in, "retry_in")
        # A name of a file in it may have half characters, which are no text.
        self.reason = str(reason).encode("utf-8", "backslashreplace").decode()
        self.retry_in = retry_in
        self.dead = dead
        self.give_back = give_back


@dataclass(slots=True)
class WorkerReport:
    """What a worker did until it was stopped.

    Attributes:
        completed: Tasks completed.
        failed: Attempts that failed.
        lost: Tasks whose claim was over before they were done, or may have been.
        released: Tasks given back.
    """

    completed: int = 0
    failed: int = 0
    lost: int = 0
    released: int = 0

    def count(self, ended: Ended) -> None:
        """One more task has ended so."""
        setattr(self, ended, getattr(self, ended) + 1)


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A node that was asked for its status.

    Attributes:
        address: `host:port`, or `unix:/path`.
        status: Its view of the cluster; `None` where it did not answer.
        error: Why there is none.
    """

    address: str
    status: wire.StatusAnswer | None
    error: QuorateError | None

    @property
    def is_ready(self) -> bool:
        """Whether the node answered, and says that it is ready."""
        return self.status is not None and self.status.ready


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """A member and what it says of itself.

    Attributes:
        id: Its id; `None` for an endpoint that did not answer and that no member names as its own.
        address: `host:port`, or `unix:/path`.
        status: Its view of the cluster; `None` where it did not answer.
        error: Why there is none.
    """

    id: int | None
    address: str
    status: wire.StatusAnswer | None
    error: QuorateError | None


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """A node that was asked for its numbers.

    Attributes:
        address: `host:port`, or `unix:/path`.
        text: The numbers as OpenMetrics text; `None` where it did not answer.
        error: Why there is none.
    """

    address: str
    text: str | None
    error: QuorateError | None


@dataclass(frozen=True, slots=True)
class SavedBackup:
    """A backup that is whole and durable.

    Attributes:
        path: Its file.
        bytes: Its length.
        rows: How many rows are in it.
        revision: The revision that it is of.
        is_checked: Whether its checksum was compared, for which the extra `quorate[xxhash]` has to be there.
    """

    path: Path
    bytes: int
    rows: int
    revision: int
    is_checked: bool


class AttemptError(Exception):
    """An attempt brought no answer."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class StrayedError(ValueError):
    """An answer whose field names something else than was asked for."""

    def __init__(self, field: str, said: str, asked: str) -> None:
        super().__init__(f"the answer is about `{shown(said)}`, not `{shown(asked)}`: a proxy may have changed the path")
        self.field, self.said = field, said


class BrokenStreamError(Exception):
    """An answer that is taken as it comes broke off."""


@dataclass(frozen=True, slots=True)
class Place:
    """The queue of a lock or an election."""

    kind: Literal["lock", "election"]
    name: str

    def path(self, verb: str = "") -> str:
        """The path of what is done to it; its own for nothing."""
        what = "the name of a lock" if self.kind == "lock" else "the name of an election"
        return path(f"/v1/{self.kind}s/", self.name, what, verb)

    @property
    def about(self) -> dict[str, str]:
        """What each answer says that it is about."""
        return {self.kind: self.name}

    @property
    def ask_verb(self) -> str:
        """What asks for a place."""
        return "/acquire" if self.kind == "lock" else "/campaign"

    def release(self, token: int, request_id: str | None = None) -> Call:
        """Gives up what this token holds."""
        if self.kind == "lock":
            return post(self.path("/release"), {"token": str(token)}, request_id=request_id, about=self.about)
        return post(self.path("/resign"), {"term": str(token)}, request_id=request_id, about=self.about)

    def leave(self, session: str, request_id: str | None = None) -> Call:
        """Gives up whatever this session has there, a place too."""
        verb = "/release" if self.kind == "lock" else "/resign"
        return post(self.path(verb), {"session": session}, request_id=request_id, about=self.about)


def problem_here(code: str, status: int, detail: str, current: AnyEntry | None = None) -> wire.Problem:
    """What a node would say, of something that a client sees by itself. It was not applied."""
    return wire.Problem(
        applied="no",
        code=code,
        detail=detail,
        request_id="",
        retry="after_reading",
        status=status,
        title=code.replace("_", " ").capitalize(),
        type=f"/errors/{code}",
        current=current,
    )
