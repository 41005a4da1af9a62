"""The calls of the common suite, made with the Python client.

Owns how the names and forms of the suite, which are those of the HTTP API, map onto those of the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import json
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast
from unittest import mock

import quorate
from quorate import Entry, Guard, Op, QuorateError, Txn, check
from quorate._names import name_fields

Arguments = dict[str, Any]
# What the API writes as decimal strings and this client has as whole numbers.
DECIMAL = {
    "revision",
    "create_revision",
    "mod_revision",
    "oldest_revision",
    "opened_revision",
    "decided_revision",
    "token",
    "term",
    "place",
}


class Missing(Exception):  # noqa: N818 - it stands for an answer
    """There is no such thing: the answer `not_found`."""


class SuiteError(Exception):
    """A file of the suite asks for what there is not."""


def wire_form(value: Any) -> Any:
    """An answer of the client as the API writes it."""
    if isinstance(value, Entry):
        return entry_form(cast("Entry[Any]", value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: field_form(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [wire_form(one) for one in cast("list[Any]", value)]
    return value


def field_form(name: str, value: Any) -> Any:
    if name in DECIMAL and isinstance(value, int):
        return str(value)
    return wire_form(value)


def entry_form(entry: Entry[Any]) -> dict[str, Any]:
    fields = {field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)}
    return {name: value if name == "value" else field_form(name, value) for name, value in fields.items()}


def error_form(error: Exception) -> dict[str, Any]:
    """An error as the suite compares it."""
    if isinstance(error, Missing):
        return {"code": "not_found", "applied": "no", "retry": "after_reading"}
    assert isinstance(error, QuorateError), error
    return {
        "code": error.code,
        "applied": error.applied,
        "retry": error.retry,
        "status": error.status,
        "current": None if error.current is None else entry_form(error.current),
        "failed": wire_form(error.failed),
        "errors": wire_form(error.errors),
        "oldest_revision": None if error.oldest_revision is None else str(error.oldest_revision),
    }


def op_of(body: Arguments) -> Op:
    """An operation as the API has it; the client sends it as it is."""
    fields = dict(body)
    return Op({**name_fields(fields.pop("key")), **fields})


def step_of(body: Arguments) -> Op | Txn:
    if body.get("op") == "txn":
        return Txn(
            if_=[check_of(one) for one in body.get("if", [])],
            then=[step_of(one) for one in body.get("then", [])],
            else_=[step_of(one) for one in body.get("else", [])],
        )
    return op_of(body)


def check_of(body: Arguments) -> quorate.Check:
    return check(body["key"], cas=body.get("cas"), exists=body.get("exists"), if_=body.get("if"))


def span(arguments: Arguments, name: str) -> float | None:
    """A time in milliseconds as seconds."""
    value = arguments.get(name)
    return None if value is None else value / 1000


def guard_of(arguments: Arguments) -> Guard | None:
    guard = arguments.get("guard")
    return None if guard is None else Guard(int(guard["token"]), guard.get("lock"), guard.get("election"))


def write_options(arguments: Arguments) -> dict[str, Any]:
    """The options of a write."""
    options: dict[str, Any] = {name: arguments[name] for name in ("cas", "session", "prev", "dry_run", "request_id") if name in arguments}
    if "if" in arguments:
        options["if_"] = arguments["if"]
    if "ttl_ms" in arguments:
        options["ttl"] = arguments["ttl_ms"] / 1000
    guard = guard_of(arguments)
    if guard is not None:
        options["guard"] = guard
    return options


def part_of(arguments: Arguments) -> dict[str, Any]:
    return {"part": (arguments["part"], arguments["of"])} if "part" in arguments else {}


class Calls:
    """All calls, with one client. `of` is what a call is made on."""

    def __init__(self, client: Any, is_sync: bool) -> None:
        self.client = client
        self.is_sync = is_sync
        # Standard error as it was, once it is lost.
        self._stderr: int | None = None
        self._clock = contextlib.ExitStack()

    def end(self) -> None:
        """Undoes what calls did to this process."""
        self._clock.close()
        if self._stderr is not None:
            os.dup2(self._stderr, 2)
            os.close(self._stderr)
            self._stderr = None

    async def do(self, work: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Calls the client: awaits the asynchronous one, gives the blocking one a thread."""
        if self.is_sync:
            return await asyncio.to_thread(work, *arguments, **options)
        done = work(*arguments, **options)
        return await done if inspect.isawaitable(done) else done

    def named(self, name: str) -> Callable[[Arguments, Any], Awaitable[Any]]:
        """The call of this name."""
        call = getattr(self, f"call_{name}", None)
        if call is None:
            raise SuiteError(f"there is no call `{name}`")
        return call

    # --- entries -------------------------------------------------------------------------------------------------------

    async def call_get(self, a: Arguments, of: Any) -> Any:
        revision = None if a.get("revision") is None else int(a["revision"])
        entry = await self.do(self.client.get, a["key"], local=a.get("consistency") == "local", revision=revision)
        if entry is None:
            raise Missing
        return entry

    async def call_put(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.put, a["key"], a["value"], **write_options(a))

    async def call_insert(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.insert, a["key"], a["value"], **write_options(a))

    async def call_replace(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.replace, a["key"], a["value"], **write_options(a))

    async def call_remove(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.remove, a["key"], **write_options(a))

    async def call_patch(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.patch, a["key"], a["patch"], **write_options(a))

    async def call_touch(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.touch, a["key"], a["ttl_ms"] / 1000)

    async def call_increment(self, a: Arguments, of: Any) -> Any:
        patch = [{"op": "inc", "path": a["path"], "value": a["by"]}]
        return await self.do(self.client.patch, a["key"], patch, **write_options(a))

    async def call_update(self, a: Arguments, of: Any) -> Any:
        updated = await self.do(self.client.update, a["key"], adding(a["by"]))
        return {"value": updated.value}

    async def call_get_and_lock(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.get_and_lock, a["key"], span(a, "lock_ms"), wait=span(a, "wait_ms"))

    async def call_unlock(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.unlock_entry, a["key"], a["cas"])

    async def call_request(self, a: Arguments, of: Any) -> Any:
        outcome = await self.do(self.client.request_outcome, a["request_id"])
        if outcome is None:
            raise Missing
        return outcome

    # --- many entries --------------------------------------------------------------------------------------------------

    async def call_list(self, a: Arguments, of: Any) -> Any:
        options = {name: value for name, value in a.items() if name not in ("prefix", "revision", "part", "of")} | part_of(a)
        revision = None if a.get("revision") is None else int(a["revision"])
        page = await self.do(self.client.list, a["prefix"], revision=revision, **options)
        return wire_form(page) | {"count": len(page.entries)}

    async def call_list_all(self, a: Arguments, of: Any) -> Any:
        entries = self.client.scan(a["prefix"], limit=a.get("limit", 1000), **part_of(a))
        if self.is_sync:
            return {"keys": await asyncio.to_thread(lambda: [entry.key for entry in entries])}
        return {"keys": [entry.key async for entry in entries]}

    async def call_find(self, a: Arguments, of: Any) -> Any:
        options = {name: value for name, value in a.items() if name not in ("prefix", "where")}
        return await self.do(self.client.find, a.get("prefix", ""), a.get("where"), **options)

    async def call_count(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.count, a.get("prefix", ""), a.get("where"))

    async def call_history(self, a: Arguments, of: Any) -> Any:
        versions: tuple[quorate.Version, ...] = await self.do(self.client.history, a["key"])
        return {"versions": [version_form(version) for version in versions]}

    async def call_bulk(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.bulk, [op_of(op) for op in a["ops"]], dry_run=a.get("dry_run", False))

    async def call_stream(self, a: Arguments, of: Any) -> Any:
        done = self.client.stream([op_of(op) for op in a["ops"]] * a.get("times", 1))
        if self.is_sync:
            results = await asyncio.to_thread(list, done)
        else:
            results = [one async for one in done]
        results.sort(key=lambda one: one.n)
        codes = [None if one.error is None else one.error.code for one in results]
        answers = [None if one.answer is None else wire_form(one.answer) for one in results]
        return {"answers": answers, "codes": codes, "failed": sum(one.error is not None for one in results)}

    async def call_txn(self, a: Arguments, of: Any) -> Any:
        txn = step_of({"op": "txn", **a})
        assert isinstance(txn, Txn)
        return await self.do(self.client.txn, if_=txn.if_, then=txn.then, else_=txn.else_)

    async def call_claim(self, a: Arguments, of: Any) -> Any:
        claimed = await self.do(
            self.client.claim,
            a["prefix"],
            a.get("where"),
            order_by=a.get("order_by"),
            limit=a.get("limit"),
            lock_for=span(a, "lock_ms"),
            patch=a.get("patch"),
        )
        return {"entries": [entry_form(one.entry) for one in claimed], "count": len(claimed)}

    async def call_update_where(self, a: Arguments, of: Any) -> Any:
        options = {"if_": a.get("if"), "limit": a.get("limit"), "cursor": a.get("cursor")}
        return await self.do(self.client.update_where, a["prefix"], a["where"], a["patch"], **options)

    async def call_delete_where(self, a: Arguments, of: Any) -> Any:
        options = {"if_": a.get("if"), "limit": a.get("limit"), "cursor": a.get("cursor")}
        return await self.do(self.client.delete_where, a["prefix"], a["where"], **options)

    async def call_sequence_next(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.sequence(a["name"]).next, a.get("count", 1))

    async def call_collection_put(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.collection(a["name"]).put, a["rules"], cas=a.get("cas"))

    async def call_collection_get(self, a: Arguments, of: Any) -> Any:
        found = await self.do(self.client.collection(a["name"]).get)
        if found is None:
            raise Missing
        return found

    async def call_collection_delete(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.collection(a["name"]).delete)

    # --- sessions, locks, elections ------------------------------------------------------------------------------------

    async def call_session_open(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.create_session, ttl=span(a, "ttl_ms"), owner=a.get("owner"))

    async def call_session_end(self, a: Arguments, of: Any) -> Any:
        if of is None:
            return await self.do(self.client.session_by_id(a["session"]).end)
        await self.do(of.end)
        return {"ended": True}

    async def call_session_keep(self, a: Arguments, of: Any) -> Any:
        session = await self.do(self.client.session, ttl=span(a, "ttl_ms"), owner=a.get("owner"))
        return {"session": session.id}, session

    async def call_session_state(self, a: Arguments, of: Any) -> Any:
        return {"state": of.state}

    async def call_lock(self, a: Arguments, of: Any) -> Any:
        return await self._lock(a, of, a.get("wait_ms", 10_000) / 1000)

    async def call_lock_try(self, a: Arguments, of: Any) -> Any:
        return await self._lock(a, of, 0)

    async def _lock(self, a: Arguments, of: Any, wait: float) -> Any:
        shared = a.get("mode") == "shared"
        options = {"slots": a.get("slots"), "max_waiters": a.get("max_waiters")}
        lock = await self.do(of.lock, a["name"], wait=wait, shared=shared, **options)
        return {"token": str(lock.guard.token)}, lock

    async def call_unlock_named(self, a: Arguments, of: Any) -> Any:
        await self.do(of.release)
        return {"released": True}

    async def call_guarded_put(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.put, a["key"], a["value"], guard=of)

    async def call_campaign(self, a: Arguments, of: Any) -> Any:
        wait = a.get("wait_ms", 10_000) / 1000
        leadership = await self.do(of.campaign, a["election"], value=a.get("value"), wait=wait)
        return {"term": str(leadership.guard.token)}, leadership

    async def call_resign(self, a: Arguments, of: Any) -> Any:
        await self.do(of.resign)
        return {"resigned": True}

    async def call_leader(self, a: Arguments, of: Any) -> Any:
        return {"leader": wire_form(await self.do(self.client.election(a["election"]).leader))}

    async def call_barrier_enter(self, a: Arguments, of: Any) -> Any:
        return await self.do(of.barrier(a["barrier"], a["parties"]).enter, span(a, "wait_ms"))

    async def call_latch_create(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.latch(a["latch"]).create, a["count"])

    async def call_latch_count_down(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.latch(a["latch"]).count_down, a.get("by", 1))

    async def call_latch_wait(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.latch(a["latch"]).wait, a.get("wait_ms", 10_000) / 1000)

    # --- tasks ---------------------------------------------------------------------------------------------------------

    async def call_schedule(self, a: Arguments, of: Any) -> Any:
        options = {name: value for name, value in a.items() if name in ("id", "max_attempts", "replace", "cron", "zone", "request_id")}
        options |= {"delay": span(a, "delay_ms"), "every": span(a, "every_ms"), "at": a.get("execute_at")}
        if "backoff" in a:
            backoff = a["backoff"]
            options["backoff"] = quorate.Backoff(span(backoff, "initial_ms"), span(backoff, "max_ms"), backoff.get("factor"))
        return await self.do(self.client.tasks(a["queue"]).schedule, a.get("payload"), **options)

    async def call_task_claim(self, a: Arguments, of: Any) -> Any:
        queue = self.client.tasks(a["queue"])
        tasks = await self.do(queue.claim, limit=a.get("limit"), lease=span(a, "lease_ms"), wait=span(a, "wait_ms"))
        return {"tasks": [wire_form(task.task) for task in tasks], "count": len(tasks)}

    async def call_task_complete(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.tasks(a["queue"]).complete, a["id"], int(a["token"]))

    async def call_task_fail(self, a: Arguments, of: Any) -> Any:
        options = {name: a[name] for name in ("error", "dead", "release") if name in a}
        queue = self.client.tasks(a["queue"])
        return await self.do(queue.fail, a["id"], int(a["token"]), retry_in=span(a, "retry_in_ms"), **options)

    async def call_task(self, a: Arguments, of: Any) -> Any:
        view = await self.do(self.client.tasks(a["queue"]).get, a["id"])
        if view is None:
            raise Missing
        return view

    async def call_worker(self, a: Arguments, of: Any) -> Any:
        handled = Handled(self.client, a)
        handler = handled.blocking if self.is_sync else handled.asynchronous
        worker = self.client.tasks(a["queue"]).worker(handler, concurrency=2, lease=5)
        running = asyncio.ensure_future(self.do(worker.run))
        try:
            while worker.report.completed < a["count"] and not running.done():  # noqa: ASYNC110 - also for the blocking client
                await asyncio.sleep(0.02)
            worker.stop()
            report = await running
        finally:
            worker.stop()
            running.cancel()
        return {"completed": report.completed, "failed": report.failed}

    # --- watches, mirrors, the cluster ---------------------------------------------------------------------------------

    async def start_watch(self, a: Arguments) -> Any:
        options = {name: value for name, value in a.items() if name not in ("prefix", "from", "part", "of")} | part_of(a)
        revision = None if a.get("from") is None else int(a["from"])
        return await self.do(self.client.watch, a.get("prefix"), from_revision=revision, **options)

    async def start_mirror(self, a: Arguments) -> Any:
        return await self.do(self.client.mirror, a["prefix"])

    async def call_mirror_get(self, a: Arguments, of: Any) -> Any:
        if a.get("sync"):
            await self.do(of.sync)
        entry = of.get(a["key"])
        if entry is None:
            raise Missing
        return entry

    async def call_mirror_keys(self, a: Arguments, of: Any) -> Any:
        if a.get("sync"):
            await self.do(of.sync)
        return {"keys": [entry.key for entry in of.list()]}

    async def call_members(self, a: Arguments, of: Any) -> Any:
        return await self.do(self.client.members.get)

    # --- the process ---------------------------------------------------------------------------------------------------

    async def call_forked(self, a: Arguments, of: Any) -> Any:
        return await asyncio.to_thread(forked, self.client, of, a["prefix"], a["times"])

    async def call_close_stderr(self, a: Arguments, of: Any) -> Any:
        reads, writes = os.pipe()
        os.close(reads)
        if self._stderr is None:
            self._stderr = os.dup(2)
        os.dup2(writes, 2)
        os.close(writes)
        return {}

    async def call_wall_ahead(self, a: Arguments, of: Any) -> Any:
        self._clock.close()
        real, ahead = time.time, a["ms"] / 1000

        def moved() -> float:
            return real() + ahead

        self._clock.enter_context(mock.patch.object(time, "time", moved))
        return {}


