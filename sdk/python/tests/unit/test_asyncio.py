"""What an event loop does to a client: it cancels, it ends, and it waits where signals are not heard."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from quorate import AsyncClient, AsyncLock, AsyncSession, AsyncTaskRun, AsyncWorker, NotLockHolderError, RetryPolicy
from tests.unit.scripted import Asked, Coordination, Reply, Scripted

WRITTEN = Reply(200, {"key": "k", "revision": "7", "index": 1, "cas": "7", "version": 1})


def client_of(server: Scripted) -> AsyncClient:
    return AsyncClient(server.address, discover_members=False, retry=RetryPolicy(attempts_max=2))


@pytest.fixture
def loops_that_end() -> Iterator[None]:
    """Connections of a loop that was closed are of no more use; that nobody could tell its transports is as it has to be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


def stop_by(worker: AsyncWorker) -> Callable[[int, FrameType | None], None]:
    """A handler of signals."""

    def stop(number: int, frame: FrameType | None) -> None:
        worker.stop()

    return stop


def verbs(cluster: Coordination) -> list[tuple[str, str, bool]]:
    """What was done to tasks: the verb, the task, whether it was given back."""
    return [(verb, body["id"], body.get("release", False)) for verb, body in cluster.done if verb != "extend"]


async def hold(session: AsyncSession) -> AsyncLock:
    return await session.lock("l")


