"""What is held and how it is given up, what an answer is about, and which nodes are believed."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable

import pytest

from quorate import (
    AsyncClient,
    InvalidRequestError,
    NotLockHolderError,
    Op,
    PermissionDeniedError,
    ProtocolError,
    RetryPolicy,
    SessionLostError,
    UnavailableError,
    UnknownOutcomeError,
    _lease,
)
from quorate._async._io import sleep
from tests.unit.scripted import Asked, Coordination, Reply, Scripted, problem

ENTRY = {"key": "k", "value": 1, "content_type": "json", "cas": "7", "create_revision": "7", "mod_revision": "7", "version": 1}
WRITTEN = {"key": "k", "revision": "7", "index": 1, "cas": "7", "version": 1}
NOT_THERE = problem(404, "not_found")
NOT_HELD = problem(409, "not_lock_holder", index=3)


def client_of(*servers: Scripted, timeout: float = 5.0, attempts_max: int = 1000) -> AsyncClient:
    policy = RetryPolicy(attempts_max=attempts_max)
    return AsyncClient([server.address for server in servers], timeout=timeout, discover_members=False, retry=policy)


async def until(holds: Callable[[], bool]) -> bool:
    """Whether it holds within some seconds: for what is done in the background."""
    end = time.monotonic() + 5
    while not holds() and time.monotonic() < end:
        await sleep(0.01)
    return holds()


# --- handles ---------------------------------------------------------------------------------------------------------------------


async def test_a_token_is_not_told_once_the_lock_is_released() -> None:
    with Scripted(Coordination()) as server:
        async with client_of(server) as client, client.session() as session:
            lock = await session.lock("l")
            assert lock.token == 5
            await lock.release()
            with pytest.raises(NotLockHolderError, match="`l` is not held any more"):
                _ = lock.token
            async with session.lock("l") as again:
                pass
            with pytest.raises(NotLockHolderError):
                _ = again.token
            # A guard still says what it was: the cluster decides.
            assert again.guard.token == 5


async def test_a_token_is_not_told_after_a_suspend_until_the_session_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scripted(Coordination(ttl_ms=60_000)) as server:
        async with client_of(server) as client, client.session() as session, session.lock("l") as lock:
            assert lock.token == 5
            ahead = _lease.wall_ahead()
            monkeypatch.setattr(_lease, "wall_ahead", lambda: ahead + 600)
            with pytest.raises(SessionLostError):
                _ = lock.token
            # Long before it would have been renewed.
            assert await until(lambda: session.state == "alive")
            assert lock.token == 5
        with pytest.raises(SessionLostError):
            _ = lock.token


async def test_a_suspend_is_noticed_although_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scripted(Coordination(ttl_ms=60_000)) as server:
        async with client_of(server) as client, client.session():
            ahead = _lease.wall_ahead()
            monkeypatch.setattr(_lease, "wall_ahead", lambda: ahead + 600)
            # Long before it would have been renewed.
            assert await until(lambda: any(asked.target.endswith("/renew") for asked in server.asked))


async def test_a_release_of_unknown_fate_may_be_repeated_and_the_token_is_gone() -> None:
    replies = [Reply(cut=True), NOT_HELD, NOT_HELD]
    cluster = Coordination(lambda asked: replies.pop(0) if asked.target.endswith("/release") else None)
    with Scripted(cluster) as server:
        async with client_of(server, attempts_max=1) as client, client.session() as session:
            lock = await session.lock("l")
            with pytest.raises(UnknownOutcomeError):
                await lock.release()
            with pytest.raises(NotLockHolderError):
                _ = lock.token
            # It went with the first try.
            await lock.release()
            with pytest.raises(NotLockHolderError):
                await lock.release()
            other = await session.lock("l")
            replies += [NOT_HELD, Reply(200, {"lock": "l", "revision": "5", "index": 5, "released": True})]
            # Nobody asked before, so it was lost.
            with pytest.raises(NotLockHolderError):
                await other.release()


@pytest.mark.parametrize("refusal", [Reply(404, {"a": "proxy"}), problem(403, "permission_denied", retry="never")])
async def test_a_release_at_the_end_of_a_block_goes_on_whatever_it_is_told(refusal: Reply) -> None:
    replies = [refusal]
    cluster = Coordination(lambda asked: replies.pop(0) if replies and asked.target.endswith("/release") else None)
    with Scripted(cluster) as server:
        async with client_of(server) as client, client.session() as session:
            with pytest.raises((ProtocolError, PermissionDeniedError)):
                async with session.lock("l"):
                    pass
            # Waits until it is given up.
            async with session.lock("l"):
                assert cluster.released == [{"token": "5"}]


async def test_what_is_given_up_in_the_background_goes_on_as_long_as_the_session_lives() -> None:
    failing = [Reply(cut=True)] * 5
    cluster = Coordination(lambda asked: failing.pop() if failing and asked.target.endswith("/release") else None)
    with Scripted(cluster) as server:
        async with client_of(server, attempts_max=1) as client, client.session() as session:
            async with session.lock("l"):
                pass
            async with session.lock("l"):
                assert cluster.released == [{"token": "5"}]
            ids = [asked.headers["idempotency-key"] for asked in server.asked if asked.target.endswith("/release")]
            # Each is a question of its own: none goes again when nodes may have forgotten it.
            assert len(set(ids)) == len(ids) == 7


# --- renewals --------------------------------------------------------------------------------------------------------------------


async def test_a_session_that_an_answer_does_not_name_was_not_renewed() -> None:
    def special(asked: Asked) -> Reply | None:
        renewal = {"session": "8", "ttl_ms": 500, "renew_in_ms": 100, "expires_in_ms": 500}
        return Reply(200, {"sessions": [renewal], "revision": "1", "index": 1}) if asked.target.endswith("/renew") else None

    with Scripted(Coordination(special, ttl_ms=500)) as server:
        async with client_of(server) as client, client.session() as session:
            assert await session.wait_lost(timeout=5) == "not_renewed"
            assert any(asked.target.endswith("/renew") for asked in server.asked)


# --- what an answer is about -----------------------------------------------------------------------------------------------------


async def test_an_answer_about_another_key_is_an_error() -> None:
    with Scripted([Reply(200, ENTRY)]) as server:
        async with client_of(server) as client:
            with pytest.raises(ProtocolError, match=r"the answer is about `k`, not `other`: a proxy may have changed the path") as read:
                await client.get("other")
            assert read.value.applied == "no"
            with pytest.raises(ProtocolError, match="not `other`"):
                await client.wait_for_change("other", None, 1)
            with pytest.raises(ProtocolError):
                await client.get_and_lock("other")
    with Scripted([Reply(200, WRITTEN)]) as server:
        async with client_of(server) as client:
            with pytest.raises(ProtocolError) as written:
                await client.put("other", 1)
            assert (written.value.applied, written.value.request_id is None) == ("unknown", False)
            assert (await client.put("k", 1)).revision == 7


async def test_an_answer_about_another_lock_is_an_error_and_that_one_is_given_up() -> None:
    held = {"lock": "b", "session": "9", "mode": "exclusive", "state": "held", "token": "5", "revision": "5", "index": 5}
    cluster = Coordination(lambda asked: Reply(200, held) if asked.target.endswith("/acquire") else None)
    with Scripted(cluster) as server:
        async with client_of(server) as client, client.session() as session:
            with pytest.raises(ProtocolError, match=r"about `b`, not `a/\.\./b`"):
                await session.lock("a/../b")
            assert await until(lambda: cluster.released == [{"session": "9"}])
            held["session"] = "10"
            with pytest.raises(ProtocolError, match="about `10`, not `9`"):
                await session.lock("b")


async def test_a_lock_of_another_name_is_not_taken_from_another_handle() -> None:
    held = {"lock": "b", "session": "9", "mode": "exclusive", "state": "held", "token": "5", "revision": "5", "index": 5}
    for is_ours in (True, False):
        cluster = Coordination(lambda asked: Reply(200, held) if asked.target.endswith("/acquire") else None)
        with Scripted(cluster) as server:
            async with client_of(server) as client, client.session() as session:
                lock = await session.lock("b") if is_ours else None
                with pytest.raises(ProtocolError, match=r"about `b`, not `a/\.\./b`"):
                    await session.lock("a/../b")
                if lock is None:
                    # It is given up before, or it would be while it is held.
                    await session.lock("b")
                    asked = [asked.target.rsplit("/", 1)[-1] for asked in server.asked if asked.target.startswith("/v1/locks/")]
                    assert asked == ["acquire", "acquire", "release", "acquire"]
                    continue
                await sleep(0.2)
                assert cluster.released == []
                await lock.release()
                assert cluster.released == [{"token": "5"}]


async def test_a_barrier_of_another_name_is_left_unless_the_session_is_in_it() -> None:
    answer = {"barrier": "b", "entered": 1, "parties": 1, "state": "open", "opened_revision": "5", "revision": "5", "index": 5}
    for is_ours in (True, False):
        with Scripted(Coordination(lambda asked: Reply(200, answer) if asked.target.startswith("/v1/barriers/") else None)) as server:
            async with client_of(server) as client, client.session() as session:
                ours = session.barrier("b", 1)
                if is_ours:
                    await ours.enter()
                with pytest.raises(ProtocolError, match=r"about `b`, not `a/\.\./b`"):
                    await session.barrier("a/../b", 1).enter()
                # Else it would be left while the session is in it.
                await ours.enter()
                await sleep(0.1)
                left = [asked for asked in server.asked if asked.target.endswith("/leave")]
                assert len(left) == (0 if is_ours else 1)


@pytest.mark.parametrize("event", ["vacant", "leader"])
async def test_an_event_of_another_election_is_an_error(event: str) -> None:
    told = {"election": "b", "revision": "7", "term": "5", "session": "9", "owner": "", "since": "2026-01-01T00:00:00Z"}
    data = f"event: {event}\nid: 7\ndata: {json.dumps(told)}\n\n".encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    with Scripted([Reply(raw=head + b"%x\r\n%b\r\n" % (len(data), data))]) as server:
        async with client_of(server) as client:
            async with client.election("a/../b").observe() as seen:
                with pytest.raises(ProtocolError, match=r"about `b`, not `a/\.\./b`"):
                    await seen.next()
            async with client.election("b").observe() as seen:
                leads = await seen.next()
            assert (leads.revision, leads.leader is None) == (7, event == "vacant")


@pytest.mark.parametrize("key", ["a//b", "a/../b", "./a", "/a", "a/", ".", ".."])
async def test_a_key_that_proxies_rewrite_is_in_no_path(key: str) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.target == "/v1/ops":
            return Reply(200, {**ENTRY, "key": asked.json["key"]})
        assert asked.target.startswith("/v1/kv?start=")
        return Reply(200, {"entries": [{**ENTRY, "key": key}], "revision": "7", "index": 1})

    with Scripted(answer) as server:
        async with client_of(server) as client:
            for entry in (await client.get(key), await client.get(key, local=True), await client.get(key, revision=7)):
                assert entry is not None
                assert (entry.key, entry.value) == (key, 1)
            assert await client.exists(key)
        assert server.asked[0].json == {"op": "get", "key": key}
    with Scripted([Reply(200, {"entries": [ENTRY], "revision": "7", "index": 1})]) as server:
        async with client_of(server) as client:
            # The next one after it.
            assert await client.get(key, revision=7) is None
            assert not await client.exists(key)


@pytest.mark.parametrize("elsewhere", [Reply(304), NOT_THERE])
async def test_a_wait_for_a_key_that_proxies_rewrite_ends_with_its_change(elsewhere: Reply) -> None:
    before, after = (Reply(200, {**ENTRY, "key": "a//b", "cas": cas}) for cas in ("7", "9"))
    with Scripted([elsewhere, before, after]) as server:
        async with client_of(server) as client:
            change = await client.wait_for_change("a//b", "7", 5)
    assert change.entry is not None
    assert (change.entry.cas, len(server.asked)) == ("9", 3)
    for look, known, kind in ((before, "7", "none"), (NOT_THERE, "7", "gone"), (NOT_THERE, None, "none")):
        with Scripted([elsewhere, look]) as server:
            async with client_of(server) as client:
                assert (await client.wait_for_change("a//b", known, 0)).kind == kind


# --- another cluster -------------------------------------------------------------------------------------------------------------


def of(cluster: str, body: object) -> Reply:
    return Reply(200, body, {"quorate-cluster": cluster})


def knows(client: AsyncClient, cluster: str) -> None:
    """All its nodes said a while ago that they are of this cluster."""
    for node in range(len(client._core.lines)):
        client._core.endpoints.is_ours(node, cluster, time.monotonic())


def calls(server: Scripted) -> list[Asked]:
    """The requests that came, without questions who it is."""
    return [asked for asked in server.asked if asked.target != "/v1/cluster/status"]


def script(*replies: Reply) -> Callable[[Asked], Reply]:
    """These answers to calls, the last again and again; nothing is said of who the node is."""
    left = list(replies)

    def answer(asked: Asked) -> Reply:
        if asked.target == "/v1/cluster/status":
            return Reply(cut=True)
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


async def test_a_node_of_another_cluster_is_not_believed_and_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    with Scripted([of("ours", ENTRY)]) as one, Scripted([of("theirs", {**ENTRY, "value": 2})]) as other:
        async with client_of(one) as client:
            # Which of several is asked first is random.
            await client.get("k")
        async with client_of(one, other) as client:
            knows(client, "ours")
            with caplog.at_level(logging.WARNING, "quorate"):
                for _ in range(6):
                    entry = await client.get("k")
                    assert entry is not None
                    assert entry.value == 1
        assert len(calls(other)) == 1
        assert [record.getMessage() for record in caplog.records] == [
            f"{other.address}: it is a node of the cluster theirs, not of ours; what it says is not believed"
        ]


async def test_a_write_that_another_cluster_took_goes_on_under_its_id() -> None:
    with Scripted([of("theirs", WRITTEN)]) as other, Scripted([of("ours", WRITTEN)]) as one:
        async with client_of(other, one) as client:
            knows(client, "ours")
            for _ in range(2):
                assert (await client.put("k", 1)).revision == 7
        assert len(calls(other)) == 1
        assert calls(other)[0].headers["idempotency-key"] in {asked.headers.get("idempotency-key") for asked in one.asked}
    with Scripted([of("theirs", problem(409, "already_exists").body)]) as other, Scripted([Reply(cut=True)]) as one:
        async with client_of(other, one, attempts_max=2) as client:
            knows(client, "ours")
            with pytest.raises(UnknownOutcomeError):
                await client.insert("k", 1)


async def test_one_address_may_be_that_of_several_nodes() -> None:
    with Scripted(script(of("ours", ENTRY), of("theirs", WRITTEN), of("theirs", WRITTEN), of("ours", ENTRY))) as server:
        async with client_of(server, attempts_max=2) as client:
            await client.get("k")
            with pytest.raises(UnavailableError, match=r"a node of the cluster theirs, not of ours; .* try again") as caught:
                await client.put("k", 1)
            assert caught.value.applied == "no"
            assert await client.get("k") is not None


async def test_a_connection_on_which_a_stranger_spoke_is_not_used_again() -> None:
    with Scripted(script(of("ours", ENTRY), of("theirs", ENTRY))) as server:
        async with client_of(server, attempts_max=3) as client:
            await client.get("k")
            with pytest.raises(UnavailableError):
                await client.get("k")
        # The first try in vain came by the connection of the good answer.
        assert len(calls(server)) == 4
        assert len({asked.connection for asked in calls(server)}) == 3


async def test_a_client_goes_over_once_most_of_its_nodes_have() -> None:
    moved = {**ENTRY, "value": 2}
    with Scripted([of("theirs", moved)]) as one, Scripted([of("theirs", moved)]) as other, Scripted([of("ours", ENTRY)]) as former:
        async with client_of(one, other, former) as client:
            knows(client, "ours")
            for _ in range(6):
                assert await client.get("k") is not None
            before = len(calls(former))
            for _ in range(6):
                entry = await client.get("k")
                assert entry is not None
                assert entry.value == 2
        assert len(calls(former)) == before


async def test_a_call_that_outlives_its_client_keeps_no_connection() -> None:
    with Scripted([of("ours", ENTRY)]) as server:
        async with client_of(server) as client:
            await client.get("k")
            line = client._core.lines[0]
            wire = line._take()
            assert wire is not None
        line._keep(wire)
        assert not line._idle


async def test_where_nobody_else_answers_the_error_names_both_clusters() -> None:
    with Scripted([of("theirs", ENTRY)]) as server:
        async with AsyncClient([server.address, "127.0.0.1:1"], timeout=0.3, discover_members=False) as client:
            knows(client, "ours")
            with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1: .*; .*the cluster theirs, not of ours; .* try again"):
                await client.get("k")


async def test_nodes_that_do_not_say_their_cluster_are_believed() -> None:
    with Scripted([Reply(200, ENTRY)]) as one, Scripted([of("ours", ENTRY)]) as other:
        async with client_of(one, other) as client:
            for _ in range(4):
                assert await client.get("k") is not None
        assert (len(one.asked), len(other.asked)) == (2, 2)


async def test_who_is_of_another_cluster_is_no_node_of_ours() -> None:
    numbers = ("applied_index", "cluster_clock_ms", "committed_index", "last_log_index", "node_id", "purged_index", "snapshot_index")
    status = {**dict.fromkeys(numbers, 1), "digest": "", "incarnation": "", "ready": True, "role": "leader", "version": ""}
    status |= {"oldest_revision": "1", "revision": "1", "term": "1", "leader_id": 1, "members": []}
    ours = Reply(200, {**status, "cluster_id": "ours"})
    # It knows of more than ours, as one that was found anew may.
    theirs = Reply(200, {**status, "cluster_id": "theirs", "node_id": 2, "applied_index": 9})
    with Scripted([ours]) as one, Scripted([theirs]) as other:
        async with client_of(one, other) as client:
            await client._core._introduce_all()
            assert client._core.endpoints.cluster == "ours"
            assert [node.id for node in client._core.endpoints.nodes] == [1, None]
    with Scripted([of("theirs", status)]) as other:
        async with client_of(other) as client:
            knows(client, "ours")
            (seen,) = await client.status_of_all()
            assert "the cluster theirs, not of ours" in str(seen.error)


# --- the time of a request id ----------------------------------------------------------------------------------------------------


async def test_no_id_goes_again_after_the_wall_clock_says_that_nodes_may_have_forgotten_it(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = [1_000_000.0]
    monkeypatch.setattr(time, "time", lambda: wall[0])

    def answer(asked: Asked) -> Reply:
        # The machine sleeps, and its monotonic clock with it.
        wall[0] += 20 * 60
        return Reply(cut=True)

    with Scripted(answer) as server:
        async with client_of(server) as client:
            with pytest.raises(UnknownOutcomeError):
                await client.put("k", 1)
            assert len(server.asked) == 1
            done = [one async for one in client.stream([Op.put("k", 1)])]
            assert [type(one.error) for one in done] == [UnknownOutcomeError]
            assert len(server.asked) == 2


async def test_a_place_is_asked_for_under_another_id_once_nodes_may_have_forgotten_it(monkeypatch: pytest.MonkeyPatch) -> None:
    wall, cuts = [1_000_000.0], [0.0, 20 * 60.0]
    monkeypatch.setattr(time, "time", lambda: wall[0])

    def special(asked: Asked) -> Reply | None:
        if not asked.target.endswith("/acquire") or not cuts:
            return None
        wall[0] += cuts.pop()
        return Reply(cut=True)

    with Scripted(Coordination(special)) as server:
        async with client_of(server, attempts_max=1) as client, client.session() as session, session.lock("l") as lock:
            # Until a renewal behind the sleep is confirmed the session is suspect.
            assert await until(lambda: session.state == "alive")
            assert lock.token == 5
        ids = [asked.headers["idempotency-key"] for asked in server.asked if asked.target.endswith("/acquire")]
    # The machine slept after the first; the second is repeated as it was.
    assert len(ids) == 3
    assert ids[0] != ids[1] == ids[2]


async def test_changes_of_a_mirror_can_be_closed() -> None:
    synced = b'event: synced\ndata: {"revision": "1"}\n\n'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nquorate-revision: 1\r\ntransfer-encoding: chunked\r\n\r\n"
    with Scripted([Reply(raw=head + b"%x\r\n%b\r\n" % (len(synced), synced))]) as server:
        async with client_of(server) as client, client.mirror("") as mirror:
            async with mirror.changes() as changes:
                assert len(mirror._listeners) == 1
            assert [change async for change in changes] == []
            with pytest.raises(InvalidRequestError, match="closed"):
                await changes.next()
            ending = mirror.changes()
            ending.close()
            assert [change async for change in ending] == []
            del changes, ending
            mirror.changes()
            assert len(mirror._listeners) <= 1
