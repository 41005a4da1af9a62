"""A worker: claims tasks, runs a handler for each, extends their claims meanwhile, and completes or fails them.

Owns that no task is completed whose claim may be over, and that a stop gives back what it does not finish. How long a claim is certain to
hold is reckoned by this machine's clock: from before a request was sent on, so never longer than the cluster lets it hold.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from quorate._async._io import LONG_POLL, AsyncSignal, AsyncTask, now, sleep, spawn, while_true
from quorate._async._tasks import AsyncClaimedTask, AsyncTaskQueue
from quorate._fork import tell_in_child
from quorate._patience import Patience
from quorate._requests import Seconds, checked_request_id, end_of
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

Handler = Callable[["AsyncTaskRun"], Awaitable[None]]


class AsyncHold:
    """The claim of a task while it is worked on; for the worker."""

    def __init__(self, task: AsyncClaimedTask, lease: float, on_trouble: Callable[[QuorateError], None]) -> None:
        self.task = task
        # The work on it.
        self.work: AsyncTask | None = None
        # Whether the handler was begun, has ended, and was told to end.
        self.is_begun = False
        self.is_ending = False
        self.is_told = False
        self.changed = AsyncSignal()
        self.held_until = task.held_until - margin(lease)
        self._lease = lease
        self._on_trouble = on_trouble
        self._is_settled = False
        self._is_over = False
        tell_in_child(self, AsyncHold._forked)

    def _forked(self) -> None:
        """In a forked child: nobody extends it here, and it is the parent that completes the task."""
        self._is_over, self.changed = True, AsyncSignal()

    @property
    def is_over(self) -> bool:
        """Whether the claim may be over."""
        return self._is_over or now() >= self.held_until

    async def keep(self) -> None:
        """Extends the claim at a third of its time, again and again, until it is settled or over."""
        next_at = now() + min(max(self.held_until - now(), 0), self._lease) / 3
        while not self._is_settled and not self.is_over:
            seen = self.changed.count
            wait = min(next_at, self.held_until) - now()
            if wait > 0:
                await self.changed.wait(seen, wait)
            elif not self._is_settled and now() < self.held_until:
                next_at = await self._extend()

    async def _extend(self) -> float:
        """When to extend next."""
        sent, task = now(), self.task
        try:
            await task.queue.extend(task.id, task.token, self._lease, timeout=max(self.held_until - sent, 0.01))
        except NotLockHolderError:
            self.lose()
            return now()
        except QuorateError as error:
            self._on_trouble(error)
            return now() + AGAIN_AFTER
        self.held_until = sent + self._lease - margin(self._lease)
        return sent + self._lease / 3

    def tell(self) -> None:
        """The handler is to end: the worker stops. The claim holds until it has."""
        self.is_told = True
        # One that was not begun yet does not begin.
        if self.is_begun and self.work is not None:
            self.work.cancel()
        self.changed.notify()

    def lose(self) -> None:
        """The claim is over."""
        self._is_over = True
        self.changed.notify()

    def settled(self) -> None:
        """Nothing is to be extended any more."""
        self._is_settled = True
        self.changed.notify()


class AsyncTaskRun:
    """A task as its handler sees it."""

    def __init__(self, hold: AsyncHold) -> None:
        self._hold = hold

    @property
    def task(self) -> AsyncClaimedTask:
        """The task as it was claimed."""
        return self._hold.task

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
        """Whether to leave it: the claim may be over, or the worker stops and gives the task back once its handler has ended.

        Somebody else may do the task then, so nothing more should be done for it here.
        """
        return self._hold.is_told or self._hold.is_over

    async def wait_lost(self, timeout: Seconds | None = None) -> bool:
        """Waits until it is to be left, or the time is over; whether it is."""
        until, hold = end_of(timeout, now()), self._hold
        while not self.is_lost and (until is None or now() < until):
            seen = hold.changed.count
            end = hold.held_until if until is None else min(hold.held_until, until)
            if not self.is_lost:
                await hold.changed.wait(seen, end - now())
        return self.is_lost


def margin(lease: float) -> float:
    """How long before the end of a claim nothing is begun any more."""
    return min(lease / 10, MARGIN_MAX)


class AsyncWorker:
    """A worker to be run."""

    def __init__(
        self,
        queue: AsyncTaskQueue,
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
        self._changed = AsyncSignal()
        self._is_stopped = False
        self._lock = threading.Lock()
        self._running: set[AsyncHold] = set()
        # What interrupts the program, and was raised in a handler.
        self._interrupt: KeyboardInterrupt | None = None
        self.report = WorkerReport()
        tell_in_child(self, AsyncWorker._forked)

    def _forked(self) -> None:
        """In a forked child: nothing of what runs is here."""
        self._lock = threading.Lock()
        self._running, self._changed = set(), AsyncSignal()

    def stop(self) -> None:
        """Nothing more is claimed; what runs may go on for a while, is told to end after that, and is given back once it has.

        May be called from any thread, and from the handler of a signal.
        """
        self._is_stopped = True
        self._changed.notify()

    async def run(self) -> WorkerReport:
        """Works until it is stopped; ends with an error only where that does not go away, such as a wrong setting."""
        try:
            await self._serve()
        finally:
            await self._drain()
        if self._interrupt is not None:
            raise self._interrupt
        return self.report

    async def _serve(self) -> None:
        # A claim that may have claimed something. Asked again as it was, it tells, and gives that; under another id those tasks would
        # wait for the end of their leases, each with an attempt less. Nodes are sure to know the id for a while only.
        undecided: tuple[str, int] | None = None
        patience = Patience()
        while not self._is_stopped or undecided is not None:
            seen = self._changed.count
            free = self._concurrency - len(self._running)
            if undecided is None and free <= 0:
                await self._changed.wait(seen)
                continue
            if undecided is None:
                patience = Patience()
            request_id, limit = undecided or (checked_request_id(None), min(free, CLAIM_MAX))
            try:
                claim = self._claim(request_id, limit)
                tasks = await while_true(claim, self._changed, partial(self._goes_on, undecided is not None))
            except QuorateError as error:
                if error.retry != "same_request_id":
                    raise
                self._on_trouble(error)
                # A later refusal before it was proposed says nothing of what was sent before.
                is_open = undecided is not None or error.applied == "unknown"
                undecided = (request_id, limit) if is_open and not self._is_stopped and patience.left() > 0 else None
                await self._changed.wait(seen, AFTER_TROUBLE)
                continue
            # It may have claimed something before the stop: the same claim without a wait tells, and gives it.
            undecided = (request_id, limit) if tasks is None else None
            for task in tasks or ():
                self._start(task)

    def _goes_on(self, is_open: bool) -> bool:
        """Whether a claim is waited for: what may have claimed something is heard to its end."""
        return is_open or not self._is_stopped

    async def _claim(self, request_id: str, limit: int) -> tuple[AsyncClaimedTask, ...]:
        wait = 0.0 if self._is_stopped else LONG_POLL
        return await self._queue.claim(limit=limit, lease=self._lease, wait=wait, worker=self._name, request_id=request_id)

    def _start(self, task: AsyncClaimedTask) -> None:
        if task.task.lease_ms == 0:
            # Answered again when the claim was over already: there is not even a payload.
            self.report.count("lost")
            return
        hold = AsyncHold(task, self._lease, self._on_trouble)
        # Before it runs, so that it is found when it ends at once.
        self._running.add(hold)
        hold.work = spawn(self._run, hold)

    async def _run(self, hold: AsyncHold) -> None:
        keeper = spawn(hold.keep)
        ended: Ended = "lost"
        try:
            failure = await self._handle(hold)
            hold.is_ending = True
            ended = await self._finish(hold, failure)
            hold.settled()
            await keeper.join()
        finally:
            # However that ended, the place is free for another task, and the claim is not extended for ever.
            hold.settled()
            self._end(hold, ended)

    async def _handle(self, hold: AsyncHold) -> TaskFailure | None:
        """Lets the handler do the task; why it failed. What ends a program, or a coroutine, ends no more than the attempt."""
        if hold.is_told:
            return None
        hold.is_begun = True
        try:
            await self._handler(AsyncTaskRun(hold))
        except TaskFailure as error:
            return error
        except GeneratorExit:
            # The coroutine is thrown away with its event loop: it may wait for nothing any more.
            raise
        except KeyboardInterrupt as error:
            # Of who wants the program to end, and not of the task.
            self._interrupt = error
            self.stop()
            return TaskFailure("interrupted", give_back=True)
        except BaseException as error:
            return TaskFailure(f"{type(error).__name__}: {error}")
        return None

    async def _finish(self, hold: AsyncHold, failure: TaskFailure | None) -> Ended:
        """Says what came of a task whose handler has ended."""
        if hold.is_over:
            return "lost"
        if hold.is_told:
            # Whether it did the task or left it, as it was told to, nobody knows.
            return await self._give_back(hold)
        return await self._settle(hold, failure)

    def _take(self, hold: AsyncHold) -> bool:
        """Whether what comes of this task is for the caller to count."""
        with self._lock:
            is_there = hold in self._running
            self._running.discard(hold)
            return is_there

    def _end(self, hold: AsyncHold, ended: Ended) -> None:
        if self._take(hold):
            self.report.count(ended)
        self._changed.notify()

    async def _settle(self, hold: AsyncHold, failure: TaskFailure | None) -> Ended:
        """Completes or fails the task, under one request id until that is decided, or the claim or the id may be over."""
        request_id, patience = checked_request_id(None), Patience()
        while True:
            try:
                return await settle(hold.task, failure, request_id)
            except NotLockHolderError:
                return "lost"
            except QuorateError as error:
                self._on_trouble(error)
                if hold.is_over or patience.left() <= 0 or not isinstance(error, GaveUpError):
                    return "lost"
            await sleep(AGAIN_AFTER)

    async def _drain(self) -> None:
        """Waits for what runs, tells what takes too long to end, and waits for that: who has the task next is not to work beside it."""
        await self._wait_ended(now() + self._stop_within)
        for hold in list(self._running):
            # What is done is not given back: it would be done again. The end of the claim bounds how long that is tried.
            if not hold.is_ending:
                hold.tell()
        # About as long as others would wait if we had died.
        await self._wait_ended(now() + self._lease)
        for hold in list(self._running):
            if not hold.is_ending and self._take(hold):
                # It works on, so it is not given back: that would say that nobody does. Its claim ends by itself.
                hold.lose()
                hold.settled()
                self.report.count("lost")
        await self._wait_ended(None)

    async def _wait_ended(self, until: float | None) -> None:
        while self._running and (until is None or now() < until):
            seen = self._changed.count
            if self._running:
                await self._changed.wait(seen, None if until is None else until - now())

    async def _give_back(self, hold: AsyncHold) -> Ended:
        try:
            await hold.task.release()
        except QuorateError as error:
            self._on_trouble(error)
            return "lost"
        return "released"


async def settle(task: AsyncClaimedTask, failure: TaskFailure | None, request_id: str) -> Ended:
    """Says what came of a task."""
    if failure is None:
        await task.complete(request_id=request_id)
        return "completed"
    if failure.give_back:
        await task.release(request_id=request_id)
        return "released"
    await task.fail(failure.reason, retry_in=failure.retry_in, dead=failure.dead, request_id=request_id)
    return "failed"
