"""Cases for etcd3gw, which speaks to the JSON gateway."""

import queue
import time

import etcd3gw
from etcd3gw import exceptions

CASES = []


def client(host, port):
    return etcd3gw.client(host=host, port=port, timeout=20)


def case(function):
    CASES.append(function)
    return function


def eventually(seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.1)


# --- entries


@case
def put_and_get(etcd, at):
    assert etcd.put(at + "a", "one") is True
    (value, meta), = etcd.get(at + "a", metadata=True)
    assert value == b"one" and meta["key"] == (at + "a").encode()
    # 64-bit numbers are strings in JSON.
    assert meta["version"] == "1" and meta["create_revision"] == meta["mod_revision"]
    assert int(meta["mod_revision"]) > 1 and "lease" not in meta
    assert etcd.get(at + "nothing") == []


@case
def any_bytes(etcd, at):
    key, value = at.encode() + bytes(range(256)), bytes(range(256)) * 10
    etcd.put(key, value)
    assert etcd.get(key) == [value]
    etcd.put(key, b"")
    (value, meta), = etcd.get(key, metadata=True)
    assert value == b"" and meta["key"] == key


@case
def prefix_and_all(etcd, at):
    for each in "abc":
        etcd.put(at + each, each)
    assert [value for value, _ in etcd.get_prefix(at)] == [b"a", b"b", b"c"]
    assert {(at + each).encode() for each in "abc"} <= {meta["key"] for _, meta in etcd.get_all()}


@case
def sorted_by_everything(etcd, at):
    for key, value in (("b", "x"), ("c", "z"), ("a", "y"), ("b", "x"), ("b", "x"), ("c", "z")):
        etcd.put(at + key, value)
    for target, ascending in {"key": "abc", "version": "acb", "create": "bca", "mod": "abc", "value": "bac"}.items():
        for order, expected in (("ascend", ascending), ("descend", ascending[::-1])):
            seen = "".join(meta["key"].decode()[-1] for _, meta in etcd.get_prefix(at, sort_order=order, sort_target=target))
            assert seen == expected, f"{target} {order}: {seen}, not {expected}"


@case
def every_option_of_a_range(etcd, at):
    for each in "abcd":
        etcd.put(at + each, each)
    end = at[:-1] + "0"
    entries = etcd.get(at, metadata=True, range_end=end)
    revisions = [int(meta["mod_revision"]) for _, meta in entries]
    assert etcd.get(at, range_end=end, limit=2) == [b"a", b"b"]
    assert etcd.get(at, range_end=end, serializable=True, keys_only=True) == [b""] * 4
    assert etcd.get(at, range_end=end, count_only=True) == []
    assert etcd.get(at, range_end=end, revision=revisions[1]) == [b"a", b"b"]
    assert etcd.get(at, range_end=end, min_mod_revision=revisions[2]) == [b"c", b"d"]
    assert etcd.get(at, range_end=end, max_mod_revision=revisions[2]) == [b"a", b"b", b"c"]
    assert etcd.get(at, range_end=end, min_create_revision=revisions[3]) == [b"d"]
    assert etcd.get(at, range_end=end, max_create_revision=revisions[0]) == [b"a"]


@case
def create_replace_delete(etcd, at):
    assert etcd.create(at + "a", "one") is True
    assert etcd.create(at + "a", "two") is False
    assert etcd.replace(at + "a", "one", "three") is True
    assert etcd.replace(at + "a", "one", "four") is False
    assert etcd.get(at + "a") == [b"three"]
    assert etcd.delete(at + "a", prev_kv=True) is True
    assert etcd.delete(at + "a") is False
    etcd.put(at + "a", "one")
    etcd.put(at + "b", "two")
    assert etcd.delete_prefix(at) is True
    assert etcd.get_prefix(at) == []


@case
def transaction(etcd, at):
    """The client sends transactions without a content type."""
    encode = etcd3gw.utils._encode
    key, other = encode(at + "a"), encode(at + "b")
    put = {"request_put": {"key": key, "value": encode("one")}}
    nested = {"request_txn": {"compare": [{"key": key, "target": "VERSION", "result": "GREATER", "version": "0"}],
                              "success": [{"request_range": {"key": key}}],
                              "failure": [{"request_put": {"key": other, "value": encode("two")}}]}}
    answer = etcd.transaction({"compare": [{"key": key, "target": "CREATE", "create_revision": 0}], "success": [put, nested]})
    assert answer["succeeded"] is True
    assert answer["responses"][0]["response_put"]["header"]["revision"] == answer["header"]["revision"]
    inside = answer["responses"][1]["response_txn"]
    assert "succeeded" not in inside, "comparisons see the state before the transaction, nested ones, too"
    assert etcd.get(at + "b") == [b"two"]
    answer = etcd.transaction({"compare": [{"key": key, "target": 2, "result": 0, "mod_revision": "1"}], "success": [put]})
    assert "succeeded" not in answer, "false is left out"


