"""The client against real nodes."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from quorate import (
    AsyncClient,
    AsyncTaskRun,
    Backoff,
    CasMismatchError,
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


async def test_entries_of_all_kinds(quorate_node: TestCluster, p: str) -> None:
    async with quorate_node.async_client() as client:
        written = await client.put(f"{p}/s", Stock(5))
        entry = await client.get(f"{p}/s", model=Stock)
        assert entry is not None
        assert (entry.value, entry.cas, entry.version) == (Stock(5), written.cas, 1)
        with pytest.raises(DecodeError):
            await client.get(f"{p}/s", model=list[int])
        await client.put(f"{p}/b", b"\x00\xff", ttl=60)
        raw = await client.get(f"{p}/b")
        assert raw is not None
        assert (raw.value, raw.content_type) == (b"\x00\xff", "bytes")
        assert raw.ttl_ms is not None
        assert await client.exists(f"{p}/b")
        assert not await client.exists(f"{p}/none")
        assert await client.get(f"{p}/none") is None
        assert (await client.get_and_touch(f"{p}/b", 0)).ttl_ms is None
        past = await client.get(f"{p}/s", revision=written.revision, local=True)
        assert past is not None
        removed = await client.remove(f"{p}/s", prev=True)
        assert removed.prev is not None
        assert removed.prev.value == {"left": 5, "note": None}
        dry = await client.put(f"{p}/dry", 1, dry_run=True)
        assert dry.dry_run
        assert await client.get(f"{p}/dry") is None


async def test_conditions_and_locks_of_entries(quorate_node: TestCluster, p: str) -> None:
    async with quorate_node.async_client() as client:
        await client.put(f"{p}/o", {"status": "new"})
        await client.patch(f"{p}/o", {"status": "paid"}, if_=field("status").eq("new"))
        locked = await client.lock_entry(f"{p}/o", 20)
        assert locked.cas is not None
        with pytest.raises(CasMismatchError):
            await client.put(f"{p}/o", 1)
        await client.extend_entry_lock(f"{p}/o", locked.cas, 20)
        await client.unlock_entry(f"{p}/o", locked.cas)
        change = await client.wait_for_change(f"{p}/o", None, 1, model=dict[str, str])
        assert change.entry is not None
        assert change.entry.value == {"status": "paid"}
        assert (await client.wait_for_change(f"{p}/o", change.entry.cas, 0.05)).kind == "none"
        assert (await client.wait_for_change(f"{p}/none", "1", 0.05)).kind == "gone"


async def test_many_entries(quorate_node: TestCluster, p: str) -> None:
    async with quorate_node.async_client() as client:
        done = await client.bulk([Op.insert(f"{p}/{n}", {"n": n}) for n in range(5)] + [Op.remove(f"{p}/x")])
        assert (done.applied, done.failed, done.results[-1].code) == (5, 1, "not_found")
        page = await client.list(f"{p}/", limit=2, model=dict[str, int])
        assert [entry.value["n"] for entry in page.entries] == [0, 1]
        assert page.cursor is not None
        assert [entry.key async for entry in client.scan(f"{p}/", limit=2)] == [f"{p}/{n}" for n in range(5)]
        assert [entry.key async for entry in client.scan(f"{p}/", limit=2, reverse=True)] == [f"{p}/{n}" for n in (4, 3, 2, 1, 0)]
        sized = [(entry.value, entry.value_bytes) async for entry in client.scan(f"{p}/", limit=2, keys_only=True, sizes=True)]
        assert (sized, page.entries[0].value_bytes) == ([(None, len('{"n":0}'))] * 5, None)
        found = [entry.value async for entry in client.find_all(f"{p}/", field("n").gt(2), order_by="-n")]
        assert found == [{"n": 4}, {"n": 3}]
        assert (await client.count(f"{p}/", [field("n").gt(0), field("n").lt(3)])).count == 2
        step = Txn(if_=[check(f"{p}/none", exists=False)], then=[Op.put(f"{p}/in", 1)])
        answer = await client.txn(if_=[check(f"{p}/0", if_=field("n").eq(0))], then=[Op.get(f"{p}/1"), step])
        assert answer.succeeded
        changed = await client.update_where(f"{p}/", field("n").gte(3), {"late": True}, if_=field("n").lt(4))
        assert (changed.matched, changed.applied, changed.skipped) == (2, 1, 1)
        claimed = await client.claim(f"{p}/", field("n").lte(1), limit=5, lock_for=20, order_by="-n", model=dict[str, int])
        assert [one.value["n"] for one in claimed] == [1, 0]
        await claimed[0].complete()
        await claimed[1].patch({"n": 7})
        deleted = await client.delete_where(f"{p}/", field("n").exists())
        assert deleted.applied == 4
        await client.bulk([Op.insert(f"{p}/all/{n}", {"n": n}) for n in range(5)])
        parts = [part.applied async for part in client.update_all_where(f"{p}/all/", field("n").gt(0), {"old": True}, limit=2)]
        assert sum(parts) == 4
        assert len(parts) >= 2
        assert sum([part.applied async for part in client.delete_all_where(f"{p}/all/", field("old").exists(), limit=3)]) == 4
        history = await client.history(f"{p}/0")
        assert [version.entry is None for version in history] == [False, False, True]


async def test_a_stream_of_operations(quorate_node: TestCluster, p: str) -> None:
    async with quorate_node.async_client() as client:
        await client.put(f"{p}/there", 1)
        ops = [Op.insert(f"{p}/there", 2), Op.get(f"{p}/there"), Op.get(f"{p}/none")]
        ops += [Op.put(f"{p}/{n}", "x" * 500) for n in range(2_500)]
        done = {one.n: one async for one in client.stream(iter(ops))}
        assert [done[n].op for n in range(len(ops))] == ops
        assert [getattr(done[n].error, "code", None) for n in range(4)] == ["already_exists", None, "not_found", None]
        assert getattr(done[1].answer, "value", None) == 1
        assert len([one.key async for one in client.scan(f"{p}/", keys_only=True)]) == 2_501
        async for _ in client.stream([Op.put(f"{p}/first", 1)]):
            break
    async with AsyncClient("127.0.0.1:1", discover_members=False, retry=RetryPolicy(attempts_max=2)) as nobody:
        errors = [one.error async for one in nobody.stream([Op.put("a", 1), Op.get("b")])]
        assert [(type(error), error and error.applied) for error in errors] == [(UnavailableError, "no")] * 2


async def test_collections_and_sequences(quorate_node: TestCluster, p: str) -> None:
    async with quorate_node.async_client() as client:
        rules = CollectionRules(fields={"n": FieldRule(type="long", sequence=p)}, required=["name"])
        made = await client.collection(p).put(rules, if_absent=True)
        assert made.rules.required == ["name"]
        await client.insert(f"{p}/a", {"name": "ann"})
        entry = await client.get(f"{p}/a")
        assert entry is not None
        assert entry.value["n"] == 1
        assert (await client.sequence(p).get()).value == 1
        assert (await client.sequence(p).next(3)).last == 4
        assert p in [one.name for one in (await client.collections(limit=1000)).collections]
        await client.collection(p).delete(cas=made.cas)
        assert await client.collection(p).get() is None


async def test_sessions_locks_and_elections(quorate_node: TestCluster, p: str) -> None:
    async with quorate_node.async_client() as client:
        async with client.session(ttl=5, owner="ann", labels={"zone": "a"}) as session:
            view = await client.session_by_id(session.id).get()
            assert view is not None
            assert (view.owner, view.labels) == ("ann", {"zone": "a"})
            await client.put(f"{p}/alive", 1, session=session)
            async with session.lock(p, wait=1) as lock:
                with pytest.raises(InvalidRequestError, match="already"):
                    await session.lock(p)
                await client.put(f"{p}/under", 1, guard=lock)
                assert (await client.lock(p).get()).holders[0].token == lock.token
                await client.lock(p).check(lock.token)
                other = await client.session()
                with pytest.raises(LockedError):
                    await other.lock(p, wait=0.05)
            with pytest.raises(GuardFailedError):
                await client.put(f"{p}/under", 2, guard=lock)
            async with client.election(p).observe() as seen:
                assert (await seen.next()).leader is None
                async with session.campaign(p, value={"at": "a:1"}) as leadership:
                    first = (await seen.next()).leader
                    assert first is not None
                    assert (first.term, first.value) == (leadership.term, {"at": "a:1"})
                    await leadership.proclaim("b:2")
                    second = (await seen.next()).leader
                    assert second is not None
                    assert second.value == "b:2"
                assert (await seen.next()).leader is None
            await other.end()
        assert session.state == "lost"
        assert session.loss == "ended"
        assert not await client.exists(f"{p}/alive")
        with pytest.raises(SessionLostError):
            await session.lock(p)
        with pytest.raises(SessionLostError):
            _ = lock.token


async def test_a_session_hears_of_its_end(quorate_node: TestCluster) -> None:
    async with quorate_node.async_client() as client:
        session = await client.session(ttl=1)
        assert await session.changed("alive", timeout=0.05) == "alive"
        await client.session_by_id(session.id).end()
        assert await session.wait_lost(timeout=10) == "expired"


async def test_barriers_and_latches(quorate_node: TestCluster, p: str) -> None:
    async with quorate_node.async_client() as client, client.session() as session:
        barrier = session.barrier(p, 1)
        assert (await barrier.enter()).state == "open"
        assert (await client.barrier(p)).entered == 1
        await barrier.leave()
        assert (await session.barrier(p, 2).enter(wait=0.05)).state == "waiting"
        latch = client.latch(p)
        await latch.create(2)
        assert not (await latch.wait(0.05)).open
        await latch.count_down(2)
        assert (await latch.wait(1)).open
        await latch.remove()
        with pytest.raises(NotFoundError):
            await latch.get()


async def test_a_worker_completes_retries_and_gives_up(quorate_node: TestCluster, p: str) -> None:
    async with quorate_node.async_client() as client:
        queue = client.tasks(p)
        quick = Backoff(0.02, 0.02, 1)
        await queue.schedule_all([TaskSpec(id=f"t{n}", payload={"n": n}, backoff=quick) for n in range(4)])
        seen: list[str] = []

        async def handle(run: AsyncTaskRun) -> None:
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
        report = await worker.run()
        assert (report.completed, report.failed, report.lost) == (3, 2, 0)
        assert sorted(seen) == ["t0/1", "t1/1", "t1/2", "t2/1", "t3/1"]
        dead = await queue.list("dead")
        assert [(task.id, task.last_error) for task in dead.tasks] == [("t2", "never")]
        assert (await queue.requeue("t2")).count == 1
        assert (await queue.cancel("t2")).state == "gone"
        assert (await queue.stats()).completed_total == 3


async def test_a_stopped_worker_gives_back_what_it_does_not_finish(quorate_node: TestCluster, p: str) -> None:
    async with quorate_node.async_client() as client:
        queue = client.tasks(p)
        await queue.schedule(1, id="slow")

        async def handle(run: AsyncTaskRun) -> None:
            worker.stop()
            await run.wait_lost(timeout=20)

        worker = queue.worker(handle, stop_within=0.05)
        report = await worker.run()
        assert (report.completed, report.released) == (0, 1)
        task = await queue.get("slow")
        assert task is not None
        assert (task.state, task.attempts) == ("scheduled", 0)


async def test_watches(quorate_node: TestCluster, p: str) -> None:
    async with quorate_node.async_client() as client:
        await client.put(f"{p}/a", Stock(1))
        async with client.watch(f"{p}/", initial=True, where=field("left").lt(10)) as watch:
            first = await watch.next()
            assert isinstance(first, WatchEvent)
            assert first.initial
            assert isinstance(await watch.next(), Synced)
            await client.put(f"{p}/a", Stock(20))
            await client.put(f"{p}/a", Stock(2))
            seen: list[int] = []
            async for event in watch:
                assert isinstance(event, WatchEvent)
                assert event.entry is not None
                seen.append(event.entry.value["left"])
                break
            assert seen == [2]
            assert watch.revision is not None


async def test_mirrors(quorate_node: TestCluster, p: str) -> None:
    async with quorate_node.async_client() as client:
        await client.put(f"{p}/a", {"zone": "x", "n": 1})
        async with client.mirror(f"{p}/", index_by="zone") as mirror:
            assert len(mirror) == 1
            changes = mirror.changes()
            written = await client.put(f"{p}/b", {"zone": "x", "n": 2})
            assert await mirror.wait_for(written.revision) >= written.revision
            assert [entry.key for entry in mirror.find_by("zone", "x")] == [f"{p}/a", f"{p}/b"]
            change = await changes.next()
            assert isinstance(change, MirrorChange)
            assert (change.key, change.before) == (f"{p}/b", None)
            await client.remove(f"{p}/a")
            await mirror.sync()
            assert mirror.get(f"{p}/a") is None
            assert [entry.key for entry in mirror.list()] == [f"{p}/b"]
            assert mirror.trouble is None
            assert mirror.staleness < 60
            with pytest.raises(InvalidRequestError):
                mirror.find_by("n", 1)


async def test_workers_share_a_prefix_by_parts(quorate_node: TestCluster, p: str) -> None:
    async with quorate_node.async_client() as client:
        watches = [await client.watch(f"{p}/", part=(index, 2)) for index in range(2)]
        await client.bulk([Op.insert(f"{p}/{n}", n) for n in range(20)])
        listed: list[list[str]] = []
        for index in range(2):
            listed.append([entry.key async for entry in client.scan(f"{p}/", part=(index, 2), limit=3)])
        assert sorted(listed[0] + listed[1]) == sorted(f"{p}/{n}" for n in range(20))
        for index, watch in enumerate(watches):
            assert {(await watch.next()).key for _ in listed[index]} == set(listed[index])
            watch.close()
            async with client.mirror(f"{p}/", part=(index, 2)) as mirror:
                assert [entry.key for entry in mirror.list()] == listed[index]
        with pytest.raises(InvalidArgumentError):
            await client.list(f"{p}/", part=(2, 2))


async def test_the_cluster_itself(quorate_node: TestCluster, tmp_path: Path) -> None:
    async with quorate_node.async_client() as client:
        assert (await client.status()).role == "leader"
        assert (await client.wait_ready(timeout=5))[0].is_ready
        assert [member.id for member in (await client.members.get()).members] == [1]
        assert (await client.limits()).key_bytes == 4096
        assert (await client.node_callers()).resources
        assert (await client.version()).api
        assert (await client.access.who_am_i()).access_revision is not None
        await client.put("audited", 1, request_id=uuid.uuid4().hex)
        lines = (await client.access.audit("audited")).lines
        assert lines[0].op == "upsert"
        assert await client.request_outcome("none") is None
        saved = await client.backup(tmp_path / "all.backup")
        assert saved.path.stat().st_size == saved.bytes
        assert saved.rows > 0
        assert saved.is_checked
        metrics = (await client.metrics_of_all())[0].text
        assert metrics is not None
        assert metrics.endswith("# EOF\n")
        assert (await client.digest()).digest
        assert (await client.faults()).kept == []
        with pytest.raises(InvalidArgumentError):
            await client.handle_faults("retry", work="nothing")
        with pytest.raises(InvalidRequestError):
            await client.backup(tmp_path / "all.backup")
        assert os.listdir(tmp_path) == ["all.backup"]  # noqa: PTH208


async def test_a_node_is_reached_by_its_unix_socket(tmp_path: Path, p: str) -> None:
    endpoint = f"unix:{tmp_path}/clients"
    with TestCluster(node_args=("--client-socket", f"{tmp_path}/clients")):
        async with AsyncClient(endpoint) as client, client.watch(f"{p}/") as watch:
            await client.put(f"{p}/a", "x" * 200_000)
            entry = await client.get(f"{p}/a")
            assert entry is not None
            assert len(entry.value) == 200_000
            assert (await watch.next()).key == f"{p}/a"
            async with client.session() as session, session.lock(p) as lock:
                await client.put(f"{p}/b", 1, guard=lock)
            assert (await watch.next()).key == f"{p}/b"
            assert [one.error async for one in client.stream([Op.put(f"{p}/c", 1)])] == [None]
            assert client.endpoints == [endpoint]


async def test_a_client_of_a_unix_socket_finds_the_members(quorate_cluster: TestCluster, tmp_path: Path, p: str) -> None:
    with UnixProxy(tmp_path / "node.sock", quorate_cluster.nodes[0].address) as proxy:
        async with AsyncClient(proxy.endpoint) as client:
            while len(client.known_endpoints) < 3:
                await client.put(f"{p}/a", 1)
            assert set(client.known_endpoints[1:]) == {node.address for node in quorate_cluster.nodes[1:]}
            quorate_cluster.kill(0)
            assert (await client.put(f"{p}/b", 1)).version == 1
            quorate_cluster.restart(0)
            statuses = await client.wait_ready()
            assert [(status.address, status.is_ready) for status in statuses] == [(proxy.endpoint, True)]


async def test_the_overview_has_every_member_and_what_does_not_answer(quorate_cluster: TestCluster) -> None:
    first, *others = (node.address for node in quorate_cluster.nodes)
    async with AsyncClient([first, others[0], "127.0.0.1:9"], discover_members=False) as client:
        quorate_cluster.kill(1)
        overview = await client.overview()
        assert [(node.id, node.address) for node in overview] == [(1, first), (2, others[0]), (3, others[1]), (None, "127.0.0.1:9")]
        assert [node.status is None for node in overview] == [False, True, False, True]
        assert [node.error is None for node in overview] == [True, False, True, False]


async def test_members_are_discovered_and_a_lost_node_is_survived(quorate_cluster: TestCluster, p: str) -> None:
    async with AsyncClient(quorate_cluster.nodes[0].address) as client, client.watch(f"{p}/") as watch:
        version = 0
        while len(client.known_endpoints) < 3:
            version = (await client.put(f"{p}/a", 1)).version or 0
            assert (await watch.next()).key == f"{p}/a"
        quorate_cluster.kill(0)
        assert (await client.put(f"{p}/b", 1)).version == 1
        assert (await watch.next()).key == f"{p}/b"
        entry = await client.get(f"{p}/a")
        assert entry is not None
        assert entry.version == version
