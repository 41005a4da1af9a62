"""An entry as the cluster knows it: its value, and what is known of that.

Owns how the value of an entry becomes an object of Python, and nothing else does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from quorate._convert import entry_value
from quorate._names import with_names

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Generic[T_co]):
    """An entry, read or shown by a refusal.

    Attributes:
        key: Its key. One that is no UTF-8 has a lone surrogate for each byte that is no text, as names of files have (PEP 383).
        value: Its value: JSON as Python has it, `bytes`, or an object of the `model` that was asked for. `None` also where
            only keys were asked for.
        content_type: Whether the value is JSON or bytes.
        cas: The token of this version, for a write on it. `None` while somebody has locked the entry.
        create_revision: The revision that created it.
        mod_revision: The revision that changed it last.
        version: How often it was written since its creation.
        ttl_ms: Milliseconds that it has left to live; `None`: it stays.
        session: The session that it goes with.
        locked: Whether somebody has locked it.
        lock_ms: Milliseconds that the lock holds, where that is known.
        value_bytes: How many bytes the value has as it is stored; only of a list that was asked for `sizes`.
        revision: The revision at which the answer is true; only of an entry that was asked for by itself.
        index: The place in the log at which the answer is true; likewise.
        replayed: Whether the answer is that of an earlier try.
        dry_run: Whether nothing was written because a dry run was asked for.
    """

    key: str
    value: T_co
    content_type: Literal["json", "bytes"]
    cas: str | None
    create_revision: int
    mod_revision: int
    version: int
    ttl_ms: int | None = None
    session: str | None = None
    locked: bool = False
    lock_ms: int | None = None
    value_bytes: int | None = None
    revision: int | None = None
    index: int | None = None
    replayed: bool = False
    dry_run: bool = False


AnyEntry = Entry[Any]


def entry_of(data: Mapping[str, Any], model: Any = None) -> Entry[Any]:
    """The entry that this JSON is; its value as `model` has it."""
    data = with_names(data)

    def number(name: str) -> int | None:
        value = data.get(name)
        return None if value is None else int(value)

    return Entry(
        key=data["key"],
        value=entry_value(data, model),
        content_type=data["content_type"],
        cas=data["cas"],
        create_revision=int(data["create_revision"]),
        mod_revision=int(data["mod_revision"]),
        version=data["version"],
        ttl_ms=data.get("ttl_ms"),
        session=data.get("session"),
        locked=data.get("locked", False),
        lock_ms=data.get("lock_ms"),
        value_bytes=data.get("value_bytes"),
        revision=number("revision"),
        index=data.get("index"),
        replayed=data.get("replayed", False),
        dry_run=data.get("dry_run", False),
    )
