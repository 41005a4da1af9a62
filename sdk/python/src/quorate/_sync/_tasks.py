# Written by scripts/generate_sync.py out of quorate._async; do not edit.
"""Timed tasks: scheduled, claimed, completed or failed, and what to do with dead ones. Working a queue off is `_worker`'s.

Owns that whatever is done to a claimed task carries the token of its claim, and until when the claim is certain to hold.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from quorate import types as wire
from quorate._convert import load
from quorate._lists import listed
from quorate._requests import Seconds, compact, get, path, post, query, seconds, span
from quorate._sync._base import Base
from quorate._sync._core import Core
from quorate._sync._io import now
from quorate._values import Backoff, TaskSpec
from quorate.errors import DecodeError, NotFoundError
from quorate.ops import HasId, session_id

if TYPE_CHECKING:
    from quorate._sync._worker import Handler, Worker

T = TypeVar("T")


class ClaimedTask:
    """A task that is ours. What is done to it is refused with `not_lock_holder` once the claim is over."""

    def __init__(self, queue: TaskQueue, task: wire.TaskClaimed, held_until: float) -> None:
        self.queue = queue
        self.task = task
        # Until when the claim holds at least, as it was made, by the monotonic clock.
        self.held_until = held_until

    @property
    def id(self) -> str:
        """Its id."""
        return self.task.id

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.task.attempt

    @property
    def token(self) -> int:
        """The token of the claim."""
        return self.task.token

    @property
    def payload(self) -> Any:
        """What it is about: JSON as Python has it, or `bytes`."""
        if self.task.payload_base64 is not None:
            return base64.b64decode(self.task.payload_base64)
        return self.task.payload

    def payload_as(self, model: type[T]) -> T:
        """What it is about, as `model`.

        Raises:
            DecodeError: It is none.
        """
        if self.task.lease_ms == 0:
            raise DecodeError(f"the task `{self.id}` has no payload: the claim was over when it was answered again")
        return load(model, self.payload, f"the payload of task `{self.id}`")

    def extend(self, lease: Seconds) -> wire.TaskAnswer:
        """Lets the claim hold for so long from now."""
        return self.queue.extend(self.id, self.token, lease)

    def complete(self, *, request_id: str | None = None) -> wire.TaskAnswer:
        """It is done."""
        return self.queue.complete(self.id, self.token, request_id=request_id)

    def fail(
        self,
        error: str,
        *,
        retry_in: Seconds | None = None,
        dead: bool = False,
        request_id: str | None = None,
    ) -> wire.TaskAnswer:
        """Ends the attempt: it is tried again after a pause, as long as it has attempts left, unless it is to be `dead`."""
        return self.queue.fail(self.id, self.token, error=error, retry_in=retry_in, dead=dead, request_id=request_id)

    def release(self, *, request_id: str | None = None) -> wire.TaskAnswer:
        """Gives it back as if it had not been claimed."""
        return self.queue.fail(self.id, self.token, release=True, request_id=request_id)


class TaskQueue:
    """A queue of timed tasks by its name. It is there once a task was scheduled into it."""

    def __init__(self, core: Core, name: str) -> None:
        self._core = core
        self.name = name

    def schedule(
        self,
        payload: Any = None,
        *,
        id: str | None = None,
        at: str | int | datetime | None = None,
        delay: Seconds | None = None,
        every: Seconds | None = None,
        cron: str | None = None,
        zone: str | None = None,
        max_attempts: int | None = None,
        backoff: Backoff | None = None,
        keep: Seconds | None = None,
        replace: bool = False,
        dry_run: bool = False,
        request_id: str | None = None,
    ) -> wire.TaskScheduled:
        """Schedules a task: due at once, if nothing else is said. The arguments are those of `TaskSpec`."""
        spec = TaskSpec(
            payload=payload,
            id=id,
            at=at,
            delay=delay,
            every=every,
            cron=cron,
            zone=zone,
            max_attempts=max_attempts,
            backoff=backoff,
            keep=keep,
            replace=replace,
        )
        about = {} if id is None else {"id": id}
        call = post(self._path(), spec.body() | compact(dry_run=dry_run), request_id=request_id, about=about)
        return self._core.fetch(wire.TaskScheduled, call)

    def schedule_all(self, tasks: Iterable[TaskSpec], *, request_id: str | None = None) -> wire.TasksScheduled:
        """Schedules several tasks at once, at most 1000."""
        call = post(self._path(), {"tasks": [task.body() for task in listed(tasks, TaskSpec, "tasks")]}, request_id=request_id)
        return self._core.fetch(wire.TasksScheduled, call)

    def claim(
        self,
        *,
        limit: int | None = None,
        lease: Seconds | None = None,
        wait: Seconds | None = None,
        worker: str | None = None,
        session: HasId | str | None = None,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> tuple[ClaimedTask, ...]:
        """Claims tasks that are due: one, for 30 s, without waiting, if nothing else is said.

        Args:
            limit: Most tasks, up to 100.
            lease: How long the claim holds, 1 s to 24 h.
            wait: How long to wait for something to be due, up to a minute.
            worker: Who works on them, for people.
            session: The claim is over when this session ends, at the latest.
            request_id: An id of one's own: a retry gives the same tasks.
            timeout: Deadline instead of the client's own; the wait comes on top.
        """
        body = compact(
            limit=limit, lease_ms=span(lease, "lease"), wait_ms=span(wait, "wait") or None, worker=worker, session=session_id(session)
        )
        call = post(self._path("/claim"), body, request_id=request_id, timeout=timeout)
        call.hold = 0.0 if wait is None else seconds(wait, "wait")
        began = now()
        answer = self._core.fetch(wire.TaskClaimAnswer, call)
        # The claim was made after the request came and had waited so long.
        claimed_after = began + answer.waited_ms / 1000
        return tuple(ClaimedTask(self, task, claimed_after + task.lease_ms / 1000) for task in answer.tasks)

    def extend(
        self, id: str, token: int, lease: Seconds, *, request_id: str | None = None, timeout: Seconds | None = None
    ) -> wire.TaskAnswer:
        """Lets the claim of a task hold for so long from now."""
        body = {"id": id, "token": str(token), "lease_ms": span(lease, "lease")}
        call = post(self._path("/extend"), body, request_id=request_id, timeout=timeout, about={"id": id})
        return self._core.fetch(wire.TaskAnswer, call)

    def complete(self, id: str, token: int, *, request_id: str | None = None) -> wire.TaskAnswer:
        """Completes a task that is claimed with this token."""
        call = post(self._path("/complete"), {"id": id, "token": str(token)}, request_id=request_id, about={"id": id})
        return self._core.fetch(wire.TaskAnswer, call)

    def fail(
        self,
        id: str,
        token: int,
        *,
        error: str | None = None,
        retry_in: Seconds | None = None,
        dead: bool = False,
        release: bool = False,
        request_id: str | None = None,
    ) -> wire.TaskAnswer:
        """Ends an attempt at a task that is claimed with this token.

        Args:
            id: Its id.
            token: That of the claim.
            error: Why, for people.
            retry_in: Try again after this pause, instead of that of the task.
            dead: Do not try again.
            release: Give it back as if it had not been claimed.
            request_id: An id of one's own.
        """
        body = {
            "id": id,
            "token": str(token),
            **compact(error=error, retry_in_ms=span(retry_in, "retry_in"), dead=dead, release=release),
        }
        call = post(self._path("/fail"), body, request_id=request_id, about={"id": id})
        return self._core.fetch(wire.TaskAnswer, call)

    def cancel(self, id: str, *, request_id: str | None = None) -> wire.TaskAnswer:
        """Takes a task away, whatever its state."""
        call = post(self._path("/cancel"), {"id": id}, request_id=request_id, about={"id": id})
        return self._core.fetch(wire.TaskAnswer, call)

    def requeue(self, id: str | None = None, *, oldest: int | None = None, request_id: str | None = None) -> wire.TasksRequeued:
        """Schedules a dead task again, or so many of those that died first."""
        call = post(self._path("/requeue"), compact(id=id, limit=oldest), request_id=request_id)
        return self._core.fetch(wire.TasksRequeued, call)

    def stats(self) -> wire.QueueStats:
        """What it counts."""
        return self._core.fetch(wire.QueueStats, get(self._path("/stats"), about={"queue": self.name}))

    def get(self, id: str) -> wire.TaskView | None:
        """A task; `None` if there is none."""
        try:
            target = path(self._path("/task/"), id, "the id of a task")
            return self._core.fetch(wire.TaskView, get(target, about={"id": id}))
        except NotFoundError:
            return None

    def list(self, state: str = "all", *, limit: int | None = None, cursor: str | None = None) -> wire.TaskList:
        """A page of its tasks in one state: `scheduled`, `claimed`, `dead`, `done`, `unplanned`, or `all`."""
        target = query(self._path(), state=state, limit=limit, cursor=cursor)
        return self._core.fetch(wire.TaskList, get(target))

    def worker(
        self,
        handler: Handler,
        *,
        name: str | None = None,
        concurrency: int = 1,
        lease: Seconds = 30.0,
        stop_within: Seconds = 30.0,
        on_trouble: Any = None,
    ) -> Worker:
        """A worker: claims tasks, runs the handler for each, extends their claims meanwhile, and completes or fails them.

        Args:
            handler: Does a task. When it returns the task is completed; what it raises fails it (see `TaskFailure`).
            name: Who works, for people who look at the queue.
            concurrency: Tasks at a time.
            lease: How long a claim holds before it is extended again, at least 1 s: about so long it takes until somebody else gets the
                tasks of a worker that died.
            stop_within: How long tasks may go on after the stop. Then their handlers are told to end (`run.is_lost`; those of asyncio are
                cancelled), and each task is given back once its handler has ended, its claim extended until then. What does not end
                within another `lease` is left to its claim's end.
            on_trouble: Is called with the errors that the worker lives with, such as no node being reached for a while.
        """
        from quorate._sync._worker import Worker

        return Worker(
            self,
            handler,
            name=name,
            concurrency=max(concurrency, 1),
            lease=seconds(lease, "lease"),
            stop_within=seconds(stop_within, "stop_within"),
            on_trouble=on_trouble,
        )

    def _path(self, verb: str = "") -> str:
        return path("/v1/tasks/", self.name, "the name of a queue", verb)


class Tasks(Base):
    """The part of a client that has to do with timed tasks."""

    def tasks(self, queue: str) -> TaskQueue:
        """The queue of this name."""
        return TaskQueue(self._core, queue)

    def task_queues(self, *, limit: int | None = None, cursor: str | None = None) -> wire.QueueList:
        """A page of all queues by name."""
        return self._core.fetch(wire.QueueList, get(query("/v1/tasks", limit=limit, cursor=cursor)))
