# Written by scripts/generate_sync.py out of test_node_async.py; do not edit.
"""The client against real nodes."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from quorate import (
    Backoff,
    CasMismatchError,
    Client,
    DecodeError,
    GuardFailedError,
    InvalidArgumentError,
    InvalidRequestError,
    LockedError,
    MirrorChange,
    NotFoundError,
    Op,
    RetryPolicy,
    SessionLostError,
    Synced,
    TaskFailure,
    TaskRun,
    TaskSpec,
    Txn,
    UnavailableError,
    WatchEvent,
    check,
    field,
)
from quorate.testing import TestCluster
from quorate.types import CollectionRules, FieldRule
from tests.node.unix_proxy import UnixProxy

pytestmark = pytest.mark.node


@pytest.fixture
def p() -> str:
    """A prefix of the test's own."""
    return uuid.uuid4().hex


@dataclass
class Stock:
    left: int
    note: str | None = None


def test_entries_of_all_kinds(quorate_node: TestCluster, p: str) -> None:
    with quorate_node.client() as client:
        written = client.put(f"{p}/s", Stock(5))
        entry = client.get(f"{p}/s", model=Stock)
        assert entry is not None
        assert (entry.value, entry.cas, entry.version) == (Stock(5), written.cas, 1)
        with pytest.raises(DecodeError):
            client.get(f"{p}/s", model=list[int])
        client.put(f"{p}/b", b"\x00\xff", ttl=60)
        raw = client.get(f"{p}/b")
        assert raw is not None
        assert (raw.value, raw.content_type) == (b"\x00\xff", "bytes")
        assert raw.ttl_ms is not None
        assert client.exists(f"{p}/b")
        assert not client.exists(f"{p}/none")
        assert client.get(f"{p}/none") is None
        assert (client.get_and_touch(f"{p}/b", 0)).ttl_ms is None
        past = client.get(f"{p}/s", revision=written.revision, local=True)
        assert past is not None
        removed = client.remove(f"{p}/s", prev=True)
        assert removed.prev is not None
        assert removed.prev.value == {"left": 5, "note": None}
        dry = client.put(f"{p}/dry", 1, dry_run=True)
        assert dry.dry_run
        assert client.get(f"{p}/dry") is None


def test_conditions_and_locks_of_entries(quorate_node: TestCluster, p: str) -> None:
    with quorate_node.client() as client:
        client.put(f"{p}/o", {"status": "new"})
        client.patch(f"{p}/o", {"status": "paid"}, if_=field("status").eq("new"))
        locked = client.lock_entry(f"{p}/o", 20)
        assert locked.cas is not None
        with pytest.raises(CasMismatchError):
            client.put(f"{p}/o", 1)
        client.extend_entry_lock(f"{p}/o", locked.cas, 20)
        client.unlock_entry(f"{p}/o", locked.cas)
        change = client.wait_for_change(f"{p}/o", None, 1, model=dict[str, str])
        assert change.entry is not None
        assert change.entry.value == {"status": "paid"}
        assert (client.wait_for_change(f"{p}/o", change.entry.cas, 0.05)).kind == "none"
        assert (client.wait_for_change(f"{p}/none", "1", 0.05)).kind == "gone"


def test_many_entries(quorate_node: TestCluster, p: str) -> None:
    with quorate_node.client() as client:
        done = client.bulk([Op.insert(f"{p}/{n}", {"n": n}) for n in range(5)] + [Op.remove(f"{p}/x")])
        assert (done.applied, done.failed, done.results[-1].code) == (5, 1, "not_found")
        page = client.list(f"{p}/", limit=2, model=dict[str, int])
        assert [entry.value["n"] for entry in page.entries] == [0, 1]
        assert page.cursor is not None
        assert [entry.key for entry in client.scan(f"{p}/", limit=2)] == [f"{p}/{n}" for n in range(5)]
        assert [entry.key for entry in client.scan(f"{p}/", limit=2, reverse=True)] == [f"{p}/{n}" for n in (4, 3, 2, 1, 0)]
        sized = [(entry.value, entry.value_bytes) for entry in client.scan(f"{p}/", limit=2, keys_only=True, sizes=True)]
        assert (sized, page.entries[0].value_bytes) == ([(None, len('{"n":0}'))] * 5, None)
        found = [entry.value for entry in client.find_all(f"{p}/", field("n").gt(2), order_by="-n")]
        assert found == [{"n": 4}, {"n": 3}]
        assert (client.count(f"{p}/", [field("n").gt(0), field("n").lt(3)])).count == 2
        step = Txn(if_=[check(f"{p}/none", exists=False)], then=[Op.put(f"{p}/in", 1)])
        answer = client.txn(if_=[check(f"{p}/0", if_=field("n").eq(0))], then=[Op.get(f"{p}/1"), step])
        assert answer.succeeded
        changed = client.update_where(f"{p}/", field("n").gte(3), {"late": True}, if_=field("n").lt(4))
        assert (changed.matched, changed.applied, changed.skipped) == (2, 1, 1)
        claimed = client.claim(f"{p}/", field("n").lte(1), limit=5, lock_for=20, order_by="-n", model=dict[str, int])
        assert [one.value["n"] for one in claimed] == [1, 0]
        claimed[0].complete()
        claimed[1].patch({"n": 7})
        deleted = client.delete_where(f"{p}/", field("n").exists())
        assert deleted.applied == 4
        client.bulk([Op.insert(f"{p}/all/{n}", {"n": n}) for n in range(5)])
        parts = [part.applied for part in client.update_all_where(f"{p}/all/", field("n").gt(0), {"old": True}, limit=2)]
        assert sum(parts) == 4
        assert len(parts) >= 2
        assert sum([part.applied for part in client.delete_all_where(f"{p}/all/", field("old").exists(), limit=3)]) == 4
        history = client.history(f"{p}/0")
        assert [version.entry is None for version in history] == [False, False, True]


