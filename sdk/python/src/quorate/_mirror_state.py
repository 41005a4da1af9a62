"""The entries of a mirror, and how they are found by their fields.

Pure: is told what changed, and knows neither where that comes from nor how fresh it is.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, cast

from quorate._entry import AnyEntry
from quorate._names import Key, name_bytes, name_text


class Index:
    """Keys by the value of a field."""

    def __init__(self, field: str) -> None:
        self.path = steps(field)
        self._keys: dict[str, set[str]] = {}

    def put(self, key: str, entry: AnyEntry | None) -> None:
        """The entry has this key now."""
        for text in self._texts(entry):
            self._keys.setdefault(text, set()).add(key)

    def take(self, key: str, entry: AnyEntry | None) -> None:
        """The entry had this key."""
        for text in self._texts(entry):
            keys = self._keys.get(text, set())
            keys.discard(key)
            if not keys:
                self._keys.pop(text, None)

    def find(self, value: Any) -> list[str]:
        """The keys of this value, in order."""
        return sorted(self._keys.get(canonical(value), ()), key=name_bytes)

    def _texts(self, entry: AnyEntry | None) -> Iterable[str]:
        """What the field of this document is found by: its value, and if that is an array each element too."""
        if entry is None or entry.content_type != "json":
            return ()
        found, value = at(entry.value, self.path)
        if not found:
            return ()
        elements = cast("list[Any]", value) if isinstance(value, list) else []
        return {canonical(value), *(canonical(one) for one in elements)}


class Entries:
    """The entries and their indexes."""

    def __init__(self, fields: Iterable[str], entries: Iterable[AnyEntry]) -> None:
        self.entries = {entry.key: entry for entry in entries}
        self._keys = sorted(map(name_bytes, self.entries))
        self._indexes = {field: Index(field) for field in fields}
        for index in self._indexes.values():
            for entry in self.entries.values():
                index.put(entry.key, entry)

    def set(self, key: str, entry: AnyEntry | None) -> AnyEntry | None:
        """The entry is so now, or gone; returns it as it was."""
        before = self.entries.get(key)
        if entry is not None:
            self.entries[key] = entry
            if before is None:
                insort(self._keys, name_bytes(key))
        elif before is not None:
            del self.entries[key]
            del self._keys[bisect_left(self._keys, name_bytes(key))]
        for index in self._indexes.values():
            index.take(key, before)
            index.put(key, entry)
        return before

    def get(self, key: Key) -> AnyEntry | None:
        """An entry."""
        return self.entries.get(name_text(key))

    def list(self, prefix: Key) -> tuple[AnyEntry, ...]:
        """Those whose keys begin so, by key."""
        prefix = name_bytes(prefix)
        found: list[AnyEntry] = []
        for place in range(bisect_left(self._keys, prefix), len(self._keys)):
            if not self._keys[place].startswith(prefix):
                break
            found.append(self.entries[name_text(self._keys[place])])
        return tuple(found)

    def find(self, field: str, value: Any) -> tuple[AnyEntry, ...] | None:
        """Those whose field has this value, by key; `None` where the field has no index."""
        index = self._indexes.get(field)
        return None if index is None else tuple(self.entries[key] for key in index.find(value))


def steps(field: str) -> list[str]:
    """The steps of a dotted path or a JSON pointer."""
    if field.startswith("/"):
        return [step.replace("~1", "/").replace("~0", "~") for step in field[1:].split("/")]
    return field.split(".")


def at(value: Any, path: list[str]) -> tuple[bool, Any]:
    """Whether there is something at this path, and what."""
    for step in path:
        if isinstance(value, dict) and step in value:
            value = cast("dict[str, Any]", value)[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[int(step)]
        else:
            return False, None
    return True, value


def canonical(value: Any) -> str:
    """One text for equal values: numbers are equal by their worth, and never to `true`."""
    if isinstance(value, float) and not value.is_integer():
        return f"n{Decimal(repr(value)).normalize()}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"n{int(value)}"
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
