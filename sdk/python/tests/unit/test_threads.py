"""What threads and signals do to the blocking client."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

import pytest

from quorate import Client, RetryPolicy, TaskFailure, TaskRun, Worker
from quorate._sync._io import Signal
from tests.unit.scripted import Asked, Coordination, Reply, Scripted


def client_of(server: Scripted) -> Client:
    return Client(server.address, discover_members=False, retry=RetryPolicy(attempts_max=2))


def stop_by(worker: Worker) -> Callable[[int, FrameType | None], None]:
    """A handler of signals."""

    def stop(number: int, frame: FrameType | None) -> None:
        worker.stop()

    return stop


def verbs(cluster: Coordination) -> list[tuple[str, str, bool]]:
    """What was done to tasks: the verb, the task, whether it was given back."""
    return [(verb, body["id"], body.get("release", False)) for verb, body in cluster.done if verb != "extend"]


class Abandoned(BaseException):
    """Neither an error nor the end of the program."""


def test_a_handler_that_ends_as_a_program_does_fails_its_task_only() -> None:
    cluster = Coordination()
    cluster.due = ["exits", "abandons", "misnames", "mistimes", "good"]

    def handle(run: TaskRun) -> None:
        if run.id == "exits":
            raise SystemExit(2)
        if run.id == "abandons":
            raise Abandoned("it")
        if run.id == "misnames":
            raise FileNotFoundError("no file a\udcff")
        if run.id == "mistimes":
            raise TaskFailure("later", retry_in=-1)
        worker.stop()

    with Scripted(cluster) as server, client_of(server) as client:
        worker = client.tasks("q").worker(handle, lease=2)
        report = worker.run()
    assert (report.completed, report.failed, report.lost, report.released) == (1, 4, 0, 0)
    failed = ["exits", "abandons", "misnames", "mistimes"]
    assert verbs(cluster) == [*(("fail", task, False) for task in failed), ("complete", "good", False)]
    errors = [body["error"] for verb, body in cluster.done if verb == "fail"]
    assert errors[:3] == ["SystemExit: 2", "Abandoned: it", r"FileNotFoundError: no file a\udcff"]
    assert errors[3].startswith("InvalidRequestError: retry_in: -1 is no time")


def test_an_interrupt_in_a_handler_gives_its_task_back_and_ends_the_worker() -> None:
    cluster = Coordination()
    cluster.due = ["interrupted"]

    def handle(run: TaskRun) -> None:
        raise KeyboardInterrupt

    with Scripted(cluster) as server, client_of(server) as client:
        worker = client.tasks("q").worker(handle, lease=2)
        with pytest.raises(KeyboardInterrupt):
            worker.run()
    assert verbs(cluster) == [("fail", "interrupted", True)]


def test_a_stopped_worker_gives_a_task_back_once_its_handler_has_ended() -> None:
    cluster = Coordination()
    cluster.due = ["slow"]
    ended: list[list[tuple[str, str, bool]]] = []

    def handle(run: TaskRun) -> None:
        worker.stop()
        assert run.wait_lost(10)
        time.sleep(1.2)
        ended.append(verbs(cluster))

    with Scripted(cluster) as server, client_of(server) as client:
        worker = client.tasks("q").worker(handle, lease=2, stop_within=1.2)
        report = worker.run()
    assert ended == [[]]
    assert verbs(cluster) == [("fail", "slow", True)]
    assert sum(verb == "extend" for verb, _ in cluster.done) >= 3
    assert (report.released, report.lost) == (1, 0)


def test_an_interrupt_while_a_lock_is_released_goes_on_in_the_background() -> None:
    main = threading.main_thread().ident
    assert main is not None
    hanging = [Reply(hang=30)]

    def special(asked: Asked) -> Reply | None:
        if not asked.target.endswith("/release") or not hanging:
            return None
        threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT)).start()
        return hanging.pop()

    cluster = Coordination(special)
    # A shell that starts tests in the background has them ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Scripted(cluster) as server, client_of(server) as client, client.session() as session:
            with pytest.raises(KeyboardInterrupt):
                with session.lock("l"):
                    pass
            with session.lock("l"):
                assert cluster.released == [{"token": "5"}]
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such signals here")
def test_a_stop_by_the_handler_of_a_signal_is_heard_at_once() -> None:
    cluster = Coordination()
    cluster.due = ["waits"]

    def handle(run: TaskRun) -> None:
        run.wait_lost(20)

    before = signal.getsignal(signal.SIGALRM)
    with Scripted(cluster) as server, client_of(server) as client:
        worker = client.tasks("q").worker(handle, stop_within=0.05)
        try:
            signal.signal(signal.SIGALRM, stop_by(worker))
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            began = time.monotonic()
            report = worker.run()
        finally:
            signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 5
    assert report.released == 1


def test_a_signal_wakes_all_and_nothing_that_is_told_in_between_is_missed() -> None:
    told = Signal()
    seen = told.count
    told.notify()
    told.wait(seen)
    seen = told.count
    woken: list[int] = []

    def wait(number: int) -> None:
        told.wait(seen)
        woken.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    assert woken == []
    told.notify()
    told.notify()
    for thread in threads:
        thread.join(5)
    assert sorted(woken) == list(range(5))
    began = time.monotonic()
    told.wait(told.count, 0.05)
    told.wait(told.count, -1)
    assert 0.04 < time.monotonic() - began < 2