def test_a_stream_of_operations(quorate_node: TestCluster, p: str) -> None:
    with quorate_node.client() as client:
        client.put(f"{p}/there", 1)
        ops = [Op.insert(f"{p}/there", 2), Op.get(f"{p}/there"), Op.get(f"{p}/none")]
        ops += [Op.put(f"{p}/{n}", "x" * 500) for n in range(2_500)]
        done = {one.n: one for one in client.stream(iter(ops))}
        assert [done[n].op for n in range(len(ops))] == ops
        assert [getattr(done[n].error, "code", None) for n in range(4)] == ["already_exists", None, "not_found", None]
        assert getattr(done[1].answer, "value", None) == 1
        assert len([one.key for one in client.scan(f"{p}/", keys_only=True)]) == 2_501
        for _ in client.stream([Op.put(f"{p}/first", 1)]):
            break
    with Client("127.0.0.1:1", discover_members=False, retry=RetryPolicy(attempts_max=2)) as nobody:
        errors = [one.error for one in nobody.stream([Op.put("a", 1), Op.get("b")])]
        assert [(type(error), error and error.applied) for error in errors] == [(UnavailableError, "no")] * 2


def test_collections_and_sequences(quorate_node: TestCluster, p: str) -> None:
    with quorate_node.client() as client:
        rules = CollectionRules(fields={"n": FieldRule(type="long", sequence=p)}, required=["name"])
        made = client.collection(p).put(rules, if_absent=True)
        assert made.rules.required == ["name"]
        client.insert(f"{p}/a", {"name": "ann"})
        entry = client.get(f"{p}/a")
        assert entry is not None
        assert entry.value["n"] == 1
        assert (client.sequence(p).get()).value == 1
        assert (client.sequence(p).next(3)).last == 4
        assert p in [one.name for one in (client.collections(limit=1000)).collections]
        client.collection(p).delete(cas=made.cas)
        assert client.collection(p).get() is None


def test_sessions_locks_and_elections(quorate_node: TestCluster, p: str) -> None:
    with quorate_node.client() as client:
        with client.session(ttl=5, owner="ann", labels={"zone": "a"}) as session:
            view = client.session_by_id(session.id).get()
            assert view is not None
            assert (view.owner, view.labels) == ("ann", {"zone": "a"})
            client.put(f"{p}/alive", 1, session=session)
            with session.lock(p, wait=1) as lock:
                with pytest.raises(InvalidRequestError, match="already"):
                    session.lock(p)
                client.put(f"{p}/under", 1, guard=lock)
                assert (client.lock(p).get()).holders[0].token == lock.token
                client.lock(p).check(lock.token)
                other = client.session()
                with pytest.raises(LockedError):
                    other.lock(p, wait=0.05)
            with pytest.raises(GuardFailedError):
                client.put(f"{p}/under", 2, guard=lock)
            with client.election(p).observe() as seen:
                assert (seen.next()).leader is None
                with session.campaign(p, value={"at": "a:1"}) as leadership:
                    first = (seen.next()).leader
                    assert first is not None
                    assert (first.term, first.value) == (leadership.term, {"at": "a:1"})
                    leadership.proclaim("b:2")
                    second = (seen.next()).leader
                    assert second is not None
                    assert second.value == "b:2"
                assert (seen.next()).leader is None
            other.end()
        assert session.state == "lost"
        assert session.loss == "ended"
        assert not client.exists(f"{p}/alive")
        with pytest.raises(SessionLostError):
            session.lock(p)
        with pytest.raises(SessionLostError):
            _ = lock.token


