# Written by scripts/generate_sync.py out of test_calls_async.py; do not edit.
"""What calls do when things go wrong, against servers that answer as they are told."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from quorate import (
    CasMismatchError,
    Client,
    ContendedError,
    InvalidRequestError,
    LockedError,
    ProtocolError,
    RetryPolicy,
    UnauthenticatedError,
    UnavailableError,
    UnknownOutcomeError,
)
from tests.unit.scripted import Reply, Scripted, problem

WRITTEN = Reply(200, {"key": "k", "revision": "7", "index": 1, "cas": "7", "version": 1})
ENTRY = {
    "key": "k",
    "value": {"n": 1},
    "content_type": "json",
    "cas": "7",
    "create_revision": "7",
    "mod_revision": "7",
    "version": 1,
}


def client_of(*servers: Scripted, timeout: float = 5.0, attempt_timeout: float = 3.0, attempts_max: int = 1000) -> Client:
    endpoints = [server.address for server in servers]
    policy = RetryPolicy(attempts_max=attempts_max)
    return Client(endpoints, timeout=timeout, attempt_timeout=attempt_timeout, discover_members=False, retry=policy)


def test_a_write_whose_answer_is_lost_goes_again_under_the_same_id() -> None:
    with Scripted([Reply(cut=True)]) as one, Scripted([WRITTEN]) as other:
        with client_of(one, other) as client:
            # It begins at one of both.
            for _ in range(3):
                assert (client.put("k", 1)).revision == 7
        asked = one.asked + other.asked
        ids = [request.headers["idempotency-key"] for request in asked]
        assert len(set(ids)) == 3
        assert len(one.asked) >= 1
        assert {request.headers["idempotency-key"] for request in one.asked} < set(ids)
        assert all(request.json == {"op": "upsert", "key": "k", "value": 1} for request in asked)


def test_what_nobody_could_tell_is_unknown_and_has_the_id_to_ask_with() -> None:
    with Scripted([Reply(cut=True)]) as server:
        with client_of(server, attempts_max=3) as client:
            with pytest.raises(UnknownOutcomeError) as caught:
                client.put("k", 1, request_id="mine")
    assert (caught.value.applied, caught.value.request_id, caught.value.attempts) == ("unknown", "mine", 3)
    assert caught.value.retry == "same_request_id"


def test_what_reached_nobody_was_not_applied() -> None:
    # A port that was free a moment ago another program may have.
    with Client("127.0.0.1:1", retry=RetryPolicy(attempts_max=2)) as client:
        with pytest.raises(UnavailableError) as caught:
            client.put("k", 1)
    assert caught.value.applied == "no"
    assert "cannot connect" in caught.value.detail


def test_a_read_that_is_lost_is_unavailable_and_not_unknown() -> None:
    with Scripted([Reply(cut=True)]) as server:
        with client_of(server, attempts_max=2) as client:
            with pytest.raises(UnavailableError):
                client.get("k")


def test_a_refusal_is_final_and_shows_what_is_there() -> None:
    with Scripted([problem(412, "cas_mismatch", current=ENTRY)]) as server:
        with client_of(server) as client:
            with pytest.raises(CasMismatchError) as caught:
                client.put("k", 1, cas="3")
        assert len(server.asked) == 1
    assert caught.value.current.value == {"n": 1}


def test_a_refusal_after_a_lost_answer_settles_it_only_by_way_of_the_log() -> None:
    with Scripted([Reply(cut=True), problem(403, "permission_denied", retry="never")]) as server:
        with client_of(server) as client:
            with pytest.raises(UnknownOutcomeError):
                client.put("k", 1)
    with Scripted([Reply(cut=True), problem(412, "cas_mismatch", index=5, current=ENTRY)]) as server:
        with client_of(server) as client:
            with pytest.raises(CasMismatchError):
                client.put("k", 1)


def test_a_node_that_is_not_ready_is_left_for_another() -> None:
    with Scripted([problem(503, "not_ready", retry="same_request_id")]) as one, Scripted([WRITTEN]) as other:
        with client_of(one, other) as client:
            for _ in range(4):
                client.put("k", 1)


def test_a_node_that_says_nothing_is_left_for_another_in_time() -> None:
    with Scripted([Reply(hang=30)]) as one, Scripted([WRITTEN]) as other:
        with client_of(one, other, attempt_timeout=0.2) as client:
            for _ in range(2):
                assert (client.put("k", 1)).revision == 7


def test_the_deadline_is_told_to_the_node_and_ends_the_call() -> None:
    with Scripted([Reply(hang=30)]) as server:
        with client_of(server, timeout=0.3) as client:
            with pytest.raises(UnavailableError) as caught:
                client.get("k")
        assert caught.value.elapsed < 5
        assert 200 <= int(server.asked[0].headers["request-timeout"]) <= 300


def test_what_is_no_answer_of_a_node_is_told() -> None:
    with Scripted([Reply(404, {"hello": 1})]) as server:
        with client_of(server) as client:
            with pytest.raises(ProtocolError, match="is this a Quorate node"):
                client.get("k")
    with Scripted([Reply(200, {"key": "k"})]) as server:
        with client_of(server) as client:
            with pytest.raises(ProtocolError) as caught:
                client.put("k", 1)
    assert caught.value.applied == "unknown"
    with Scripted([Reply(raw=b"SSH-2.0-OpenSSH\r\n\r\n")]) as server:
        with client_of(server, attempts_max=2) as client:
            with pytest.raises(UnavailableError):
                client.get("k")


def test_connections_are_kept_and_a_closed_one_is_replaced() -> None:
    with Scripted([WRITTEN]) as server:
        with client_of(server) as client:
            for _ in range(5):
                client.put("k", 1)
            assert server.connections == 1
    closing = Reply(200, WRITTEN.body, {"connection": "close"})
    with Scripted([closing]) as server:
        with client_of(server) as client:
            for _ in range(3):
                client.put("k", 1)
            assert server.connections == 3


def test_an_answer_in_chunks_is_put_together() -> None:
    body = b'{"key":"k","value":"' + b"x" * 70_000 + b'","content_type":"json","cas":"7","create_revision":"7",'
    body += b'"mod_revision":"7","version":1}'
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:10], body[10:65_000], body[65_000:]))
    raw = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    with Scripted([Reply(raw=raw)]) as server:
        with client_of(server) as client:
            entry = client.get("k")
    assert entry is not None
    assert entry.value == "x" * 70_000


def test_a_token_file_is_read_again_when_it_was_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    refused = problem(401, "unauthenticated", retry="never")
    with Scripted([WRITTEN, refused, WRITTEN, refused]) as server:
        with Client(server.address, token_file=file) as client:
            client.put("k", 1)
            file.write_text("second!\n")
            client.put("k", 1)
            with pytest.raises(UnauthenticatedError):
                client.put("k", 1)
        tokens = [request.headers["authorization"] for request in server.asked]
    # The file was looked at less than a second ago, so the second write is refused once.
    assert tokens == ["Bearer first", "Bearer first", "Bearer second!", "Bearer second!"]
    with pytest.raises(InvalidRequestError, match="token"):
        Client("a:1", token_file=tmp_path / "none")
    assert "first" not in repr(client) + repr(vars(client))


def test_an_update_tries_again_on_what_a_refusal_shows() -> None:
    current = {**ENTRY, "value": {"n": 5}, "cas": "9"}
    script = [Reply(200, ENTRY), problem(412, "cas_mismatch", current=current), WRITTEN]
    with Scripted(script) as server:
        with client_of(server) as client:
            updated = client.update("k", lambda value: {"n": value["n"] + 1})
        bodies = [request.json for request in server.asked[1:]]
    assert (updated.value, updated.tries) == ({"n": 6}, 2)
    assert [(body["cas"], body["value"], body["ttl"]) for body in bodies] == [("7", {"n": 2}, "keep"), ("9", {"n": 6}, "keep")]


def test_an_update_keeps_the_session_and_the_time_to_live_of_the_entry() -> None:
    lives = Reply(200, {**ENTRY, "ttl_ms": 4_000, "session": "17"})
    with Scripted([lives, WRITTEN, Reply(200, ENTRY), WRITTEN, lives, WRITTEN]) as server:
        with client_of(server) as client:
            client.update("k", lambda value: {"n": 2})
            client.update("k", lambda value: {"n": 2})
            client.update("k", lambda value: {"n": 2}, ttl=2, session="18")
        bodies = [request.json for request in server.asked if request.method == "POST"]
    # No time is given back, none comes from its collection, and one that is told is meant.
    shared = {"op": "replace", "key": "k", "value": {"n": 2}, "cas": "7"}
    assert bodies == [
        {**shared, "ttl": "keep", "session": "17"},
        {**shared, "ttl": "keep"},
        {**shared, "ttl_ms": 2_000, "session": "18"},
    ]


def test_an_update_that_loses_every_time_or_finds_a_lock_says_so() -> None:
    with Scripted([Reply(200, ENTRY), problem(412, "cas_mismatch", current=ENTRY)]) as server:
        with client_of(server) as client:
            with pytest.raises(ContendedError) as caught:
                client.update("k", lambda value: value, tries=3)
            assert caught.value.tries == 3
        assert len(server.asked) == 4
    with Scripted([Reply(200, {**ENTRY, "cas": None, "locked": True, "lock_ms": 50})]) as server:
        with client_of(server) as client:
            with pytest.raises(LockedError) as locked:
                client.update("k", lambda value: value)
    assert locked.value.current is not None
    assert locked.value.current.lock_ms == 50
    assert (locked.value.code, locked.value.applied) == ("locked", "no")


def test_an_update_that_leaves_things_as_they_are_writes_nothing() -> None:
    with Scripted([Reply(200, ENTRY)]) as server:
        with client_of(server) as client:
            updated = client.update("k", lambda value: None)
        assert (updated.is_written, len(server.asked)) == (False, 1)


def test_a_closed_client_says_so() -> None:
    client = Client("127.0.0.1:1")
    client.close()
    with pytest.raises(InvalidRequestError, match="closed"):
        client.get("k")


def test_no_token_goes_in_clear_to_a_node_that_was_not_given() -> None:
    assert not Client("a:1", token="t")._core.endpoints.discovers
    assert Client("a:1")._core.endpoints.discovers


def test_a_unix_socket_is_asked_as_localhost_and_may_be_away(tmp_path: Path) -> None:
    path = str(tmp_path / "node.sock")
    with Scripted([WRITTEN]) as other:
        with Client([f"unix://{path}", other.address], discover_members=False) as client:
            for _ in range(2):
                assert (client.put("k", 1)).revision == 7
            assert client.endpoints == [f"unix:{path}", other.address]
        with Client(f"unix:{path}", retry=RetryPolicy(attempts_max=2)) as client:
            with pytest.raises(UnavailableError, match=r"unix:.*node\.sock: cannot connect"):
                client.put("k", 1)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen()
    with Scripted([WRITTEN], listener) as server:
        with client_of(server) as client:
            assert (client.put("k", 1)).revision == 7
            assert (client.put("k", 1)).revision == 7
        assert {request.headers["host"] for request in server.asked} == {"localhost"}
        assert server.connections == 1


def test_an_endpoint_with_tls_needs_a_ca() -> None:
    with pytest.raises(InvalidRequestError, match="no CA is named"):
        Client("https://a:1")


def test_the_environment_says_where_and_who(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORATE_ENDPOINTS", "a:1,b:2")
    monkeypatch.setenv("QUORATE_TOKEN", "secret")
    client = Client.from_env()
    assert client.endpoints == ["a:1", "b:2"]
    assert client._core.credentials.shown().authorization == "Bearer secret"
    monkeypatch.setenv("QUORATE_CERT", "x")
    with pytest.raises(InvalidRequestError, match="belong together"):
        Client.from_env()
