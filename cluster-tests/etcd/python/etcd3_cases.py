"""Cases for python-etcd3, which speaks gRPC."""

import io
import queue
import threading
import time
import uuid

import etcd3
import grpc

CASES = []


def client(host, port, **options):
    made = etcd3.client(host=host, port=port, timeout=20, **options)
    # It sends the token twice, and newer grpcio takes the second way only over TLS.
    made.call_credentials = made.watcher._credentials = None
    made.address = (host, port)
    return made


def case(function):
    CASES.append(function)
    return function


def eventually(seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.1)


def refused(code, call):
    """The text with which a call is refused; etcd's texts are part of its interface."""
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, f"{error.code()}: {error.details()}"
        return error.details()
    except etcd3.exceptions.Etcd3Exception as error:
        return type(error).__name__
    raise AssertionError("it was not refused")


# --- entries


@case
def put_and_get(etcd, at):
    first = etcd.put(at + "a", "one")
    value, meta = etcd.get(at + "a")
    assert value == b"one"
    assert meta.key == (at + "a").encode()
    assert meta.create_revision == meta.mod_revision == first.header.revision
    assert (meta.version, meta.lease_id) == (1, 0)
    assert meta.response_header.cluster_id and meta.response_header.member_id and meta.response_header.raft_term
    second = etcd.put(at + "a", "two")
    value, meta = etcd.get(at + "a", serializable=True)
    assert meta.create_revision == first.header.revision
    assert etcd.get(at + "a")[1].mod_revision == second.header.revision
    assert etcd.get(at + "a")[1].version == 2


@case
def get_of_nothing(etcd, at):
    assert etcd.get(at + "nothing") == (None, None)
    assert etcd.get_response(at + "nothing").count == 0


@case
def any_bytes(etcd, at):
    key, value = at.encode() + bytes(range(256)), bytes(range(256)) * 10
    etcd.put(key, value)
    assert etcd.get(key)[0] == value
    etcd.put(key, b"")
    assert etcd.get(key)[0] == b""


@case
def put_with_the_entry_before(etcd, at):
    assert not etcd.put(at + "a", "one", prev_kv=True).HasField("prev_kv")
    assert etcd.put(at + "a", "two", prev_kv=True).prev_kv.value == b"one"


@case
def prefix(etcd, at):
    for each in "abc":
        etcd.put(at + each, each * 2)
    etcd.put(at[:-1] + "0", "beyond")
    assert [(meta.key.decode()[-1], value) for value, meta in etcd.get_prefix(at)] == [("a", b"aa"), ("b", b"bb"), ("c", b"cc")]
    assert all(value == b"" for value, _ in etcd.get_prefix(at, keys_only=True))
    answer = etcd.get_prefix_response(at)
    assert answer.count == 3 and not answer.more


@case
def sorted_by_everything(etcd, at):
    etcd.put(at + "b", "x")
    etcd.put(at + "c", "z")
    etcd.put(at + "a", "y")
    etcd.put(at + "b", "x")
    etcd.put(at + "b", "x")
    etcd.put(at + "c", "z")
    for target, ascending in {"key": "abc", "version": "acb", "create": "bca", "mod": "abc", "value": "bac"}.items():
        for order, expected in (("ascend", ascending), ("descend", ascending[::-1])):
            seen = "".join(meta.key.decode()[-1] for _, meta in etcd.get_prefix(at, sort_order=order, sort_target=target))
            assert seen == expected, f"{target} {order}: {seen}, not {expected}"


@case
def ranges_and_all(etcd, at):
    for each in "abc":
        etcd.put(at + each, each)
    assert [value for value, _ in etcd.get_range(at + "a", at + "c")] == [b"a", b"b"]
    everything = {meta.key for _, meta in etcd.get_all()}
    assert {(at + each).encode() for each in "abc"} <= everything
    assert etcd.get_all_response(keys_only=True).count == len(everything)