def test_a_session_hears_of_its_end(quorate_node: TestCluster) -> None:
    with quorate_node.client() as client:
        session = client.session(ttl=1)
        assert session.changed("alive", timeout=0.05) == "alive"
        client.session_by_id(session.id).end()
        assert session.wait_lost(timeout=10) == "expired"


def test_barriers_and_latches(quorate_node: TestCluster, p: str) -> None:
    with quorate_node.client() as client, client.session() as session:
        barrier = session.barrier(p, 1)
        assert (barrier.enter()).state == "open"
        assert (client.barrier(p)).entered == 1
        barrier.leave()
        assert (session.barrier(p, 2).enter(wait=0.05)).state == "waiting"
        latch = client.latch(p)
        latch.create(2)
        assert not (latch.wait(0.05)).open
        latch.count_down(2)
        assert (latch.wait(1)).open
        latch.remove()
        with pytest.raises(NotFoundError):
            latch.get()


def test_a_worker_completes_retries_and_gives_up(quorate_node: TestCluster, p: str) -> None:
    with quorate_node.client() as client:
        queue = client.tasks(p)
        quick = Backoff(0.02, 0.02, 1)
        queue.schedule_all([TaskSpec(id=f"t{n}", payload={"n": n}, backoff=quick) for n in range(4)])
        seen: list[str] = []

        def handle(run: TaskRun) -> None:
            seen.append(f"{run.id}/{run.task.attempt}")
            if run.id == "t1" and run.task.attempt == 1:
                raise RuntimeError("once")
            if run.id == "t2":
                raise TaskFailure("never", dead=True)
            assert run.task.payload_as(dict[str, int])["n"] in (0, 1, 3)
            assert not run.is_lost
            if len(seen) >= 5:
                worker.stop()

        worker = queue.worker(handle, concurrency=1, lease=5, name="tests")
        report = worker.run()
        assert (report.completed, report.failed, report.lost) == (3, 2, 0)
        assert sorted(seen) == ["t0/1", "t1/1", "t1/2", "t2/1", "t3/1"]
        dead = queue.list("dead")
        assert [(task.id, task.last_error) for task in dead.tasks] == [("t2", "never")]
        assert (queue.requeue("t2")).count == 1
        assert (queue.cancel("t2")).state == "gone"
        assert (queue.stats()).completed_total == 3


def test_a_stopped_worker_gives_back_what_it_does_not_finish(quorate_node: TestCluster, p: str) -> None:
    with quorate_node.client() as client:
        queue = client.tasks(p)
        queue.schedule(1, id="slow")

        def handle(run: TaskRun) -> None:
            worker.stop()
            run.wait_lost(timeout=20)

        worker = queue.worker(handle, stop_within=0.05)
        report = worker.run()
        assert (report.completed, report.released) == (0, 1)
        task = queue.get("slow")
        assert task is not None
        assert (task.state, task.attempts) == ("scheduled", 0)


def test_watches(quorate_node: TestCluster, p: str) -> None:
    with quorate_node.client() as client:
        client.put(f"{p}/a", Stock(1))
        with client.watch(f"{p}/", initial=True, where=field("left").lt(10)) as watch:
            first = watch.next()
            assert isinstance(first, WatchEvent)
            assert first.initial
            assert isinstance(watch.next(), Synced)
            client.put(f"{p}/a", Stock(20))
            client.put(f"{p}/a", Stock(2))
            seen: list[int] = []
            for event in watch:
                assert isinstance(event, WatchEvent)
                assert event.entry is not None
                seen.append(event.entry.value["left"])
                break
            assert seen == [2]
            assert watch.revision is not None


def test_mirrors(quorate_node: TestCluster, p: str) -> None:
    with quorate_node.client() as client:
        client.put(f"{p}/a", {"zone": "x", "n": 1})
        with client.mirror(f"{p}/", index_by="zone") as mirror:
            assert len(mirror) == 1
            changes = mirror.changes()
            written = client.put(f"{p}/b", {"zone": "x", "n": 2})
            assert mirror.wait_for(written.revision) >= written.revision
            assert [entry.key for entry in mirror.find_by("zone", "x")] == [f"{p}/a", f"{p}/b"]
            change = changes.next()
            assert isinstance(change, MirrorChange)
            assert (change.key, change.before) == (f"{p}/b", None)
            client.remove(f"{p}/a")
            mirror.sync()
            assert mirror.get(f"{p}/a") is None
            assert [entry.key for entry in mirror.list()] == [f"{p}/b"]
            assert mirror.trouble is None
            assert mirror.staleness < 60
            with pytest.raises(InvalidRequestError):
                mirror.find_by("n", 1)


