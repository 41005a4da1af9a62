# Written by scripts/generate_sync.py out of quorate._async; do not edit.
"""A worker: claims tasks, runs a handler for each, extends their claims meanwhile, and completes or fails them.

Owns that no task is completed whose claim may be over, and that a stop gives back what it does not finish. How long a claim is certain to
hold is reckoned by this machine's clock: from before a request was sent on, so never longer than the cluster lets it hold.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from quorate._requests import Seconds, checked_request_id, seconds
from quorate._sync._io import LONG_POLL, Signal, Task, now, sleep, spawn, while_true
from quorate._sync._tasks import ClaimedTask, TaskQueue
from quorate._values import Ended, TaskFailure, WorkerReport
from quorate.errors import GaveUpError, NotLockHolderError, QuorateError

# How long after a failed claim the next one is made.
AFTER_TROUBLE = 0.5
# How long after a failed extension or completion it is tried again.
AGAIN_AFTER = 0.1
# Tasks of one claim.
CLAIM_MAX = 100
# Before the end of a claim nothing is begun any more, in seconds.
MARGIN_MAX = 0.5

Handler = Callable[["TaskRun"], None]


class TaskRun:
    """A task as its handler sees it."""

    def __init__(self, task: ClaimedTask, lease: float, on_trouble: Callable[[QuorateError], None]) -> None:
        self.task = task
        # The work on it; for the worker.
        self.work: Task | None = None
        # Whether the handler has ended; for the worker.
        self.is_ending = False
        self._lease = lease
        self._on_trouble = on_trouble
        self._changed = Signal()
        self._held_until = task.held_until - margin(lease)
        self._is_settled = False
        self._is_lost = False

    @property
    def id(self) -> str:
        """The id of the task."""
        return self.task.id

    @property
    def payload(self) -> Any:
        """What it is about."""
        return self.task.payload

    @property
    def is_lost(self) -> bool:
        """Whether the claim may be over. Somebody else may do the task then, so nothing more should be done for it here."""
        return self._is_lost or now() >= self._held_until

    def wait_lost(self, timeout: Seconds | None = None) -> bool:
        """Waits until the claim may be over, or the time is; whether it may be."""
        until = None if timeout is None else now() + seconds(timeout)
        while not self.is_lost and (until is None or now() < until):
            seen = self._changed.count
            end = self._held_until if until is None else min(self._held_until, until)
            self._changed.wait(seen, end - now())
        return self.is_lost

    def keep(self) -> None:
        """Extends the claim at a third of its time, again and again, until it is settled or lost. For the worker."""
        next_at = now() + min(max(self._held_until - now(), 0), self._lease) / 3
        while not self._is_settled and not self.is_lost:
            seen = self._changed.count
            wait = min(next_at, self._held_until) - now()
            if wait > 0:
                self._changed.wait(seen, wait)
            elif not self._is_settled and now() < self._held_until:
                next_at = self._extend()

    def _extend(self) -> float:
        """When to extend next."""
        sent = now()
        try:
            self.task.queue.extend(self.id, self.task.token, self._lease, timeout=max(self._held_until - sent, 0.01))
        except NotLockHolderError:
            self.lose()
            return now()
        except QuorateError as error:
            self._on_trouble(error)
            return now() + AGAIN_AFTER
        self._held_until = sent + self._lease - margin(self._lease)
        return sent + self._lease / 3

    def lose(self) -> None:
        """The claim is over. For the worker."""
        self._is_lost = True
        self._changed.notify()

    def settled(self) -> None:
        """Nothing is to be extended any more. For the worker."""
        self._is_settled = True
        self._changed.notify()


def margin(lease: float) -> float:
    """How long before the end of a claim nothing is begun any more."""
    return min(lease / 10, MARGIN_MAX)


class Worker:
    """A worker to be run."""

    def __init__(
        self,
        queue: TaskQueue,
        handler: Handler,
        *,
        name: str | None,
        concurrency: int,
        lease: float,
        stop_within: float,
        on_trouble: Callable[[QuorateError], None] | None,
    ) -> None:
        self._queue = queue
        self._handler = handler
        self._name = name
        self._concurrency = concurrency
        self._lease = lease
        self._stop_within = stop_within
        self._on_trouble: Callable[[QuorateError], None] = on_trouble or (lambda error: None)
        self._changed = Signal()
        self._is_stopped = False
        self._lock = threading.Lock()
        self._running: set[TaskRun] = set()
        self.report = WorkerReport()

    def stop(self) -> None:
        """Nothing more is claimed; what runs may go on for a while, and is given back after that."""
        self._is_stopped = True
        self._changed.notify()

    def run(self) -> WorkerReport:
        """Works until it is stopped; ends with an error only where that does not go away, such as a wrong setting."""
        try:
            self._serve()
        finally:
            self._drain()
        return self.report

    def _serve(self) -> None:
        # A claim that may have claimed something. Asked again as it was, it tells, and gives that; under another id those tasks would
        # wait for the end of their leases, each with an attempt less.
        undecided: tuple[str, int] | None = None
        while not self._is_stopped or undecided is not None:
            seen = self._changed.count
            free = self._concurrency - len(self._running)
            if undecided is None and free <= 0:
                self._changed.wait(seen)
                continue
            request_id, limit = undecided or (checked_request_id(None), min(free, CLAIM_MAX))
            try:
                claim = self._claim(request_id, limit)
                tasks = while_true(claim, self._changed, partial(self._goes_on, undecided is not None))
            except QuorateError as error:
                if error.retry != "same_request_id":
                    raise
                self._on_trouble(error)
                # A later refusal before it was proposed says nothing of what was sent before.
                is_open = undecided is not None or error.applied == "unknown"
                undecided = (request_id, limit) if is_open and not self._is_stopped else None
                self._changed.wait(seen, AFTER_TROUBLE)
                continue
            # It may have claimed something before the stop: the same claim without a wait tells, and gives it.
            undecided = (request_id, limit) if tasks is None else None
            for task in tasks or ():
                self._start(task)

    def _goes_on(self, is_open: bool) -> bool:
        """Whether a claim is waited for: what may have claimed something is heard to its end."""
        return is_open or not self._is_stopped

    def _claim(self, request_id: str, limit: int) -> tuple[ClaimedTask, ...]:
        wait = 0.0 if self._is_stopped else LONG_POLL
        return self._queue.claim(limit=limit, lease=self._lease, wait=wait, worker=self._name, request_id=request_id)

    def _start(self, task: ClaimedTask) -> None:
        run = TaskRun(task, self._lease, self._on_trouble)
        if task.task.lease_ms == 0:
            # Answered again when the claim was over already: there is not even a payload.
            self.report.count("lost")
            return
        # Before it runs, so that it is found when it ends at once.
        self._running.add(run)
        run.work = spawn(self._run, run)

    def _run(self, run: TaskRun) -> None:
        keeper = spawn(run.keep)
        failure: TaskFailure | None = None
        try:
            self._handler(run)
        except TaskFailure as error:
            failure = error
        except Exception as error:
            failure = TaskFailure(f"{type(error).__name__}: {error}")
        run.is_ending = True
        ended: Ended = "lost" if run.is_lost else self._settle(run, failure)
        run.settled()
        keeper.join()
        self._end(run, ended)

    def _take(self, run: TaskRun) -> bool:
        """Whether what comes of this task is for the caller to count."""
        with self._lock:
            is_there = run in self._running
            self._running.discard(run)
            return is_there

    def _end(self, run: TaskRun, ended: Ended) -> None:
        if self._take(run):
            self.report.count(ended)
        self._changed.notify()

    def _settle(self, run: TaskRun, failure: TaskFailure | None) -> Ended:
        """Completes or fails the task, under one request id until that is decided or the claim may be over."""
        request_id = checked_request_id(None)
        while True:
            try:
                return settle(run.task, failure, request_id)
            except NotLockHolderError:
                return "lost"
            except QuorateError as error:
                self._on_trouble(error)
                if run.is_lost or not isinstance(error, GaveUpError):
                    return "lost"
            sleep(AGAIN_AFTER)

    def _drain(self) -> None:
        """Waits for what runs, and gives back what takes too long."""
        self._wait_ended(now() + self._stop_within)
        for run in list(self._running):
            # What is done is not given back: it would be done again. The end of the claim bounds how long that is tried.
            if not run.is_ending and self._take(run):
                # A handler of the blocking client ends in its own time; what comes of it does not count any more.
                if run.work is not None:
                    run.work.cancel()
                run.lose()
                run.settled()
                self.report.count(self._give_back(run))
        self._wait_ended(None)

    def _wait_ended(self, until: float | None) -> None:
        while self._running and (until is None or now() < until):
            seen = self._changed.count
            if self._running:
                self._changed.wait(seen, None if until is None else until - now())

    def _give_back(self, run: TaskRun) -> Ended:
        try:
            run.task.release()
        except QuorateError as error:
            self._on_trouble(error)
            return "lost"
        return "released"


def settle(task: ClaimedTask, failure: TaskFailure | None, request_id: str) -> Ended:
    """Says what came of a task."""
    if failure is None:
        task.complete(request_id=request_id)
        return "completed"
    if failure.give_back:
        task.release(request_id=request_id)
        return "released"
    task.fail(failure.reason, retry_in=failure.retry_in, dead=failure.dead, request_id=request_id)
    return "failed"