@case
def what_is_refused(etcd, at):
    for body in ({"key": ""}, {"key": "not base64!"}):
        try:
            etcd.post(etcd.get_url("/kv/put"), json=body)
        except exceptions.Etcd3Exception as error:
            assert '"code":3' in error.detail_text.replace(" ", ""), error.detail_text
        else:
            raise AssertionError(f"{body} was taken")


# --- watches


@case
def watch(etcd, at):
    events, cancel = etcd.watch(at + "a")
    etcd.put(at + "a", "one")
    event = next(events)
    assert "type" not in event and event["kv"]["value"] == b"one" and event["kv"]["key"] == (at + "a").encode()
    etcd.delete(at + "a")
    assert next(events)["type"] == "DELETE"
    cancel()


@case
def watch_of_a_prefix(etcd, at):
    etcd.put(at + "a", "zero")
    start = int(etcd.get(at + "a", metadata=True)[0][1]["mod_revision"])
    events, cancel = etcd.watch_prefix(at, start_revision=start, prev_kv=True)
    etcd.put(at + "a", "one")
    etcd.put(at[:-1] + "0", "beyond")
    etcd.put(at + "b", "two")
    seen = [next(events) for _ in range(3)]
    assert [event["kv"]["value"] for event in seen] == [b"zero", b"one", b"two"]
    assert etcd3gw.utils._decode(seen[1]["prev_kv"]["value"]) == b"zero"
    assert "prev_kv" not in seen[2]
    cancel()


@case
def watch_with_filters(etcd, at):
    events, cancel = etcd.watch_prefix(at, filters=["NOPUT"])
    etcd.put(at + "a", "one")
    etcd.delete(at + "a")
    assert next(events)["type"] == "DELETE"
    cancel()


@case
def watch_of_many_events(etcd, at):
    """Each message has to come whole, since the client takes a piece of the body for one."""
    events, cancel = etcd.watch_prefix(at)
    for number in range(300):
        etcd.put(f"{at}{number}", "x" * (number * 20))
    assert [len(next(events)["kv"].get("value", b"")) for _ in range(300)] == [number * 20 for number in range(300)]
    cancel()


@case
def watch_once(etcd, at):
    etcd.put(at + "a", "one")
    start = int(etcd.get(at + "a", metadata=True)[0][1]["mod_revision"])
    assert etcd.watch_once(at + "a", timeout=10, start_revision=start)["kv"]["value"] == b"one"
    assert etcd.watch_prefix_once(at, timeout=10, start_revision=start)["kv"]["value"] == b"one"
    try:
        etcd.watch_once(at + "a", timeout=0.5)
    except exceptions.WatchTimedOut:
        return
    raise AssertionError("an event came from nowhere")


# --- leases and locks


@case
def lease(etcd, at):
    lease = etcd.lease(ttl=60)
    etcd.put(at + "a", "one", lease=lease)
    assert 50 < lease.ttl() <= 60
    assert lease.keys() == [(at + "a").encode()]
    assert lease.refresh() == 60
    assert etcd.get(at + "a", metadata=True)[0][1]["lease"] == str(lease.id)
    assert lease.revoke() is True
    assert etcd.get(at + "a") == []
    assert lease.ttl() == -1 and lease.refresh() == -1
    try:
        lease.revoke()
    except exceptions.Etcd3Exception as error:
        assert "etcdserver: requested lease not found" in error.detail_text and '"code":5' in error.detail_text.replace(" ", "")
    else:
        raise AssertionError("a lease was revoked twice")


@case
def lease_that_ends(etcd, at):
    lease = etcd.lease(ttl=1)
    assert etcd.create(at + "a", "one", lease=lease)
    ended = queue.Queue()
    events, cancel = etcd.watch(at + "a")
    ended.put(next(events)["type"])
    assert ended.get() == "DELETE"
    cancel()
    eventually(10, lambda: lease.ttl() == -1)


@case
def lock(etcd, at):
    with etcd.lock(at, ttl=30) as held:
        assert held.is_acquired()
        assert etcd.lock(at, ttl=30).acquire() is False
        assert held.refresh() == 30
    assert not held.is_acquired()


# --- the cluster


@case
def status_and_members(etcd, at):
    status = etcd.status()
    assert int(status["leader"]) in [int(member["ID"]) for member in etcd.members()]
    assert status["version"].count(".") == 2 and int(status["dbSize"]) > 0 and int(status["raftIndex"]) > 0
    assert all(url.startswith("http") for member in etcd.members() for url in member["clientURLs"])