@case
def delete(etcd, at):
    etcd.put(at + "a", "one")
    assert etcd.delete(at + "a") is True
    assert etcd.delete(at + "a") is False
    etcd.put(at + "a", "two")
    answer = etcd.delete(at + "a", prev_kv=True, return_response=True)
    assert answer.deleted == 1 and answer.prev_kvs[0].value == b"two"
    before = etcd.get_response(at).header.revision
    assert etcd.delete(at + "a", return_response=True).header.revision == before, "a deletion of nothing took a revision"


@case
def delete_prefix(etcd, at):
    for each in "abc":
        etcd.put(at + each, each)
    assert etcd.delete_prefix(at).deleted == 3
    assert list(etcd.get_prefix(at)) == []


@case
def a_deleted_entry_begins_anew(etcd, at):
    etcd.put(at + "a", "one")
    etcd.put(at + "a", "two")
    etcd.delete(at + "a")
    again = etcd.put(at + "a", "three").header.revision
    meta = etcd.get(at + "a")[1]
    assert (meta.version, meta.create_revision, meta.mod_revision) == (1, again, again)


# --- transactions


@case
def put_if_not_exists_and_replace(etcd, at):
    assert etcd.put_if_not_exists(at + "a", "one") is True
    assert etcd.put_if_not_exists(at + "a", "two") is False
    assert etcd.get(at + "a")[0] == b"one"
    assert etcd.replace(at + "a", "one", "three") is True
    assert etcd.replace(at + "a", "one", "four") is False
    assert etcd.replace(at + "nothing", "one", "two") is False
    assert etcd.get(at + "a")[0] == b"three"


@case
def every_comparison(etcd, at):
    key = at + "a"
    etcd.put(key, "m")
    etcd.put(key, "m")
    meta = etcd.get(key)[1]
    tests = etcd.transactions
    created, changed = meta.create_revision, meta.mod_revision
    for of, value, less, more in ((tests.version, 2, 1, 3), (tests.create, created, 1, changed),
                                  (tests.mod, changed, created, changed + 1), (tests.value, "m", "l", "n")):
        for holds, compare in ((True, of(key) == value), (False, of(key) == less), (True, of(key) != less), (False, of(key) != value),
                               (True, of(key) > less), (False, of(key) > value), (True, of(key) < more), (False, of(key) < value)):
            seen, _ = etcd.transaction(compare=[compare], success=[], failure=[])
            assert seen is holds, f"{compare!r}: {seen}"


@case
def comparisons_of_nothing(etcd, at):
    tests, key = etcd.transactions, at + "nothing"
    for compare in (tests.version(key) == 0, tests.create(key) == 0, tests.mod(key) == 0):
        assert etcd.transaction(compare=[compare], success=[], failure=[])[0] is True
    for compare in (tests.value(key) == "", tests.value(key) != "x", tests.value(key) < "x", tests.value(key) > ""):
        assert etcd.transaction(compare=[compare], success=[], failure=[])[0] is False


@case
def comparisons_of_a_range(etcd, at):
    tests, end = etcd.transactions, at[:-1] + "0"
    assert etcd.transaction(compare=[tests.create(at, end) == 0], success=[], failure=[])[0] is True
    assert etcd.transaction(compare=[tests.create(at, end) > 0], success=[], failure=[])[0] is False
    etcd.put(at + "a", "x")
    etcd.put(at + "b", "x")
    assert etcd.transaction(compare=[tests.value(at, end) == "x"], success=[], failure=[])[0] is True
    etcd.put(at + "b", "y")
    assert etcd.transaction(compare=[tests.value(at, end) == "x"], success=[], failure=[])[0] is False


