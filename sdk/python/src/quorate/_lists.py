"""Arguments that are several things: what is taken for a list, and what is not.

Owns that a text is never taken for the list of its letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from quorate.errors import InvalidRequestError

T = TypeVar("T")


def listed(given: Iterable[T], kind: type[T] | tuple[type[Any], ...], what: str) -> list[T]:
    """The elements of a list.

    Raises:
        InvalidRequestError: It is none, or has an element that is not of this kind; `what` is the argument that it is.
    """
    return [checked(one, kind, f"{what}/{n}") for n, one in enumerate(iterated(given, what))]


def iterated(given: Iterable[T], what: str) -> Iterable[T]:
    """What is given, if it is a list or something else that has elements; fails as `listed` does."""
    # Arguments may be anything: not everybody checks types.
    if isinstance(given, str | bytes | bytearray | Mapping) or not isinstance(cast("Any", given), Iterable):
        raise InvalidRequestError(f"{what}: expected a list, not {shortened(given)}")
    return given


def checked(one: T, kind: type[Any] | tuple[type[Any], ...], what: str) -> T:
    """An element, if it is of this kind; fails as `listed` does."""
    if isinstance(one, kind):
        return one
    kinds = kind if isinstance(kind, tuple) else (kind,)
    raise InvalidRequestError(f"{what}: expected {' or '.join(one.__name__ for one in kinds)}, not {shortened(one)}")


def shortened(value: Any) -> str:
    """A value for people."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
