"""Answers of the cluster to objects: JSON text to the dataclasses of `quorate.types`.

Owns that decimal strings become whole numbers, and that what a newer cluster says more is passed over.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, Union, cast

from quorate import _entry
from quorate import types as wire
from quorate._names import with_names

T = TypeVar("T")
Read = Callable[[Any], Any]


def decode(kind: type[T], text: bytes | str) -> T:
    """The answer as `kind`.

    Raises:
        ValueError: It is none.
    """
    try:
        return reader(kind)(json.loads(text))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def read(kind: type[T], data: Any) -> T:
    """Parsed JSON as `kind`; fails as `decode` does."""
    try:
        return reader(kind)(data)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


@cache
def reader(kind: Any) -> Read:
    """What makes a value of this type out of JSON."""
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin is _entry.Entry or kind is _entry.Entry:
        return _entry.entry_of
    if kind is int:
        return int
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return dataclass_reader(kind)
    if origin is list:
        part = reader(arguments[0])
        return lambda data: [part(one) for one in data]
    if origin is dict:
        part = reader(arguments[1])
        return lambda data: {key: part(one) for key, one in data.items()}
    if origin is Union or origin is types.UnionType:
        return union_reader(arguments)
    return lambda data: data


def dataclass_reader(kind: Any) -> Read:
    """Takes the fields that the class has; those that are absent have its defaults."""

    @cache
    def fields() -> list[tuple[str, Read]]:
        # At the first use, since some classes are parts of themselves.
        hints = typing.get_type_hints(kind, dict(vars(wire)))
        return [(field.name, reader(hints[field.name])) for field in dataclasses.fields(kind)]

    def build(data: dict[str, Any]) -> Any:
        data = dict(with_names(data))
        return kind(**{name: part(data[name]) for name, part in fields() if name in data})

    return build


def union_reader(arguments: tuple[Any, ...]) -> Read:
    """Takes the class with the most required fields that are all there; else the value as it is."""
    classes = [one for one in arguments if isinstance(one, type) and dataclasses.is_dataclass(one)]
    others = [one for one in arguments if one not in classes and one is not type(None)]
    needs = [(required(one), reader(one)) for one in classes]
    needs.sort(key=lambda need: -len(need[0]))
    other = reader(others[0]) if len(others) == 1 else None

    def build(data: Any) -> Any:
        if data is None:
            return None
        if isinstance(data, dict):
            there = with_names(cast("dict[str, Any]", data)).keys()
            for names, part in needs:
                if names <= there:
                    return part(data)
        return cast("Any", data) if other is None else other(data)

    return build


def required(kind: Any) -> frozenset[str]:
    """The fields of a class that have no default."""
    missing = dataclasses.MISSING
    fields = dataclasses.fields(kind)
    return frozenset(field.name for field in fields if field.default is missing and field.default_factory is missing)