@case
def transaction(etcd, at):
    tests = etcd.transactions
    etcd.put(at + "a", "one")
    succeeded, answers = etcd.transaction(
        compare=[tests.value(at + "a") == "one", tests.version(at + "b") == 0],
        success=[tests.put(at + "b", "two"), tests.get(at + "b"), tests.delete(at + "a", prev_kv=True), tests.get(at + "a")],
        failure=[tests.put(at + "c", "wrong")])
    assert succeeded
    assert answers[0].response_put.header.revision == answers[1][0][1].mod_revision
    assert answers[1][0][0] == b"two"
    assert answers[2].response_delete_range.prev_kvs[0].value == b"one"
    assert answers[3] == []
    succeeded, answers = etcd.transaction(
        compare=[tests.version(at + "b") > 1], success=[], failure=[tests.get(at, range_end=at[:-1] + "0")])
    assert not succeeded
    assert [value for value, _ in answers[0]] == [b"two"]
    assert etcd.get(at + "c") == (None, None)


@case
def nested_transaction(etcd, at):
    tests = etcd.transactions
    etcd.put(at + "a", "one")
    inner = tests.txn(compare=[tests.value(at + "a") == "two"], success=[tests.put(at + "b", "yes")],
                      failure=[tests.put(at + "b", "no"), tests.get(at + "b")])
    succeeded, answers = etcd.transaction(compare=[tests.version(at + "a") == 1], success=[inner, tests.put(at + "c", "x")], failure=[])
    assert succeeded
    inside = answers[0].response_txn
    assert not inside.succeeded
    assert inside.responses[1].response_range.kvs[0].value == b"no"
    assert etcd.get(at + "b")[1].mod_revision == etcd.get(at + "c")[1].mod_revision


@case
def a_key_twice(etcd, at):
    tests = etcd.transactions
    text = refused(grpc.StatusCode.INVALID_ARGUMENT, lambda: etcd.transaction(
        compare=[], success=[tests.put(at + "a", "1"), tests.put(at + "a", "2")], failure=[]))
    assert text == "etcdserver: duplicate key given in txn request", text


# --- watches; not with filters, which this client sets in a way that its protobuf refuses


@case
def watch(etcd, at):
    events, cancel = etcd.watch(at + "a")
    put = etcd.put(at + "a", "one")
    event = next(events)
    assert isinstance(event, etcd3.events.PutEvent)
    assert (event.key, event.value, event.version, event.mod_revision) == ((at + "a").encode(), b"one", 1, put.header.revision)
    gone = etcd.delete(at + "a", return_response=True)
    event = next(events)
    assert isinstance(event, etcd3.events.DeleteEvent)
    assert event.mod_revision == gone.header.revision
    cancel()
    etcd.put(at + "a", "two")
    assert list(events) == []


@case
def watch_of_a_prefix(etcd, at):
    events, cancel = etcd.watch_prefix(at)
    etcd.put(at + "a", "one")
    etcd.put(at[:-1] + "0", "beyond")
    etcd.put(at + "b", "two")
    assert [next(events).value for _ in range(2)] == [b"one", b"two"]
    cancel()


@case
def watch_from_a_revision(etcd, at):
    revisions = [etcd.put(at + "a", str(number)).header.revision for number in range(5)]
    events, cancel = etcd.watch(at + "a", start_revision=revisions[2])
    assert [(event.value, event.mod_revision) for event in (next(events) for _ in range(3))] == [
        (str(number).encode(), revisions[number]) for number in (2, 3, 4)]
    cancel()


@case
def watch_with_entries_as_they_were(etcd, at):
    events, cancel = etcd.watch(at + "a", prev_kv=True)
    etcd.put(at + "a", "one")
    etcd.put(at + "a", "two")
    etcd.delete(at + "a")
    assert [next(events).prev_value for _ in range(3)] == [b"", b"one", b"two"]
    cancel()