def test_workers_share_a_prefix_by_parts(quorate_node: TestCluster, p: str) -> None:
    with quorate_node.client() as client:
        watches = [client.watch(f"{p}/", part=(index, 2)) for index in range(2)]
        client.bulk([Op.insert(f"{p}/{n}", n) for n in range(20)])
        listed: list[list[str]] = []
        for index in range(2):
            listed.append([entry.key for entry in client.scan(f"{p}/", part=(index, 2), limit=3)])
        assert sorted(listed[0] + listed[1]) == sorted(f"{p}/{n}" for n in range(20))
        for index, watch in enumerate(watches):
            assert {(watch.next()).key for _ in listed[index]} == set(listed[index])
            watch.close()
            with client.mirror(f"{p}/", part=(index, 2)) as mirror:
                assert [entry.key for entry in mirror.list()] == listed[index]
        with pytest.raises(InvalidArgumentError):
            client.list(f"{p}/", part=(2, 2))


def test_the_cluster_itself(quorate_node: TestCluster, tmp_path: Path) -> None:
    with quorate_node.client() as client:
        assert (client.status()).role == "leader"
        assert (client.wait_ready(timeout=5))[0].is_ready
        assert [member.id for member in (client.members.get()).members] == [1]
        assert (client.limits()).key_bytes == 4096
        assert (client.node_callers()).resources
        assert (client.version()).api
        assert (client.access.who_am_i()).access_revision is not None
        client.put("audited", 1, request_id=uuid.uuid4().hex)
        lines = (client.access.audit("audited")).lines
        assert lines[0].op == "upsert"
        assert client.request_outcome("none") is None
        saved = client.backup(tmp_path / "all.backup")
        assert saved.path.stat().st_size == saved.bytes
        assert saved.rows > 0
        assert saved.is_checked
        metrics = (client.metrics_of_all())[0].text
        assert metrics is not None
        assert metrics.endswith("# EOF\n")
        assert (client.digest()).digest
        assert (client.faults()).kept == []
        with pytest.raises(InvalidArgumentError):
            client.handle_faults("retry", work="nothing")
        with pytest.raises(InvalidRequestError):
            client.backup(tmp_path / "all.backup")
        assert os.listdir(tmp_path) == ["all.backup"]  # noqa: PTH208


def test_a_node_is_reached_by_its_unix_socket(tmp_path: Path, p: str) -> None:
    endpoint = f"unix:{tmp_path}/clients"
    with TestCluster(node_args=("--client-socket", f"{tmp_path}/clients")):
        with Client(endpoint) as client, client.watch(f"{p}/") as watch:
            client.put(f"{p}/a", "x" * 200_000)
            entry = client.get(f"{p}/a")
            assert entry is not None
            assert len(entry.value) == 200_000
            assert (watch.next()).key == f"{p}/a"
            with client.session() as session, session.lock(p) as lock:
                client.put(f"{p}/b", 1, guard=lock)
            assert (watch.next()).key == f"{p}/b"
            assert [one.error for one in client.stream([Op.put(f"{p}/c", 1)])] == [None]
            assert client.endpoints == [endpoint]


def test_a_client_of_a_unix_socket_finds_the_members(quorate_cluster: TestCluster, tmp_path: Path, p: str) -> None:
    with UnixProxy(tmp_path / "node.sock", quorate_cluster.nodes[0].address) as proxy:
        with Client(proxy.endpoint) as client:
            while len(client.known_endpoints) < 3:
                client.put(f"{p}/a", 1)
            assert set(client.known_endpoints[1:]) == {node.address for node in quorate_cluster.nodes[1:]}
            quorate_cluster.kill(0)
            assert (client.put(f"{p}/b", 1)).version == 1
            quorate_cluster.restart(0)
            statuses = client.wait_ready()
            assert [(status.address, status.is_ready) for status in statuses] == [(proxy.endpoint, True)]


def test_the_overview_has_every_member_and_what_does_not_answer(quorate_cluster: TestCluster) -> None:
    first, *others = (node.address for node in quorate_cluster.nodes)
    with Client([first, others[0], "127.0.0.1:9"], discover_members=False) as client:
        quorate_cluster.kill(1)
        overview = client.overview()
        assert [(node.id, node.address) for node in overview] == [(1, first), (2, others[0]), (3, others[1]), (None, "127.0.0.1:9")]
        assert [node.status is None for node in overview] == [False, True, False, True]
        assert [node.error is None for node in overview] == [True, False, True, False]


def test_members_are_discovered_and_a_lost_node_is_survived(quorate_cluster: TestCluster, p: str) -> None:
    with Client(quorate_cluster.nodes[0].address) as client, client.watch(f"{p}/") as watch:
        version = 0
        while len(client.known_endpoints) < 3:
            version = (client.put(f"{p}/a", 1)).version or 0
            assert (watch.next()).key == f"{p}/a"
        quorate_cluster.kill(0)
        assert (client.put(f"{p}/b", 1)).version == 1
        assert (watch.next()).key == f"{p}/b"
        entry = client.get(f"{p}/a")
        assert entry is not None
        assert entry.version == version
