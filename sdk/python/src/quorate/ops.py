"""Operations as they are described: what is done to which key, and under which conditions.

Owns the constructors that single writes, bulks and transactions share. Sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from quorate._convert import is_model, value_fields
from quorate._lists import listed
from quorate._names import Key, name_fields, with_names
from quorate._requests import Seconds, compact, span, time_to_live
from quorate.conditions import Criteria, criteria_list
from quorate.errors import InvalidRequestError

# What a change of parts of an entry says of a time to live of 0.
KEEP_ELSE = "leave it out to keep what the entry has left, or touch it with 0 for no expiry"


@dataclass(frozen=True, slots=True)
class Guard:
    """A fencing token: a write with it is applied only while the token holds its lock, or leads its election."""

    token: int
    lock: str | None = None
    election: str | None = None

    @property
    def guard(self) -> Guard:
        """Itself."""
        return self


class Guarding(Protocol):
    """What a write can be guarded by: a lock, a leadership, or a `Guard`."""

    @property
    def guard(self) -> Guard:
        """Its token."""
        ...


class HasId(Protocol):
    """A session."""

    @property
    def id(self) -> str:
        """Its id."""
        ...


def guard_json(guard: Guarding | None) -> dict[str, Any] | None:
    """A guard as the API takes it."""
    if guard is None:
        return None
    held = guard.guard
    return compact(lock=held.lock, election=held.election, token=str(held.token))


def patch_json(patch: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Any:
    """A patch as the API takes it: one object, or a list of them. A dataclass or a model is an object, too."""
    if isinstance(patch, Mapping) or is_model(patch):
        return patch
    return listed(patch, Mapping, "patch")


def session_id(session: HasId | str | None) -> str | None:
    """The id of a session."""
    return session if session is None or isinstance(session, str) else session.id


@dataclass(frozen=True, slots=True)
class Op:
    """An operation, for `bulk`, `txn` and `stream`. What it says is the JSON object that the API takes."""

    body: Mapping[str, Any]

    @property
    def about(self) -> dict[str, str]:
        """The key that an answer has to be about; for the parts of the client."""
        return {"key": with_names(self.body)["key"]} if "key" in self.body or "key_base64" in self.body else {}

    @staticmethod
    def get(key: Key) -> Op:
        """Reads an entry. For transactions and streams only."""
        return Op({"op": "get", **name_fields(key)})

    @staticmethod
    def put(
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
    ) -> Op:
        """Creates or overwrites; with `cas`, `if_absent` or `if_present` only then."""
        if sum((cas is not None, if_absent, if_present)) > 1:
            raise InvalidRequestError("cas, if_absent and if_present exclude one another")
        kind = "insert" if if_absent else "replace" if if_present or cas is not None else "upsert"
        shared = op_fields(cas=cas, if_=if_, ttl=ttl, session=session, guard=guard, prev=prev)
        return Op({"op": kind, **name_fields(key), **value_fields(value), **shared})

    @staticmethod
    def insert(
        key: Key,
        value: Any,
        *,
        ttl: Seconds | None = None,
        session: HasId | str | None = None,
        guard: Guarding | None = None,
    ) -> Op:
        """Creates; a bulk skips it where there is an entry, a transaction is refused."""
        return Op.put(key, value, if_absent=True, ttl=ttl, session=session, guard=guard)

    @staticmethod
    def replace(
        key: Key,
        value: Any,
        *,
        cas: str | None = None,
        if_: Criteria | None = None,
        ttl: Seconds | None = None,
        session: HasId | str | None = None,
        guard: Guarding | None = None,
        prev: bool = False,
    ) -> Op:
        """Overwrites an entry that is there."""
        shared = op_fields(cas=cas, if_=if_, ttl=ttl, session=session, guard=guard, prev=prev)
        return Op({"op": "replace", **name_fields(key), **value_fields(value), **shared})

    @staticmethod
    def patch(
        key: Key,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        cas: str | None = None,
        if_: Criteria | None = None,
        ttl: Seconds | None = None,
        session: HasId | str | None = None,
        guard: Guarding | None = None,
        prev: bool = False,
    ) -> Op:
        """Changes parts of a document: a merge patch, a JSON Patch, or a list of update operators."""
        shared = op_fields(cas=cas, if_=if_, ttl=ttl, session=session, guard=guard, prev=prev, ttl_else=KEEP_ELSE)
        return Op({"op": "update", **name_fields(key), "patch": patch_json(patch), **shared})

    @staticmethod
    def remove(
        key: Key,
        *,
        cas: str | None = None,
        if_: Criteria | None = None,
        guard: Guarding | None = None,
        prev: bool = False,
    ) -> Op:
        """Deletes an entry that is there."""
        return Op({"op": "remove", **name_fields(key), **op_fields(cas=cas, if_=if_, guard=guard, prev=prev)})

    @staticmethod
    def touch(key: Key, ttl: Seconds) -> Op:
        """Sets the time to live from now, changes nothing else; zero for ever."""
        return Op({"op": "touch", **name_fields(key), "ttl_ms": span(ttl, "ttl")})

    @staticmethod
    def lock_entry(key: Key, lock_for: Seconds | None = None) -> Op:
        """Locks an entry."""
        return Op({"op": "lock", **name_fields(key), **compact(lock_ms=span(lock_for, "lock_for"))})

    @staticmethod
    def extend_entry_lock(key: Key, cas: str, lock_for: Seconds | None = None) -> Op:
        """Lets a lock hold for so long from now; `cas` is its key."""
        return Op({"op": "extend", **name_fields(key), "cas": cas, **compact(lock_ms=span(lock_for, "lock_for"))})

    @staticmethod
    def unlock_entry(key: Key, cas: str) -> Op:
        """Ends a lock; `cas` is its key."""
        return Op({"op": "unlock", **name_fields(key), "cas": cas})


def op_fields(
    *,
    cas: str | None = None,
    if_: Criteria | None = None,
    ttl: Seconds | None = None,
    session: HasId | str | None = None,
    guard: Guarding | None = None,
    prev: bool = False,
    ttl_else: str = "leave it out for no expiry",
) -> dict[str, Any]:
    """The fields that operations share; `ttl_else` is what to do where the time to live is 0."""
    return compact(
        cas=cas,
        if_=criteria_list(if_, "if_"),
        ttl_ms=time_to_live(ttl, ttl_else),
        session=session_id(session),
        guard=guard_json(guard),
        prev=prev,
    )


@dataclass(frozen=True, slots=True)
class Check:
    """What a transaction looks at before it decides."""

    body: Mapping[str, Any]


def check(key: Key, *, cas: str | None = None, exists: bool | None = None, if_: Criteria | None = None) -> Check:
    """A check of one key: its cas, whether there is an entry, conditions on it."""
    body: dict[str, Any] = {**name_fields(key), **compact(cas=cas, if_=criteria_list(if_, "if_"))}
    if exists is not None:
        body["exists"] = exists
    return Check(body)


@dataclass(frozen=True, slots=True)
class Txn:
    """A transaction within another one: all checks of `if_`, then `then`, otherwise `else_`."""

    if_: Sequence[Check] = ()
    then: Sequence[Op | Txn] = ()
    else_: Sequence[Op | Txn] = ()


def txn_body(if_: Sequence[Check], then: Sequence[Op | Txn], else_: Sequence[Op | Txn]) -> dict[str, Any]:
    """A transaction as the API takes it."""
    checks = [check.body for check in listed(if_, Check, "if_")]
    body = {"if": checks, "then": steps(then, "then"), "else": steps(else_, "else_")}
    return {name: part for name, part in body.items() if part}


def steps(steps: Sequence[Op | Txn], what: str) -> list[Mapping[str, Any]]:
    """Steps as the API takes them."""
    checked = listed(steps, (Op, Txn), what)
    return [step.body if isinstance(step, Op) else {"op": "txn", **txn_body(step.if_, step.then, step.else_)} for step in checked]