@case
def watch_callbacks(etcd, at):
    seen = queue.Queue()
    ids = [etcd.add_watch_callback(at + "a", seen.put), etcd.add_watch_prefix_callback(at, seen.put)]
    assert len(set(ids)) == 2
    etcd.put(at + "a", "one")
    both = [seen.get(timeout=10), seen.get(timeout=10)]
    assert [answer.events[0].value for answer in both] == [b"one", b"one"]
    assert both[0].header.revision == both[1].header.revision
    etcd.cancel_watch(ids[0])
    # The cancellation is not confirmed to the caller. Another watch on the stream comes after it.
    later = etcd.add_watch_callback(at + "other", seen.put)
    etcd.put(at + "a", "two")
    assert seen.get(timeout=10).events[0].value == b"two"
    etcd.put(at + "a", "three")
    assert seen.get(timeout=10).events[0].value == b"three", "the cancelled watch got an event"
    for each in (ids[1], later):
        etcd.cancel_watch(each)


@case
def watch_of_one_revision_in_one_answer(etcd, at):
    answers, cancel = etcd.watch_prefix_response(at)
    tests = etcd.transactions
    etcd.transaction(compare=[], success=[tests.put(at + each, each) for each in "cab"], failure=[])
    answer = next(answers)
    assert [event.value for event in answer.events] == [b"c", b"a", b"b"], "events are in the order of the operations"
    assert len({event.mod_revision for event in answer.events}) == 1
    cancel()


@case
def watch_once(etcd, at):
    start = etcd.put(at + "a", "one").header.revision
    assert etcd.watch_once(at + "a", timeout=10, start_revision=start).value == b"one"
    assert etcd.watch_prefix_once(at, timeout=10, start_revision=start).value == b"one"
    try:
        etcd.watch_once(at + "a", timeout=0.5)
    except etcd3.exceptions.WatchTimedOut:
        return
    raise AssertionError("an event came from nowhere")


@case
def many_watches_on_one_stream(etcd, at):
    seen = queue.Queue()
    ids = [etcd.add_watch_callback(f"{at}{number}", seen.put) for number in range(200)]
    assert len(set(ids)) == 200
    for number in range(200):
        etcd.put(f"{at}{number}", str(number))
    values = [seen.get(timeout=10).events[0].value for _ in range(200)]
    assert values == [str(number).encode() for number in range(200)], "not in the order of revisions"
    for each in ids:
        etcd.cancel_watch(each)


@case
def watch_from_a_compacted_revision(etcd, at):
    first = etcd.put(at + "a", "one").header.revision
    last = etcd.put(at + "a", "two").header.revision
    etcd.compact(last)
    events, _ = etcd.watch(at + "a", start_revision=first)
    try:
        next(events)
    except etcd3.exceptions.RevisionCompactedError as error:
        assert error.compacted_revision >= last
        return
    raise AssertionError("the watch went on")


# --- leases


@case
def lease(etcd, at):
    lease = etcd.lease(60)
    assert lease.id > 0 and lease.ttl == 60
    etcd.put(at + "a", "one", lease=lease)
    etcd.put(at + "b", "two", lease=lease.id)
    assert sorted(lease.keys) == [(at + "a").encode(), (at + "b").encode()]
    assert lease.granted_ttl == 60 and 50 < lease.remaining_ttl <= 60
    assert etcd.get(at + "a")[1].lease_id == lease.id
    assert [answer.TTL for answer in lease.refresh()] == [60]
    events, cancel = etcd.watch_prefix(at)
    lease.revoke()
    both = [next(events), next(events)]
    assert all(isinstance(each, etcd3.events.DeleteEvent) for each in both)
    assert both[0].mod_revision == both[1].mod_revision, "what hangs on one lease goes at one revision"
    cancel()
    assert etcd.get(at + "a") == (None, None)


