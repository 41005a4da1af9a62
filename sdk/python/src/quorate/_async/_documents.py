"""Many entries at once: listings, finds, bulks, transactions, claims, changes of all that match, collections, sequences.

Owns the public shape of each. Turns it into a call; sends nothing itself.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

from quorate import types as wire
from quorate._async._base import AsyncBase
from quorate._async._core import AsyncCore
from quorate._async._entries import read
from quorate._entry import Entry, entry_of
from quorate._lists import listed
from quorate._names import Key, name_fields, shown
from quorate._requests import Part, Seconds, checked_request_id, compact, get, part_query, path, post, query, span, time_to_live
from quorate._values import Page, Version, page_of
from quorate.conditions import Criteria, criteria_list
from quorate.errors import InvalidRequestError, NotFoundError
from quorate.ops import KEEP_ELSE, Check, Guarding, Op, Txn, guard_json, patch_json, txn_body

T = TypeVar("T")
# Most operations of one bulk.
BULK_OPS_MAX = 10_000
# Entries of a page where all pages are asked for.
PAGE = 1_000

Patch = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class AsyncClaimed(Generic[T]):
    """An entry that is locked for us. What ends the lock is refused once it has ended by itself."""

    def __init__(self, core: AsyncCore, entry: Entry[T]) -> None:
        self._core = core
        self.entry = entry

    @property
    def key(self) -> str:
        """Its key."""
        return self.entry.key

    @property
    def value(self) -> T:
        """Its value, as it was claimed."""
        return self.entry.value

    @property
    def cas(self) -> str:
        """The key to its lock."""
        if self.entry.cas is None:
            raise InvalidRequestError(f"`{shown(self.key)}` is not locked for us: it was claimed in a dry run")
        return self.entry.cas

    async def complete(self) -> wire.WriteAnswer:
        """Removes it: it is done with."""
        return await self._do(Op.remove(self.key, cas=self.cas))

    async def release(self) -> wire.WriteAnswer:
        """Gives it back as it is, for others to claim."""
        return await self._do(Op.unlock_entry(self.key, self.cas))

    async def extend(self, lock_for: Seconds) -> wire.WriteAnswer:
        """Lets the lock hold for so long from now."""
        return await self._do(Op.extend_entry_lock(self.key, self.cas, lock_for))

    async def replace(self, value: Any) -> wire.WriteAnswer:
        """Overwrites it, which ends the lock."""
        return await self._do(Op.replace(self.key, value, cas=self.cas))

    async def patch(self, patch: Patch) -> wire.WriteAnswer:
        """Changes parts of it, which ends the lock."""
        return await self._do(Op.patch(self.key, patch, cas=self.cas))

    async def _do(self, op: Op) -> wire.WriteAnswer:
        return await self._core.fetch(wire.WriteAnswer, post("/v1/ops", op.body, about=op.about))


class AsyncCollection:
    """The rules of a collection."""

    def __init__(self, core: AsyncCore, name: str) -> None:
        self._core = core
        self.name = name

    async def get(self) -> wire.CollectionAnswer | None:
        """The rules; `None` if there are none."""
        try:
            return await self._core.fetch(wire.CollectionAnswer, get(self._path(), about={"name": self.name}))
        except NotFoundError:
            return None

    async def put(
        self,
        rules: Mapping[str, Any] | wire.CollectionRules,
        *,
        cas: str | None = None,
        if_absent: bool = False,
        request_id: str | None = None,
    ) -> wire.CollectionAnswer:
        """Sets the rules: of fields, indexes, time to live, and whether writes need a condition.

        Raises:
            StaleCasError: They are not those of `cas` any more; a `CasMismatchError`, whose `current` has them, if there are some.
            AlreadyExistsError: There are some, and `if_absent` was said.
        """
        call = post(self._path(), without_nothing(rules), method="PUT", request_id=request_id, about={"name": self.name})
        call.headers += precondition(cas, if_absent)
        return await self._core.fetch(wire.CollectionAnswer, call)

    async def delete(self, *, cas: str | None = None, request_id: str | None = None) -> wire.CollectionRemoved:
        """Takes the rules away; the entries stay.

        Raises:
            StaleCasError: They are not those of `cas` any more; a `CasMismatchError`, whose `current` has them, if there are some.
        """
        call = post(self._path(), None, method="DELETE", request_id=request_id, about={"name": self.name})
        call.headers += precondition(cas, False)
        return await self._core.fetch(wire.CollectionRemoved, call)

    def _path(self) -> str:
        return path("/v1/collections/", self.name, "the name of a collection")


def without_nothing(rules: Any) -> Any:
    """Rules as the API takes them: what is `None` is not said."""
    if isinstance(rules, wire.CollectionRules):
        fields = {name: compact_dataclass(rule) for name, rule in (rules.fields or {}).items()}
        indexes = [index if isinstance(index, list) else compact_dataclass(index) for index in rules.indexes or []]
        return {**compact_dataclass(rules), **compact(fields=fields or None, indexes=indexes or None)}
    return rules


def compact_dataclass(value: Any) -> dict[str, Any]:
    """The fields of an object that are said."""
    return compact(**{name: getattr(value, name) for name in value.__dataclass_fields__})


def precondition(cas: str | None, if_absent: bool) -> list[tuple[str, str]]:
    """What must hold, as headers."""
    if cas is not None:
        return [("If-Match", f'"{cas}"')]
    return [("If-None-Match", "*")] if if_absent else []


class AsyncCounter:
    """A gapless sequence of numbers."""

    def __init__(self, core: AsyncCore, name: str) -> None:
        self._core = core
        self.name = name

    async def get(self) -> wire.SequenceAnswer:
        """The number that was taken last."""
        return await self._core.fetch(wire.SequenceAnswer, get(self._path(), about={"name": self.name}))

    async def next(self, count: int = 1, *, request_id: str | None = None) -> wire.SequenceNext:
        """Takes the next number, or so many."""
        call = post(self._path(), {"count": count}, request_id=request_id, about={"name": self.name})
        return await self._core.fetch(wire.SequenceNext, call)

    def _path(self) -> str:
        return path("/v1/sequences/", self.name, "the name of a sequence")


class AsyncDocuments(AsyncBase):
    """The part of a client that has to do with many entries."""

    @overload
    async def list(
        self,
        prefix: Key = "",
        *,
        start: Key | None = None,
        end: Key | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        keys_only: bool = False,
        sizes: bool = False,
        reverse: bool = False,
        part: Part | None = None,
        revision: int | None = None,
        local: bool = False,
        min_revision: int | None = None,
        model: type[T],
    ) -> Page[T]: ...

    @overload
    async def list(
        self,
        prefix: Key = "",
        *,
        start: Key | None = None,
        end: Key | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        keys_only: bool = False,
        sizes: bool = False,
        reverse: bool = False,
        part: Part | None = None,
        revision: int | None = None,
        local: bool = False,
        min_revision: int | None = None,
        model: None = None,
    ) -> Page[Any]: ...

    async def list(
        self,
        prefix: Key = "",
        *,
        start: Key | None = None,
        end: Key | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        keys_only: bool = False,
        sizes: bool = False,
        reverse: bool = False,
        part: Part | None = None,
        revision: int | None = None,
        local: bool = False,
        min_revision: int | None = None,
        model: Any = None,
    ) -> Page[Any]:
        """A page of the entries whose keys begin with `prefix`, or from `start` to `end`, by key.

        Args:
            prefix: Of the keys; all of them for an empty one.
            start: The first key of a range, instead of a prefix.
            end: The end of a range, exclusive.
            limit: Most entries of the page, up to 1000; 100 if nothing is said.
            cursor: That of the page before.
            keys_only: Without values.
            sizes: With the number of bytes of each value, as `value_bytes` of the entry, also where the values are left out.
            reverse: From the end backwards.
            part: Only the keys of one of several parts, `(index, of)`: what workers that share a prefix list, each its own. Which part a
                key is in never changes. A page looks at as many entries as without, and shows those of the part.
            revision: As it was at this revision.
            local: Whatever the asked node has, maybe stale.
            min_revision: At least as fresh as this revision.
            model: What the values are to be.
        """
        ranged = start is not None or end is not None or cursor is not None
        target = query(
            "/v1/kv",
            prefix=None if ranged else prefix,
            start=start,
            end=end,
            limit=limit,
            cursor=cursor,
            keys_only=keys_only,
            sizes=sizes,
            reverse=reverse if cursor is None else None,
            **part_query(part if cursor is None else None),
            revision=revision,
            consistency="local" if local else None,
            min_revision=min_revision,
        )
        preference = "any" if local or min_revision is not None else "read"
        return page_of(await self._core.fetch_json(get(target, preference=preference)), model)

    @overload
    def scan(
        self,
        prefix: Key = "",
        *,
        keys_only: bool = False,
        sizes: bool = False,
        reverse: bool = False,
        part: Part | None = None,
        revision: int | None = None,
        limit: int = PAGE,
        model: type[T],
    ) -> AsyncIterator[Entry[T]]: ...

    @overload
    def scan(
        self,
        prefix: Key = "",
        *,
        keys_only: bool = False,
        sizes: bool = False,
        reverse: bool = False,
        part: Part | None = None,
        revision: int | None = None,
        limit: int = PAGE,
        model: None = None,
    ) -> AsyncIterator[Entry[Any]]: ...

    async def scan(
        self,
        prefix: Key = "",
        *,
        keys_only: bool = False,
        sizes: bool = False,
        reverse: bool = False,
        part: Part | None = None,
        revision: int | None = None,
        limit: int = PAGE,
        model: Any = None,
    ) -> AsyncIterator[Entry[Any]]:
        """All entries whose keys begin with `prefix`, page by page (`limit` each), all of one revision; of one `part`, as `list` has it."""
        cursor: str | None = None
        while True:
            page = await self.list(
                prefix,
                limit=limit,
                cursor=cursor,
                keys_only=keys_only,
                sizes=sizes,
                reverse=reverse,
                part=part,
                revision=revision if cursor is None else None,
                model=model,
            )
            for entry in page.entries:
                yield entry
            cursor = page.cursor
            if cursor is None:
                return

    @overload
    async def find(
        self,
        prefix: Key = "",
        where: Criteria | None = None,
        *,
        order_by: str | Iterable[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        fields: Iterable[str] | None = None,
        keys_only: bool = False,
        revision: int | None = None,
        local: bool = False,
        model: type[T],
    ) -> Page[T]: ...

    @overload
    async def find(
        self,
        prefix: Key = "",
        where: Criteria | None = None,
        *,
        order_by: str | Iterable[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        fields: Iterable[str] | None = None,
        keys_only: bool = False,
        revision: int | None = None,
        local: bool = False,
        model: None = None,
    ) -> Page[Any]: ...

    async def find(
        self,
        prefix: Key = "",
        where: Criteria | None = None,
        *,
        order_by: str | Iterable[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        fields: Iterable[str] | None = None,
        keys_only: bool = False,
        revision: int | None = None,
        local: bool = False,
        model: Any = None,
    ) -> Page[Any]:
        """A page of the entries of which something holds.

        Args:
            prefix: Of the keys.
            where: What holds of them.
            order_by: Fields; `-` before one for the greatest first. Without it by key.
            limit: Most entries of the page.
            cursor: That of the page before, with the same question.
            fields: Only these fields of each document.
            keys_only: Without values.
            revision: As it was at this revision.
            local: Whatever the asked node has, maybe stale.
            model: What the values are to be.
        """
        body = compact(
            **(name_fields(prefix, "prefix") if prefix else {}),
            where=criteria_list(where, "where"),
            order_by=names(order_by, "order_by"),
            limit=limit,
            cursor=cursor,
            fields=names(fields, "fields"),
            keys_only=keys_only,
            revision=None if revision is None else str(revision),
            consistency="local" if local else None,
        )
        return page_of(await self._core.fetch_json(post("/v1/find", body, intent="read")), model)

    @overload
    def find_all(
        self,
        prefix: Key = "",
        where: Criteria | None = None,
        *,
        order_by: str | Iterable[str] | None = None,
        fields: Iterable[str] | None = None,
        keys_only: bool = False,
        model: type[T],
    ) -> AsyncIterator[Entry[T]]: ...

    @overload
    def find_all(
        self,
        prefix: Key = "",
        where: Criteria | None = None,
        *,
        order_by: str | Iterable[str] | None = None,
        fields: Iterable[str] | None = None,
        keys_only: bool = False,
        model: None = None,
    ) -> AsyncIterator[Entry[Any]]: ...

    async def find_all(
        self,
        prefix: Key = "",
        where: Criteria | None = None,
        *,
        order_by: str | Iterable[str] | None = None,
        fields: Iterable[str] | None = None,
        keys_only: bool = False,
        model: Any = None,
    ) -> AsyncIterator[Entry[Any]]:
        """All entries of which something holds, page by page, all of one revision."""
        cursor: str | None = None
        criteria, order, chosen = criteria_list(where, "where"), names(order_by, "order_by"), names(fields, "fields")
        while True:
            page = await self.find(prefix, criteria, order_by=order, cursor=cursor, fields=chosen, keys_only=keys_only, model=model)
            for entry in page.entries:
                yield entry
            cursor = page.cursor
            if cursor is None:
                return

    async def count(
        self, prefix: str = "", where: Criteria | None = None, *, cursor: str | None = None, revision: int | None = None
    ) -> wire.CountAnswer:
        """Counts the entries of which something holds; with a `cursor` in the answer there are more to look at."""
        body = compact(
            **(name_fields(prefix, "prefix") if prefix else {}),
            where=criteria_list(where, "where"),
            cursor=cursor,
            revision=None if revision is None else str(revision),
        )
        return await self._core.fetch(wire.CountAnswer, post("/v1/count", body, intent="read"))

    async def history(self, key: Key, *, limit: int | None = None) -> tuple[Version, ...]:
        """What an entry was, version by version, oldest first, as far as history was not compacted; the last `limit` of them."""
        lines: list[wire.AuditView] = []
        cursor: str | None = None
        while True:
            page = await self._core.fetch(wire.AuditAnswer, get(query("/v1/audit", key=key, cursor=cursor)))
            lines += [line for line in page.lines if line.effect in ("changed", "removed")]
            cursor = page.cursor
            if cursor is None:
                break
        return tuple([await self._version(key, line) for line in lines[-limit if limit else 0 :]])

    async def _version(self, key: Key, line: wire.AuditView) -> Version:
        entry: Entry[Any] | None = None
        if line.effect == "changed":
            data = await read(self._core, key, revision=line.revision)
            entry = None if data is None else entry_of(data)
        return Version(line.revision, line.time, line.op, entry, line.principal, line.request_id)

    async def bulk(
        self,
        ops: Iterable[Op],
        *,
        failures_only: bool = False,
        dry_run: bool = False,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> wire.BulkAnswer:
        """Many operations in one request, at most 10,000: each is applied or refused on its own, in order.

        An insert that finds its key is skipped, and so is an operation whose condition does not hold.

        Args:
            ops: Any but `Op.get`.
            failures_only: Answer with the results that failed only, and the counts.
            dry_run: Say what would happen, write nothing.
            request_id: An id of one's own; a bulk that was applied in part goes on where it stopped.
            timeout: Deadline instead of the client's own.
        """
        bodies = [op.body for op in listed(ops, Op, "ops")]
        if not 1 <= len(bodies) <= BULK_OPS_MAX:
            raise InvalidRequestError(f"a bulk has 1 to {BULK_OPS_MAX} operations, not {len(bodies)}")
        call = post("/v1/bulk", {"ops": bodies, **compact(dry_run=dry_run)}, request_id=request_id, timeout=timeout)
        if failures_only:
            call.headers.append(("Prefer", "return=minimal"))
        return await self._core.fetch(wire.BulkAnswer, call)

    async def txn(
        self,
        *,
        if_: Sequence[Check] = (),
        then: Sequence[Op | Txn] = (),
        else_: Sequence[Op | Txn] = (),
        dry_run: bool = False,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> wire.TxnAnswer:
        """Looks at any number of keys, and then does `then` if all checks hold, otherwise `else_`: all of it at one revision, or nothing.

            await client.txn(
                if_=[check("accounts/ann", if_=field("balance").gte(40))],
                then=[Op.patch("accounts/ann", [{"op": "inc", "path": "balance", "value": -40}])],
            )

        A check that does not hold is an answer (`succeeded`, `failed`); a step that is refused is an error, and refuses the whole.
        """
        body = {**txn_body(if_, then, else_), **compact(dry_run=dry_run)}
        return await self._core.fetch(wire.TxnAnswer, post("/v1/txn", body, request_id=request_id, timeout=timeout))

    @overload
    async def claim(
        self,
        prefix: Key,
        where: Criteria | None = None,
        *,
        order_by: str | Iterable[str] | None = None,
        limit: int | None = None,
        lock_for: Seconds | None = None,
        patch: Patch | None = None,
        guard: Guarding | None = None,
        dry_run: bool = False,
        model: type[T],
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> tuple[AsyncClaimed[T], ...]: ...

    @overload
    async def claim(
        self,
        prefix: Key,
        where: Criteria | None = None,
        *,
        order_by: str | Iterable[str] | None = None,
        limit: int | None = None,
        lock_for: Seconds | None = None,
        patch: Patch | None = None,
        guard: Guarding | None = None,
        dry_run: bool = False,
        model: None = None,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> tuple[AsyncClaimed[Any], ...]: ...

    async def claim(
        self,
        prefix: Key,
        where: Criteria | None = None,
        *,
        order_by: str | Iterable[str] | None = None,
        limit: int | None = None,
        lock_for: Seconds | None = None,
        patch: Patch | None = None,
        guard: Guarding | None = None,
        dry_run: bool = False,
        model: Any = None,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> tuple[AsyncClaimed[Any], ...]:
        """Finds entries that nobody has locked, and locks them, in one step: no two claims get the same one.

        Args:
            prefix: Of the keys.
            where: What holds of them.
            order_by: Fields; `-` before one for the greatest first. Without it by key.
            limit: Most entries, up to 100; one if nothing is said.
            lock_for: How long the locks hold, at most 30 s; 15 s if nothing is said.
            patch: Changes each entry in the same step.
            guard: Only while this holds.
            dry_run: Say what would be claimed, lock and change nothing.
            model: What the values are to be.
            request_id: An id of one's own: a retry gives the same entries.
            timeout: Deadline instead of the client's own.
        """
        body = compact(
            **name_fields(prefix, "prefix"),
            where=criteria_list(where, "where"),
            order_by=names(order_by, "order_by"),
            limit=limit,
            lock_ms=span(lock_for, "lock_for"),
            patch=None if patch is None else patch_json(patch),
            guard=guard_json(guard),
            dry_run=dry_run,
        )
        answer = await self._core.fetch_json(post("/v1/claim", body, request_id=request_id, timeout=timeout))
        return tuple(AsyncClaimed(self._core, entry_of(entry, model)) for entry in answer["entries"])

    async def update_where(
        self,
        prefix: Key,
        where: Criteria,
        patch: Patch,
        *,
        if_: Criteria | None = None,
        ttl: Seconds | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        guard: Guarding | None = None,
        dry_run: bool = False,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> wire.WhereAnswer:
        """Patches every document that `where` finds; those of which `if_` does not hold are skipped and shown.

        One request is one step in the cluster: it looks at 10,000 entries and changes 1,000 at most, and its answer has a `cursor` to go on
        with.
        """
        body = where_body(prefix, where, if_, cursor, guard, dry_run, limit)
        body |= compact(patch=patch_json(patch), ttl_ms=time_to_live(ttl, KEEP_ELSE))
        call = post("/v1/update_where", body, request_id=request_id, timeout=timeout)
        return await self._core.fetch(wire.WhereAnswer, call)

    async def update_all_where(
        self,
        prefix: Key,
        where: Criteria,
        patch: Patch,
        *,
        if_: Criteria | None = None,
        ttl: Seconds | None = None,
        limit: int | None = None,
        guard: Guarding | None = None,
        request_id: str | None = None,
    ) -> AsyncIterator[wire.WhereAnswer]:
        """`update_where` for all parts, made one by one as the loop asks for them, each under an id made of the first one's."""
        cursor, criteria, conditions = None, criteria_list(where, "where") or [], criteria_list(if_, "if_")
        for part in part_ids(request_id):
            answer = await self.update_where(
                prefix, criteria, patch, if_=conditions, ttl=ttl, limit=limit, cursor=cursor, guard=guard, request_id=part
            )
            yield answer
            cursor = answer.cursor
            if cursor is None:
                return

    async def delete_where(
        self,
        prefix: Key,
        where: Criteria,
        *,
        if_: Criteria | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        guard: Guarding | None = None,
        dry_run: bool = False,
        request_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> wire.WhereAnswer:
        """Deletes every entry that `where` finds, as `update_where` patches them."""
        body = where_body(prefix, where, if_, cursor, guard, dry_run, limit)
        call = post("/v1/delete_where", body, request_id=request_id, timeout=timeout)
        return await self._core.fetch(wire.WhereAnswer, call)

    async def delete_all_where(
        self,
        prefix: Key,
        where: Criteria,
        *,
        if_: Criteria | None = None,
        limit: int | None = None,
        guard: Guarding | None = None,
        request_id: str | None = None,
    ) -> AsyncIterator[wire.WhereAnswer]:
        """`delete_where` for all parts, as `update_all_where` makes them."""
        cursor, criteria, conditions = None, criteria_list(where, "where") or [], criteria_list(if_, "if_")
        for part in part_ids(request_id):
            answer = await self.delete_where(prefix, criteria, if_=conditions, limit=limit, cursor=cursor, guard=guard, request_id=part)
            yield answer
            cursor = answer.cursor
            if cursor is None:
                return

    def collection(self, name: str) -> AsyncCollection:
        """The rules of the collection of this name."""
        return AsyncCollection(self._core, name)

    async def collections(self, *, limit: int | None = None, cursor: str | None = None) -> wire.CollectionList:
        """A page of all collections."""
        return await self._core.fetch(wire.CollectionList, get(query("/v1/collections", limit=limit, cursor=cursor)))

    def sequence(self, name: str) -> AsyncCounter:
        """The sequence of this name."""
        return AsyncCounter(self._core, name)


def names(given: str | Iterable[str] | None, what: str) -> list[str] | None:
    """One name or several as a list."""
    if given is None:
        return None
    return [given] if isinstance(given, str) else listed(given, str, what)


def part_ids(request_id: str | None) -> Iterator[str]:
    """The request ids of the parts of one change."""
    first = checked_request_id(request_id)
    yield first
    for number in itertools.count(1):
        yield f"{first}-{number}"


def where_body(
    prefix: Key,
    where: Criteria,
    if_: Criteria | None,
    cursor: str | None,
    guard: Guarding | None,
    dry_run: bool,
    limit: int | None,
) -> dict[str, Any]:
    """What changes of all that match have in common."""
    shared = compact(if_=criteria_list(if_, "if_"), cursor=cursor, guard=guard_json(guard), dry_run=dry_run, limit=limit)
    return {**name_fields(prefix, "prefix"), "where": criteria_list(where, "where"), **shared}
