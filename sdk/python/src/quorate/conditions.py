"""Conditions on fields of documents: for `if_` of writes, and `where` of finds, claims and watches.

    field("status").eq("pending")
    any_of(field("total").gte(50), field("owner").exists())

Owns their form. A condition is the JSON object that the API takes, so one written by hand is as good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from quorate._lists import checked, iterated, listed
from quorate._names import Key, key_value

# A condition as the API takes it.
Criterion = Mapping[str, Any]
# One condition, or some that must all hold.
Criteria = Criterion | Iterable[Criterion]

# As a value: the time of the write, or of the read.
NOW = {"now": True}


class field:  # noqa: N801 - it reads as a word of the language that it makes
    """A field of a document, by dotted path or JSON pointer, or metadata such as `$version`. `$key` is compared with a text or `bytes`."""

    def __init__(self, path: str) -> None:
        self.path = path

    def _is(self, op: str, value: Any) -> Criterion:
        return {"field": self.path, "op": op, "value": key_value(value) if self.path == "$key" else value}

    def eq(self, value: Any) -> Criterion:
        """It is this value; numbers by their worth."""
        return self._is("eq", value)

    def neq(self, value: Any) -> Criterion:
        """It is not this value, or is missing."""
        return self._is("neq", value)

    def lt(self, value: Any) -> Criterion:
        """It is less than this."""
        return self._is("lt", value)

    def lte(self, value: Any) -> Criterion:
        """It is at most this."""
        return self._is("lte", value)

    def gt(self, value: Any) -> Criterion:
        """It is greater than this."""
        return self._is("gt", value)

    def gte(self, value: Any) -> Criterion:
        """It is at least this."""
        return self._is("gte", value)

    def between(self, low: Any, high: Any) -> Criterion:
        """It is at least the first and at most the second."""
        return self._is("between", [low, high])

    def in_(self, values: Iterable[Any]) -> Criterion:
        """It is one of these."""
        return self._is("in", list(iterated(values, "in_")))

    def nin(self, values: Iterable[Any]) -> Criterion:
        """It is none of these, or is missing."""
        return self._is("nin", list(iterated(values, "nin")))

    def exists(self) -> Criterion:
        """It is there; `null` counts."""
        return {"field": self.path, "op": "exists"}

    def nexists(self) -> Criterion:
        """It is not there."""
        return {"field": self.path, "op": "nexists"}

    def contains(self, value: Any) -> Criterion:
        """It is a string with this in it, or an array with this element."""
        return self._is("contains", value)

    def ncontains(self, value: Any) -> Criterion:
        """It is not such."""
        return self._is("ncontains", value)

    def starts(self, text: Key) -> Criterion:
        """It is a string that begins so."""
        return self._is("starts", text)

    def ends(self, text: Key) -> Criterion:
        """It is a string that ends so."""
        return self._is("ends", text)

    def like(self, pattern: str) -> Criterion:
        """It is a string like this: `%` stands for any characters, `_` for one."""
        return self._is("like", pattern)


def any_of(*criteria: Criterion) -> Criterion:
    """One of these holds."""
    return {"any": listed(criteria, Mapping, "any_of")}


def all_of(*criteria: Criterion) -> Criterion:
    """All of these hold."""
    return {"all": listed(criteria, Mapping, "all_of")}


def not_(criterion: Criterion) -> Criterion:
    """It does not hold."""
    return {"not": checked(criterion, Mapping, "not_")}


def criteria_list(criteria: Criteria | None, what: str) -> list[Criterion] | None:
    """The conditions as the API takes them.

    Raises:
        InvalidRequestError: They are none; `what` is the argument that says them.
    """
    if criteria is None:
        return None
    return [cast("Criterion", criteria)] if isinstance(criteria, Mapping) else listed(criteria, Mapping, what)