@case
def lease_that_ends(etcd, at):
    lease = etcd.lease(2)
    etcd.put(at + "a", "one", lease=lease)
    for _ in range(4):
        time.sleep(1)
        assert next(iter(lease.refresh())).TTL == 2
    assert etcd.get(at + "a")[0] == b"one", "it ended though it was renewed"
    eventually(15, lambda: etcd.get(at + "a") == (None, None))
    eventually(15, lambda: lease.remaining_ttl == -1)
    assert next(iter(lease.refresh())).TTL == 0, "a lease that is gone is renewed with 0"


@case
def lease_that_an_entry_leaves(etcd, at):
    lease = etcd.lease(60)
    etcd.put(at + "a", "one", lease=lease)
    etcd.put(at + "a", "two")
    assert lease.keys == []
    lease.revoke()
    assert etcd.get(at + "a")[0] == b"two"


@case
def lease_that_is_not_there(etcd, at):
    assert refused(grpc.StatusCode.NOT_FOUND, lambda: etcd.put(at + "a", "one", lease=12345)) == "etcdserver: requested lease not found"
    assert refused(grpc.StatusCode.NOT_FOUND, lambda: etcd.revoke_lease(12345)) == "etcdserver: requested lease not found"
    assert etcd.get_lease_info(12345).TTL == -1


@case
def lease_with_an_id_of_its_own(etcd, at):
    number = uuid.uuid4().int >> 66
    lease = etcd.lease(60, number)
    assert lease.id == number
    etcd.put(at + "a", "one", lease=number)
    text = refused(grpc.StatusCode.FAILED_PRECONDITION, lambda: etcd.lease(60, number))
    assert text in ("etcdserver: lease already exists", "PreconditionFailedError"), text
    lease.revoke()
    assert etcd.get(at + "a") == (None, None)


# --- locks


@case
def lock(etcd, at):
    with etcd.lock(at, ttl=30) as held:
        assert held.is_acquired()
        assert etcd.lock(at, ttl=30).acquire(timeout=0) is False
        assert [answer.TTL for answer in held.refresh()] == [30]
    assert not held.is_acquired()
    assert held.release() is False


@case
def lock_is_handed_on(etcd, at):
    first, second = etcd.lock(at, ttl=30), etcd.lock(at, ttl=30)
    assert first.acquire()
    got = queue.Queue()
    thread = threading.Thread(target=lambda: got.put(second.acquire(timeout=20)), daemon=True)
    thread.start()
    eventually(5, lambda: second.lease is None and thread.is_alive())
    first.release()
    assert got.get(timeout=20) is True
    assert second.is_acquired() and not first.is_acquired()
    second.release()


@case
def lock_ends_with_its_holder(etcd, at):
    dead, next_one = etcd.lock(at, ttl=2), etcd.lock(at, ttl=30)
    assert dead.acquire()
    assert next_one.acquire(timeout=20)
    assert not dead.is_acquired()
    next_one.release()


# --- the cluster


@case
def status(etcd, at):
    etcd.put(at + "a", "one")
    status = etcd.status()
    assert [part.isdigit() for part in status.version.split(".")] == [True] * 3, status.version
    assert status.db_size > 0 and status.raft_index > 0 and status.raft_term > 0
    assert status.leader.id in [member.id for member in etcd.members]


@case
def members(etcd, at):
    members = list(etcd.members)
    assert members and len({member.id for member in members}) == len(members)
    assert all(member.name for member in members)
    assert all(url.startswith("http") for member in members for url in [*member.peer_urls, *member.client_urls])
    assert all(list(member.active_alarms) == [] for member in members)


@case
def a_member_more_and_less(etcd, at):
    before = {member.id for member in etcd.members}
    added = etcd.add_member(["http://127.0.0.1:9"])
    try:
        assert added.id not in before
        assert added.id in {member.id for member in etcd.members}
        added.update(["http://127.0.0.1:10"])
        assert next(list(member.peer_urls) for member in etcd.members if member.id == added.id) == ["http://127.0.0.1:10"]
    finally:
        added.remove()
    assert {member.id for member in etcd.members} == before
    etcd.put(at + "a", "still here")