async def test_a_release_that_is_cancelled_at_the_end_of_a_block_goes_on() -> None:
    begun = threading.Event()
    hanging = [Reply(hang=30)]

    def special(asked: Asked) -> Reply | None:
        if not asked.target.endswith("/release"):
            return None
        begun.set()
        return hanging.pop() if hanging else None

    cluster = Coordination(special)
    with Scripted(cluster) as server:
        async with client_of(server) as client, client.session() as session:

            async def work() -> None:
                async with session.lock("l"):
                    pass

            task = asyncio.create_task(work())
            assert await asyncio.to_thread(begun.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # It is not asked for before it is given up.
            lock = await asyncio.wait_for(hold(session), 5)
            assert cluster.released == [{"token": "5"}]
            await lock.release()
            # The same where it was no block, but a call.
            begun.clear()
            hanging.append(Reply(hang=30))
            lock = await hold(session)
            releasing = asyncio.create_task(lock.release())
            assert await asyncio.to_thread(begun.wait, 5)
            releasing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await releasing
            with pytest.raises(NotLockHolderError):
                _ = lock.token
            await asyncio.wait_for(hold(session), 5)
            assert len(cluster.released) == 3


async def test_a_handler_that_ends_as_a_program_does_fails_its_task_only() -> None:
    cluster = Coordination()
    cluster.due = ["exits", "cancels", "good"]

    async def handle(run: AsyncTaskRun) -> None:
        if run.id == "exits":
            raise SystemExit(2)
        if run.id == "cancels":
            inner = asyncio.create_task(asyncio.sleep(30))
            inner.cancel()
            await inner
        worker.stop()

    with Scripted(cluster) as server:
        async with client_of(server) as client:
            worker = client.tasks("q").worker(handle, lease=2)
            report = await asyncio.wait_for(worker.run(), 10)
    assert (report.completed, report.failed, report.lost, report.released) == (1, 2, 0, 0)
    assert verbs(cluster) == [("fail", "exits", False), ("fail", "cancels", False), ("complete", "good", False)]
    assert [body["error"] for verb, body in cluster.done if verb == "fail"] == ["SystemExit: 2", "CancelledError: "]


async def test_a_stopped_worker_gives_a_task_back_once_its_handler_has_ended() -> None:
    cluster = Coordination()
    cluster.due = ["slow"]
    ended: list[Any] = []

    async def handle(run: AsyncTaskRun) -> None:
        worker.stop()
        try:
            await asyncio.sleep(30)
        finally:
            assert run.is_lost
            # Longer than the claim that it began with.
            await asyncio.sleep(1.2)
            ended.append(verbs(cluster))

    with Scripted(cluster) as server:
        async with client_of(server) as client:
            worker = client.tasks("q").worker(handle, lease=2, stop_within=1.2)
            report = await asyncio.wait_for(worker.run(), 10)
    # Nothing was said of it before, and the claim was extended until then.
    assert ended == [[]]
    assert verbs(cluster) == [("fail", "slow", True)]
    assert sum(verb == "extend" for verb, _ in cluster.done) >= 3
    assert (report.released, report.lost) == (1, 0)


async def test_a_handler_that_does_not_end_is_left_with_its_claim() -> None:
    cluster = Coordination()
    cluster.due = ["stuck"]
    over = asyncio.Event()

    async def handle(run: AsyncTaskRun) -> None:
        worker.stop()
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                # As some do.
                pass

    with Scripted(cluster) as server:
        async with client_of(server) as client:
            worker = client.tasks("q").worker(handle, lease=1, stop_within=0.05)
            report = await asyncio.wait_for(worker.run(), 10)
            assert (report.released, report.lost) == (0, 1)
            over.set()
            await asyncio.sleep(0.1)
    assert verbs(cluster) == []


async def test_a_task_that_is_claimed_as_the_worker_stops_is_given_back_unbegun() -> None:
    stops: list[AsyncWorker] = []

    def special(asked: Asked) -> Reply | None:
        if not asked.target.endswith("/claim"):
            return None
        cluster.due = ["late"]
        if asked.json.get("wait_ms"):
            # The answer comes too late; the same claim without a wait has the task.
            stops[0].stop()
            return Reply(hang=5)
        return None

    async def handle(run: AsyncTaskRun) -> None:
        raise AssertionError("it is not begun")

    cluster = Coordination(special)
    with Scripted(cluster) as server:
        async with client_of(server) as client:
            stops.append(client.tasks("q").worker(handle, stop_within=0))
            report = await asyncio.wait_for(stops[0].run(), 5)
    assert (report.released, report.failed) == (1, 0)
    assert verbs(cluster) == [("fail", "late", True)]


@pytest.mark.usefixtures("loops_that_end")
def test_what_cannot_be_given_up_any_more_stands_in_nobody_s_way() -> None:
    with Scripted(Coordination()) as server:
        client = client_of(server)

        async def get() -> tuple[AsyncSession, AsyncLock]:
            session = await client.session()
            return session, await session.lock("l")

        session, lock = asyncio.run(get())
        # There is no loop in which it could be tried.
        lock._hand_over()
        assert asyncio.run(asyncio.wait_for(hold(session), 5)).token == 5
        client.close()


@pytest.mark.usefixtures("loops_that_end")
def test_a_client_goes_on_in_another_event_loop() -> None:
    with Scripted([WRITTEN]) as server:
        client = client_of(server)

        async def put() -> int:
            return (await client.put("k", 1)).revision

        assert [asyncio.run(put()) for _ in range(3)] == [7, 7, 7]
        assert len({asked.headers["idempotency-key"] for asked in server.asked}) == len(server.asked) == 3
        # A loop beside it leaves its connections alone.
        loops = [asyncio.new_event_loop() for _ in range(2)]
        for _ in range(3):
            for loop in loops:
                assert loop.run_until_complete(put()) == 7
        assert server.connections == 5
        for loop in loops:
            loop.close()
        client.close()


@pytest.mark.usefixtures("loops_that_end")
def test_sessions_are_renewed_in_the_loop_that_is_there() -> None:
    with Scripted(Coordination(ttl_ms=2_000)) as server:
        client = client_of(server)

        async def hold(time: float) -> str:
            session = await client.session()
            await asyncio.sleep(time)
            return session.state

        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(hold(0)) == "alive"
        # With its work in the background left as it is.
        loop.close()
        assert asyncio.run(hold(2.5)) != "lost"
        client.close()


@pytest.mark.usefixtures("loops_that_end")
def test_a_watch_goes_on_in_another_event_loop() -> None:
    def answer(asked: Asked) -> Reply:
        at = int(asked.headers.get("last-event-id", "1")) + 1
        text = f'event: put\nid: {at}\ndata: {{"type": "put", "key": "k", "revision": "{at}"}}\n\n'
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nquorate-revision: 1\r\ntransfer-encoding: chunked\r\n\r\n"
        return Reply(raw=f"{head}{len(text):x}\r\n{text}\r\n".encode())

    with Scripted(answer) as server:
        client = client_of(server)

        async def begin() -> Any:
            watch = await client.watch("")
            assert (await watch.next()).revision == 2
            return watch

        watch = asyncio.run(begin())
        assert asyncio.run(watch.next()).revision == 3
        watch.close()
        client.close()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such signals here")
def test_a_stop_by_the_handler_of_a_signal_is_heard_at_once() -> None:
    def special(asked: Asked) -> Reply | None:
        return Reply(hang=30) if asked.json.get("wait_ms") else None

    async def handle(run: AsyncTaskRun) -> None:
        raise AssertionError("there is no task")

    async def work() -> float:
        async with client_of(server) as client:
            worker = client.tasks("q").worker(handle)
            signal.signal(signal.SIGALRM, stop_by(worker))
            # To this process while its loop waits for files, and has no timer that is due.
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            began = time.monotonic()
            await worker.run()
            return time.monotonic() - began

    before = signal.getsignal(signal.SIGALRM)
    with Scripted(Coordination(special)) as server:
        try:
            assert asyncio.run(work()) < 5
        finally:
            signal.signal(signal.SIGALRM, before)
