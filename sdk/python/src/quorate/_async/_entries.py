"""Operations on single entries, and the update loop.

Owns the public shape of reads and writes. Turns each into a call; sends nothing itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from quorate import types as wire
from quorate._async._base import AsyncBase
from quorate._async._core import AsyncCore
from quorate._async._io import now, sleep
from quorate._entry import Entry, entry_of
from quorate._names import Key, name_bytes, name_fields, name_text, shown, with_names
from quorate._requests import Call, Seconds, compact, get, is_rewritten, key_path, path, post, query, seconds, span, time_to_live
from quorate._values import Change, Updated, problem_here
from quorate.conditions import Criteria
from quorate.errors import (
    AlreadyExistsError,
    ContendedError,
    LockedError,
    NotFoundError,
    RejectedError,
    StaleCasError,
)
from quorate.ops import KEEP_ELSE, Guarding, HasId, Op, op_fields, session_id

T = TypeVar("T")
# What no entry ever has.
NO_ENTRY = "0"
# Seconds between two looks at an entry whose path leads elsewhere.
LOOK_EVERY = 0.25
# Tries of one update. Rivals that are nearer to the leader win more often: of eight clients on one machine, three of them by way of
# followers, the unluckiest update took 242.
TRIES_MAX = 1_024
# So many further tries follow at once: mostly there are few rivals, and what a refusal showed is never as fresh again. Then there are
# pauses, so that the crowd spreads; but who lost so often as `PATIENT` tries at once again, until it wins: its rivals are mostly
# fresher, and who pauses and reads while they do not would lose to them for ever.
AT_ONCE = 8
PATIENT = 48
# Pauses are random, in seconds, from up to the first to up to the second.
PAUSE_MIN = 0.002
PAUSE_MAX = 0.016

Patch = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class AsyncEntries(AsyncBase):
    """The part of a client that reads and writes entries."""

    @overload
    async def get(
        self,
        key: Key,
        *,
        model: type[T],
        revision: int | None = None,
        local: bool = False,
        min_revision: int | None = None,
        timeout: Seconds | None = None,
    ) -> Entry[T] | None: ...

    @overload
    async def get(
        self,
        key: Key,
        *,
        model: None = None,
        revision: int | None = None,
        local: bool = False,
        min_revision: int | None = None,
        timeout: Seconds | None = None,
    ) -> Entry[Any] | None: ...

    async def get(
        self,
        key: Key,
        *,
        model: Any = None,
        revision: int | None = None,
        local: bool = False,
        min_revision: int | None = None,
        timeout: Seconds | None = None,
    ) -> Entry[Any] | None:
        """Reads an entry; `None` if there is none.

        Args:
            key: Its key.
            model: What its value is to be: a dataclass, a model of pydantic, or a type of the standard library.
            revision: As it was at this revision.
            local: Whatever the asked node has: fast, maybe stale.
            min_revision: At least as fresh as this revision, from the asked node.
            timeout: Deadline instead of the client's own.
        """
        data = await read(self._core, key, revision=revision, local=local, min_revision=min_revision, timeout=timeout)
        return None if data is None else entry_of(data, model)

    async def exists(self, key: Key, *, timeout: Seconds | None = None) -> bool:
        """Whether there is an entry, without its value being sent."""
        if is_rewritten(key):
            return await read_by_list(self._core, key, keys_only=True, timeout=timeout) is not None
        call = get(key_path(key), timeout=timeout)
        call.method = "HEAD"
        _, answer = await self._core.send(call)
        return answer.status != 404

    @overload
    async def wait_for_change(self, key: Key, known: str | None, wait: Seconds, *, model: type[T]) -> Change[T]: ...

    @overload
    async def wait_for_change(self, key: Key, known: str | None, wait: Seconds, *, model: None = None) -> Change[Any]: ...

    async def wait_for_change(self, key: Key, known: str | None, wait: Seconds, *, model: Any = None) -> Change[Any]:
        """Waits at most so long (up to a minute) for the entry to differ from what is known of it.

        Args:
            key: Its key.
            known: Its cas; `None`: there is no such entry.
            wait: How long.
            model: What its value is to be.
        """
        call = get(query(key_path(key), wait_ms=span(wait, "wait")), hold=seconds(wait, "wait"), about=about_key(key))
        call.headers.append(("If-None-Match", f'"{known or NO_ENTRY}"'))
        until = now() + call.hold
        is_gone = False
        try:
            # Where it is as it was known there is nothing to read.
            data = await self._core.fetch_json(call)
        except NotFoundError:
            data, is_gone = None, True
        if data is not None:
            return Change("entry", entry_of(data, model))
        if is_rewritten(key):
            # Neither answer names a key that could be compared: a proxy may have asked for another.
            return await self._look_for_change(key, known or NO_ENTRY, until, model)
        return Change("gone" if is_gone else "none")

    async def _look_for_change(self, key: Key, known: str, until: float, model: Any) -> Change[Any]:
        """What the entry is against what is known of it; looks again while that is the same and there is time."""
        while True:
            data = await read(self._core, key)
            if (NO_ENTRY if data is None else data.get("cas")) != known:
                return Change("gone") if data is None else Change("entry", entry_of(data, model))
            left = until - now()
            if left <= 0:
                return Change("none")
            await sleep(min(left, LOOK_EVERY))

    async def put(
        self,
        key: Key,
        value: Any,
        *,
        cas: str | None = None,
        if_absent: bool = False,
        if_present: bool = False,
        if_: Criteria | None = None,
        ttl: Seconds | None = None,
        session: HasId | str | None = None,
        guard: Guarding | None = None,
        prev: bool = False,
        dry_run: bool = False,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> wire.WriteAnswer:
        """Creates or overwrites.

        Args:
            key: The key.
            value: What has a JSON form, a dataclass or a model of pydantic; or `bytes`.
            cas: Only while the entry has this token.
            if_absent: Only if there is no entry.
            if_present: Only if there is an entry.
            if_: Only while this holds of the entry.
            ttl: Time to live from the moment the write applies; without it the entry stays.
            session: The entry goes with this session: it is removed when that ends.
            guard: Only while this lock or leadership holds, which the cluster decides when it applies the write.
            prev: Answer with the entry as it was before.
            dry_run: Say what would happen, write nothing.
            request_id: An id of one's own instead of a random one: to repeat a write whose outcome stayed unknown.
            timeout: Deadline instead of the client's own.

        Raises:
            CasMismatchError: The entry has changed; `current` is what is there.
            ConditionNotMetError: A condition does not hold; `failed` says which.
            AlreadyExistsError: There is an entry, and `if_absent` was said.
            NotFoundError: There is none, and `if_present` or `cas` was said.
            GuardFailedError: The lock is not held any more.
        """
        op = Op.put(
            key,
            value,
            cas=cas,
            if_absent=if_absent,
            if_present=if_present,
            if_=if_,
            ttl=ttl,
            session=session,
            guard=guard,
            prev=prev,
        )
        return await self._write(op, dry_run, request_id, timeout)

    async def insert(
        self,
        key: Key,
        value: Any,
        *,
        ttl: Seconds | None = None,
        session: HasId | str | None = None,
        guard: Guarding | None = None,
        dry_run: bool = False,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> wire.WriteAnswer:
        """Creates.

        Raises:
            AlreadyExistsError: There is an entry; `current` is it.
        """
        op = Op.insert(key, value, ttl=ttl, session=session, guard=guard)
        return await self._write(op, dry_run, request_id, timeout)

    async def replace(
        self,
        key: Key,
        value: Any,
        *,
        cas: str | None = None,
        if_: Criteria | None = None,
        ttl: Seconds | None = None,
        session: HasId | str | None = None,
        guard: Guarding | None = None,
        prev: bool = False,
        dry_run: bool = False,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> wire.WriteAnswer:
        """Overwrites an entry that is there.

        Raises:
            NotFoundError: There is none.
            CasMismatchError: It has changed; `current` is what is there.
        """
        op = Op.replace(key, value, cas=cas, if_=if_, ttl=ttl, session=session, guard=guard, prev=prev)
        return await self._write(op, dry_run, request_id, timeout)

    async def patch(
        self,
        key: Key,
        patch: Patch,
        *,
        cas: str | None = None,
        if_: Criteria | None = None,
        ttl: Seconds | None = None,
        session: HasId | str | None = None,
        guard: Guarding | None = None,
        prev: bool = False,
        dry_run: bool = False,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> wire.WriteAnswer:
        """Changes parts of a document in one step.

        Args:
            key: Its key.
            patch: A merge patch (RFC 7396, an object), a JSON Patch (RFC 6902), or a list of update operators such as
                `{"op": "inc", "path": "stock", "value": -1}`.
            cas: As in `put`; so are the others.
            if_: Only while this holds of the entry.
            ttl: A new time to live; without it that of the entry goes on.
            session: Another session for the entry to go with.
            guard: Only while this holds.
            prev: Answer with the entry as it was before.
            dry_run: Say what would happen, write nothing.
            request_id: An id of one's own.
            timeout: Deadline instead of the client's own.
        """
        op = Op.patch(key, patch, cas=cas, if_=if_, ttl=ttl, session=session, guard=guard, prev=prev)
        return await self._write(op, dry_run, request_id, timeout)

    async def remove(
        self,
        key: Key,
        *,
        cas: str | None = None,
        if_: Criteria | None = None,
        guard: Guarding | None = None,
        prev: bool = False,
        dry_run: bool = False,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> wire.WriteAnswer:
        """Deletes an entry.

        Raises:
            NotFoundError: There is none.
            CasMismatchError: It has changed; `current` is what is there.
        """
        op = Op.remove(key, cas=cas, if_=if_, guard=guard, prev=prev)
        return await self._write(op, dry_run, request_id, timeout)

    async def touch(self, key: Key, ttl: Seconds, *, request_id: str | None = None, timeout: Seconds | None = None) -> wire.WriteAnswer:
        """Sets the time to live from now, changes nothing else; zero for ever."""
        return await self._write(Op.touch(key, ttl), False, request_id, timeout)

    @overload
    async def get_and_touch(self, key: Key, ttl: Seconds, *, model: type[T], request_id: str | None = None) -> Entry[T]: ...

    @overload
    async def get_and_touch(self, key: Key, ttl: Seconds, *, model: None = None, request_id: str | None = None) -> Entry[Any]: ...

    async def get_and_touch(self, key: Key, ttl: Seconds, *, model: Any = None, request_id: str | None = None) -> Entry[Any]:
        """Reads an entry and sets its time to live in one step; zero for ever."""
        body = {"op": "get_and_touch", **name_fields(key), "ttl_ms": span(ttl, "ttl")}
        return entry_of(await self._core.fetch_json(post("/v1/ops", body, request_id=request_id, about=about_key(key))), model)

    async def lock_entry(
        self,
        key: Key,
        lock_for: Seconds | None = None,
        *,
        wait: Seconds | None = None,
        request_id: str | None = None,
    ) -> wire.WriteAnswer:
        """Locks an entry, which is a part of it and nothing else than `session.lock`.

        For `lock_for`, at most 30 s (15 s for none, zero or more), only writes with the `cas` of the answer are applied, and the first
        of them ends the lock. `lock_ms` of the answer is the time that was given.

        Args:
            key: Its key.
            lock_for: How long it holds.
            wait: How long to wait while somebody else holds it, up to a minute, first come first served.
            request_id: An id of one's own.

        Raises:
            LockedError: Somebody else holds it.
        """
        return await self._core.fetch(wire.WriteAnswer, lock_call("lock", key, lock_for, wait, request_id))

    @overload
    async def get_and_lock(
        self,
        key: Key,
        lock_for: Seconds | None = None,
        *,
        wait: Seconds | None = None,
        model: type[T],
        request_id: str | None = None,
    ) -> Entry[T]: ...

    @overload
    async def get_and_lock(
        self,
        key: Key,
        lock_for: Seconds | None = None,
        *,
        wait: Seconds | None = None,
        model: None = None,
        request_id: str | None = None,
    ) -> Entry[Any]: ...

    async def get_and_lock(
        self,
        key: Key,
        lock_for: Seconds | None = None,
        *,
        wait: Seconds | None = None,
        model: Any = None,
        request_id: str | None = None,
    ) -> Entry[Any]:
        """Reads an entry and locks it in one step, as `lock_entry` does: `cas` of the entry is the key to the lock."""
        call = lock_call("get_and_lock", key, lock_for, wait, request_id)
        return entry_of(await self._core.fetch_json(call), model)

    async def extend_entry_lock(
        self, key: Key, cas: str, lock_for: Seconds | None = None, *, request_id: str | None = None
    ) -> wire.WriteAnswer:
        """Lets the lock of an entry hold for so long from now; `cas` is its key."""
        return await self._write(Op.extend_entry_lock(key, cas, lock_for), False, request_id, None)

    async def unlock_entry(self, key: Key, cas: str, *, request_id: str | None = None) -> wire.WriteAnswer:
        """Ends such a lock without writing."""
        return await self._write(Op.unlock_entry(key, cas), False, request_id, None)

    async def request_outcome(self, request_id: str) -> wire.RequestAnswer | None:
        """What became of a write, by its request id.

        `None`: it was never decided, its outcome is no longer kept (it is for 15 minutes at least), or it is still on its way and may be
        decided after this answer.
        """
        try:
            call = get(path("/v1/requests/", request_id, "a request id"), about={"request_id": request_id})
            return await self._core.fetch(wire.RequestAnswer, call)
        except NotFoundError:
            return None

    @overload
    async def update(
        self,
        key: Key,
        change: Callable[[T | None], T | None],
        *,
        model: type[T],
        tries: int = TRIES_MAX,
        ttl: Seconds | None = None,
        session: HasId | str | None = None,
        guard: Guarding | None = None,
        timeout: Seconds | None = None,
    ) -> Updated[T]: ...

    @overload
    async def update(
        self,
        key: Key,
        change: Callable[[Any], Any],
        *,
        model: None = None,
        tries: int = TRIES_MAX,
        ttl: Seconds | None = None,
        session: HasId | str | None = None,
        guard: Guarding | None = None,
        timeout: Seconds | None = None,
    ) -> Updated[Any]: ...

    async def update(
        self,
        key: Key,
        change: Callable[[Any], Any],
        *,
        model: Any = None,
        tries: int = TRIES_MAX,
        ttl: Seconds | None = None,
        session: HasId | str | None = None,
        guard: Guarding | None = None,
        timeout: Seconds | None = None,
    ) -> Updated[Any]:
        """Replaces the value of an entry by what `change` makes of it: reads, writes on what was read, again while others were faster.

        The entry keeps its session and the time it has left to live.

        Args:
            key: Its key.
            change: Gets the value, `None` where there is no entry, and gives the new one, or `None` to leave things as they are. May be
                called many times, and should depend on its argument only.
            model: What the value is to be. The whole value is written back from it, so fields that it does not have are lost: `patch`
                keeps all that it does not name.
            tries: Most tries.
            ttl: Time to live from the write on instead of what the entry has left. Not 0: what is to stay is touched with 0.
            session: The session that the entry goes with from now on, instead of the one that it has.
            guard: Only while this holds.
            timeout: Deadline of each read and each write instead of the client's own.

        Raises:
            ContendedError: All tries were lost.
            LockedError: Somebody else has the entry locked.
        """
        time_to_live(ttl, KEEP_ELSE)
        terms = UpdateTerms(key, ttl, session, guard)
        current = await self.get(key, model=model, timeout=timeout)
        done = 1
        while True:
            value = change(None if current is None else current.value)
            if value is None:
                return Updated(None, None, done)
            try:
                answer = await self._write(terms.write(current, value), False, None, timeout)
                return Updated(value, answer, done)
            except (StaleCasError, AlreadyExistsError, NotFoundError) as error:
                if error.errors:
                    raise
                if done >= max(tries, 1):
                    raise ContendedError(name_text(key), done, error) from error
                current = await self._next_current(key, error, pause_after(done, random.random()), model, timeout)
            done += 1

    async def _next_current(
        self, key: Key, refusal: RejectedError, pause: float | None, model: Any, timeout: Seconds | None
    ) -> Entry[Any] | None:
        """What the next try of an update begins with."""
        shown = refusal.problem.current if refusal.problem else None
        if pause is None and shown is not None and model is None:
            return shown
        if pause is not None:
            # What the refusal showed has aged: a try on it would lose to everyone who has just read.
            await sleep(pause)
        return await self.get(key, model=model, timeout=timeout)

    async def _write(self, op: Op, dry_run: bool, request_id: str | None, timeout: Seconds | None) -> wire.WriteAnswer:
        body = {**op.body, "dry_run": True} if dry_run else op.body
        call = post("/v1/ops", body, request_id=request_id, timeout=timeout, about=op.about)
        return await self._core.fetch(wire.WriteAnswer, call)


def about_key(key: Key) -> dict[str, str]:
    """That an answer has to be about this key."""
    return {"key": name_text(key)}


async def read(
    core: AsyncCore,
    key: Key,
    *,
    revision: int | None = None,
    local: bool = False,
    min_revision: int | None = None,
    timeout: Seconds | None = None,
) -> dict[str, Any] | None:
    """An entry as the API has it; `None` if there is none."""
    if is_rewritten(key) and (revision is not None or local or min_revision is not None):
        return await read_by_list(core, key, revision=revision, local=local, min_revision=min_revision, timeout=timeout)
    if is_rewritten(key):
        call = post("/v1/ops", Op.get(key).body, intent="read", timeout=timeout, about=about_key(key))
    else:
        target = query(key_path(key), revision=revision, consistency="local" if local else None, min_revision=min_revision)
        preference = "any" if local or min_revision is not None else "read"
        call = get(target, timeout=timeout, preference=preference, about=about_key(key))
    try:
        return await core.fetch_json(call)
    except NotFoundError as error:
        if error.errors:
            raise
        return None


async def read_by_list(
    core: AsyncCore,
    key: Key,
    *,
    revision: int | None = None,
    local: bool = False,
    min_revision: int | None = None,
    keys_only: bool = False,
    timeout: Seconds | None = None,
) -> dict[str, Any] | None:
    """An entry whose key would not come through a proxy in a path: the first one of a range that begins with it."""
    consistency = "local" if local else None
    start, end = name_bytes(key), name_bytes(key) + b"\x01"
    target = query("/v1/kv", start=start, end=end, limit=1, keys_only=keys_only, revision=revision, consistency=consistency)
    preference = "any" if local or min_revision is not None else "read"
    answer = await core.fetch_json(get(query(target, min_revision=min_revision), timeout=timeout, preference=preference))
    found = [with_names(entry) for entry in answer["entries"]]
    return dict(found[0]) if found and found[0]["key"] == name_text(key) else None


def lock_call(kind: str, key: Key, lock_for: Seconds | None, wait: Seconds | None, request_id: str | None) -> Call:
    """A call that locks an entry, and may wait for that."""
    body = {"op": kind, **name_fields(key), **compact(lock_ms=span(lock_for, "lock_for"), wait_ms=span(wait, "wait"))}
    call = post("/v1/ops", body, request_id=request_id, about=about_key(key))
    call.hold = 0.0 if wait is None else seconds(wait, "wait")
    return call


@dataclass(frozen=True, slots=True)
class UpdateTerms:
    """What an update is but for the change itself."""

    key: Key
    ttl: Seconds | None
    session: HasId | str | None
    guard: Guarding | None

    def write(self, current: Entry[Any] | None, value: Any) -> Op:
        """The write of this value in place of what was read."""
        if current is None:
            fields = op_fields(ttl=self.ttl, session=self.session, guard=self.guard, ttl_else=KEEP_ELSE)
            return Op({**Op.insert(self.key, value).body, **fields})
        if current.cas is None:
            detail = f"`{shown(self.key)}` is locked by somebody else"
            raise LockedError(problem_here("locked", 423, detail, current))
        fields = op_fields(cas=current.cas, session=session_id(self.session) or current.session, guard=self.guard)
        # The time that was left when it was read would be given anew by each update, and the entry would never expire.
        fields.update({"ttl": "keep"} if self.ttl is None else {"ttl_ms": time_to_live(self.ttl, KEEP_ELSE)})
        return Op({**Op.replace(self.key, value).body, **fields})


def pause_after(tries: int, roll: float) -> float | None:
    """How long to wait after so many tries; `None` for not at all."""
    later = tries - AT_ONCE - 1
    if later < 0 or tries > PATIENT:
        return None
    return min(PAUSE_MIN * 2.0 ** min(later, 10), PAUSE_MAX) * roll