@case
def compaction(etcd, at):
    for number in range(10):
        last = etcd.put(at + "a", str(number)).header.revision
    etcd.compact(last, physical=True)
    assert refused(grpc.StatusCode.OUT_OF_RANGE, lambda: etcd.compact(last)) == (
        "etcdserver: mvcc: required revision has been compacted")
    assert refused(grpc.StatusCode.OUT_OF_RANGE, lambda: etcd.compact(last + 1_000_000)) == (
        "etcdserver: mvcc: required revision is a future revision")
    assert etcd.get(at + "a")[0] == b"9"


@case
def defragment(etcd, at):
    etcd.defragment()


@case
def hash_of_the_state(etcd, at):
    etcd.put(at + "a", "one")
    assert isinstance(etcd.hash(), int)


@case
def alarms(etcd, at):
    assert list(etcd.list_alarms()) == []
    member = next(iter(etcd.members)).id
    try:
        raised = etcd.create_alarm(member_id=member)
        assert [(each.alarm_type, each.member_id) for each in raised] == [(1, member)]
        assert [each.member_id for each in etcd.list_alarms(member_id=member, alarm_type="no space")] == [member]
        text = refused(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: etcd.put(at + "a", "one"))
        assert text == "etcdserver: mvcc: database space exceeded", text
    finally:
        etcd.disarm_alarm(member_id=member)
    assert list(etcd.list_alarms()) == []
    etcd.put(at + "a", "one")


@case
def snapshot(etcd, at):
    etcd.put(at + "a", "one")
    file = io.BytesIO()
    etcd.snapshot(file)
    assert len(file.getvalue()) > 1000


# --- servers that ask who calls: root may do all, client what begins with /service/


def log_in(host, port, root_password, client_password):
    root = client(host, port, user="root", password=root_password)
    user = client(host, port, user="client", password=client_password)
    root.put("/other", "secret")
    root.put("/service/a", "one")
    assert user.get("/service/a")[0] == b"one"
    user.put("/service/a", "two")
    assert [value for value, _ in user.get_prefix("/service/")] == [b"two"]
    denied = "etcdserver: permission denied"
    assert refused(grpc.StatusCode.PERMISSION_DENIED, lambda: user.put("/other", "x")) == denied
    assert refused(grpc.StatusCode.PERMISSION_DENIED, lambda: user.get("/other")) == denied
    assert refused(grpc.StatusCode.PERMISSION_DENIED, lambda: user.get_all_response()) == denied
    tests = user.transactions
    assert refused(grpc.StatusCode.PERMISSION_DENIED, lambda: user.transaction(
        compare=[], success=[tests.txn(compare=[], success=[tests.put("/other", "x")], failure=[])], failure=[])) == denied
    lease = user.lease(60)
    user.put("/service/leased", "x", lease=lease)
    assert lease.keys == [b"/service/leased"]
    lease.revoke()
    events, cancel = user.watch_prefix("/service/")
    root.put("/service/a", "three")
    assert next(events).value == b"three"
    cancel()


def who_cannot_log_in(host, port, root_password, client_password):
    nobody = client(host, port)
    assert refused(grpc.StatusCode.INVALID_ARGUMENT, lambda: nobody.get("/service/a")) == "etcdserver: user name is empty"
    for name, password in (("root", "wrong"), ("nobody", client_password), ("client", root_password)):
        assert refused(grpc.StatusCode.INVALID_ARGUMENT, lambda: client(host, port, user=name, password=password)) == (
            "etcdserver: authentication failed, invalid user ID or password")
    user = client(host, port, user="client", password=client_password)
    user.metadata = (("token", "wrong"),)
    assert refused(grpc.StatusCode.UNAUTHENTICATED, lambda: user.get("/service/a")) == "etcdserver: invalid auth token"


LOGIN_CASES = [log_in, who_cannot_log_in]