def forked(client: quorate.Client, session: quorate.Session, prefix: str, times: int) -> Arguments:
    """What comes of a client that a process and its child use at once."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = {"child_wrong": wrong_answers(client, f"{prefix}/child", times), "child_state": session.state}
        except BaseException as error:
            told = {"child_failed": repr(error)}
        os.write(writes, json.dumps(told).encode())
        # Nothing of the runner goes on here.
        os._exit(0)
    os.close(writes)
    try:
        wrong = wrong_answers(client, f"{prefix}/parent", times)
    finally:
        with os.fdopen(reads, "rb") as pipe:
            told = json.loads(pipe.read())
        os.waitpid(child, 0)
    return {"wrong": wrong, **told}


def wrong_answers(client: quorate.Client, prefix: str, times: int) -> int:
    """How many of the answers are not to what was asked."""
    wrong = 0
    for i in range(times):
        key = f"{prefix}/{i}"
        wrong += client.insert(key, key).version != 1
        try:
            client.insert(key, "twice")
            wrong += 1
        except quorate.AlreadyExistsError as refused:
            wrong += refused.current is None or refused.current.value != key
        entry = client.get(key)
        wrong += entry is None or (entry.key, entry.value) != (key, key)
    return wrong


class Handled:
    """The handler of a worker: counts what it does, and fails the first time where it is told to."""

    def __init__(self, client: Any, arguments: Arguments) -> None:
        self.client = client
        self.counter = arguments.get("counter")
        self.fails = set(arguments.get("fail", []))

    def begin(self, run: Any) -> None:
        if run.id in self.fails:
            self.fails.remove(run.id)
            raise RuntimeError("the first time")

    def blocking(self, run: Any) -> None:
        if self.counter is not None:
            self.client.update(f"{self.counter}/{run.id}", adding(1))
        self.begin(run)

    async def asynchronous(self, run: Any) -> None:
        if self.counter is not None:
            await self.client.update(f"{self.counter}/{run.id}", adding(1))
        self.begin(run)


def adding(by: int) -> Callable[[Any], Any]:
    """An update that adds to field `n`."""
    return lambda value: {"n": by} if value is None else {**value, "n": value["n"] + by}


def version_form(version: quorate.Version) -> dict[str, Any]:
    """A version as the suite has it."""
    form: dict[str, Any] = {"type": "delete", "revision": str(version.revision)}
    if version.entry is not None:
        form |= {"type": "put", "value": version.entry.value}
    return form
