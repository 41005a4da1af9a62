"""What a forked child has in common with its parent: nothing that goes by a connection, and nothing that is held."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.unit.scripted import Asked, Coordination, Reply, Scripted, problem

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

# Runs `work(name)` in the parent and in two children at once, all with what there was before the fork; prints what each says.
AT_ONCE = """
import os, sys, time, warnings
warnings.simplefilter("ignore")
import quorate

def at_once(work):
    begin = time.time() + 0.3
    def do(name):
        time.sleep(max(begin - time.time(), 0))
        for said in work(name):
            os.write(1, f"{said}\\n".encode())
    children = []
    for name in ("first", "second"):
        child = os.fork()
        if child == 0:
            try:
                do(name)
            except BaseException as error:
                os.write(1, f"{name}: {error!r}\\n".encode())
            os._exit(0)
        children.append(child)
    do("parent")
    for child in children:
        os.waitpid(child, 0)
"""


def run(program: str, address: str, tmp_path: Path) -> list[str]:
    file = tmp_path / "program.py"
    file.write_text(f"{AT_ONCE}\nADDRESS = {address!r}\n{program}")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(done.stdout.splitlines())


class Store:
    """Entries that are read and inserted; two of a time take a moment, as at a node."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> Reply:
        if asked.method == "GET":
            key = unquote(asked.target.removeprefix("/v1/kv/"))
            entry = {"key": key, "value": key, "content_type": "json", "cas": "1"}
            return Reply(200, {**entry, "create_revision": "1", "mod_revision": "1", "version": 1}, after=0.001)
        op = asked.json
        with self._lock:
            if op["key"] in self.keys:
                return problem(409, "already_exists")
            self.keys[op["key"]] = op["value"]
        return Reply(200, {"key": op["key"], "revision": "7", "index": 1, "cas": "7", "version": 1}, after=0.001)


def test_a_forked_child_gets_no_answer_of_its_parent(tmp_path: Path) -> None:
    program = """
client = quorate.Client(ADDRESS, discover_members=False)
client.get("before")

def read(name):
    wrong = 0
    for n in range(150):
        key = f"{name}/{n}"
        wrong += client.get(key).value != key
    yield f"{name}: {wrong} wrong"

at_once(read)
"""
    with Scripted(Store()) as server:
        assert run(program, server.address, tmp_path) == ["first: 0 wrong", "parent: 0 wrong", "second: 0 wrong"]


def test_a_forked_child_is_not_told_of_a_write_of_its_parent(tmp_path: Path) -> None:
    program = """
client = quorate.Client(ADDRESS, discover_members=False)
client.insert("taken", 1)

def insert(name):
    # The parent inserts what is not there, the children what is.
    done = refused = 0
    for n in range(150):
        try:
            client.insert(f"{name}/{n}" if name == "parent" else "taken", name)
            done += 1
        except quorate.AlreadyExistsError:
            refused += 1
    yield f"{name}: {done} done, {refused} refused"

at_once(insert)
"""
    store = Store()
    with Scripted(store) as server:
        said = run(program, server.address, tmp_path)
    assert said == ["first: 0 done, 150 refused", "parent: 150 done, 0 refused", "second: 0 done, 150 refused"]
    assert len(store.keys) == 151


def test_a_fork_takes_no_session_no_lock_and_no_connection_with_it(tmp_path: Path) -> None:
    program = """
client = quorate.Client(ADDRESS, discover_members=False)
session = client.session()
lock = session.lock("l")
client._core.lock.acquire(); client._core.lines[0]._lock.acquire()  # as if another thread had them

def look(name):
    if name == "parent":
        client._core.lock.release(); client._core.lines[0]._lock.release()
        time.sleep(0.2)
        yield f"{name}: {session.state} {lock.token}"
        lock.release()
        session.end()
        return
    errors = []
    for work in (lambda: lock.token, lock.release, lambda: session.lock("other")):
        try:
            work()
        except quorate.SessionLostError as error:
            errors.append(error.loss)
    session.end()
    lock.__exit__(None, None, None)
    with client.session() as own:
        yield f"{name}: {session.state} {errors} {own.state}"
    client.close()

at_once(look)
"""
    cluster = Coordination()
    with Scripted(cluster) as server:
        said = run(program, server.address, tmp_path)
        lost = "lost ['forked', 'forked', 'forked'] alive"
        assert said == [f"first: {lost}", "parent: alive 5", f"second: {lost}"]
        # The parent's, and one of each child's own.
        ended = [asked.target for asked in server.asked if asked.method == "DELETE"]
        assert (len(ended), cluster.released) == (3, [{"token": "5"}])
        assert server.connections == 3


def test_a_mirror_and_a_watch_are_of_the_process_that_opened_them(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Reply:
        # A stream that begins at revision 1, shows one change, and goes on in silence; from 2 on, the next one.
        at = int(asked.headers.get("last-event-id", "1")) + 1
        entry = {"key": "k", "value": at, "content_type": "json", "cas": "1", "create_revision": "1", "mod_revision": "1", "version": 1}
        put = {"type": "put", "key": "k", "revision": str(at), "entry": entry}
        synced = 'event: synced\ndata: {"revision": "1"}\n\n' if "initial" in asked.target else ""
        text = f"{synced}event: put\nid: {at}\ndata: {json.dumps(put)}\n\n"
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nquorate-revision: 1\r\ntransfer-encoding: chunked\r\n\r\n"
        return Reply(raw=f"{head}{len(text):x}\r\n{text}\r\n".encode())

    program = """
client = quorate.Client(ADDRESS, discover_members=False)
watch = client.watch("")
first = watch.next().revision
mirror = client.mirror("")

def look(name):
    if name == "parent":
        time.sleep(0.3)
        yield f"{name}: {mirror.get('k').value}"
        return
    try:
        mirror.get("k")
    except quorate.InvalidRequestError as error:
        # Its own stream, right behind what was seen.
        yield f"{name}: {'forked' in str(error)} {first} {watch.next().revision}"

at_once(look)
"""
    with Scripted(answer) as server:
        assert run(program, server.address, tmp_path) == ["first: True 2 3", "parent: 2", "second: True 2 3"]


def test_a_forked_child_of_an_event_loop_has_connections_of_its_own(tmp_path: Path) -> None:
    program = """
import asyncio

client = quorate.AsyncClient(ADDRESS, discover_members=False)

async def read(name):
    wrong = 0
    for n in range(100):
        key = f"{name}/{n}"
        wrong += (await client.get(key)).value != key
    return f"{name}: {wrong} wrong"

async def main():
    await client.get("before")
    child = os.fork()
    if child == 0:
        os._exit(child_main())
    os.write(1, (await read("parent") + "\\n").encode())
    os.waitpid(child, 0)
    # Nothing was taken off what the loop of the parent waits for.
    os.write(1, (await read("parent again") + "\\n").encode())

def child_main():
    asyncio.events._set_running_loop(None)
    said = asyncio.new_event_loop().run_until_complete(read("child"))
    os.write(1, f"{said}\\n".encode())
    client.close()
    return 0

asyncio.run(main())
client.close()
"""
    with Scripted(Store()) as server:
        assert run(program, server.address, tmp_path) == ["child: 0 wrong", "parent again: 0 wrong", "parent: 0 wrong"]
        assert server.connections == 2
