"""A call before it is sent: method, target, body, and what may be done with it when it fails.

Owns request ids and the escaping of names. Sends nothing.
"""

from __future__ import annotations

import base64
import os
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, cast
from urllib.parse import quote

from quorate._convert import to_json
from quorate._names import Key, name_bytes
from quorate.errors import InvalidRequestError

Seconds = float | timedelta
# One of several parts of all keys: which, from 0, and of how many.
Part = tuple[int, int]

# Parameters that name entries: any bytes.
NAMES = ("key", "prefix", "start", "end")

# Longest request id that nodes take.
REQUEST_ID_MAX = 128

# `read`: may be repeated at will. `write`: goes under an id, so it may be repeated and is applied at most once. `once`: may be
# repeated only where it was certainly not applied.
Intent = Literal["read", "write", "once"]
# `leader` saves forwarding; `any`: all nodes in turn; `read`: as the client was told where reads go.
Preference = Literal["leader", "any", "read"]


def seconds(time: Seconds) -> float:
    """A span of time in seconds."""
    return time.total_seconds() if isinstance(time, timedelta) else float(time)


def milliseconds(time: Seconds) -> int:
    """As the API takes spans of time."""
    return max(0, round(seconds(time) * 1000))


def random_request_id() -> str:
    """Unix milliseconds (48 bits) and 72 random bits in 20 characters.

    The time in front puts the rows of one moment next to each other in the nodes' tables; nothing depends on it being right.
    """
    now = int(time.time() * 1000) & 0xFFFF_FFFF_FFFF
    return base64.urlsafe_b64encode(now.to_bytes(6, "big") + os.urandom(9)).decode()


def checked_request_id(given: str | None) -> str:
    """The id that was given, or a new one."""
    if given is None:
        return random_request_id()
    if not 1 <= len(given) <= REQUEST_ID_MAX or not all("!" <= letter <= "~" for letter in given):
        raise InvalidRequestError(f"a request id is 1 to {REQUEST_ID_MAX} printable ASCII characters without spaces, not {given!r}")
    return given


@dataclass(slots=True)
class Call:
    """A call, ready to be attempted."""

    method: str
    target: str
    intent: Intent = "read"
    preference: Preference = "read"
    body: bytes = b""
    content_type: str | None = None
    request_id: str | None = None
    # Further headers.
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    # Deadline of the whole call in seconds; the client's own where there is none.
    timeout: float | None = None
    # How long one node may take before another is asked; the client's own where there is none.
    attempt: float | None = None
    # How long the node is asked to hold its answer back, on top of the deadline.
    hold: float = 0.0


def get(target: str, *, timeout: Seconds | None = None, hold: float = 0.0, preference: Preference = "read") -> Call:
    """A call that reads."""
    left = None if timeout is None else seconds(timeout)
    return Call("GET", target, "read", preference, timeout=left, hold=hold)


def post(
    target: str,
    body: Any,
    *,
    method: str = "POST",
    intent: Intent = "write",
    request_id: str | None = None,
    timeout: Seconds | None = None,
) -> Call:
    """A call with a JSON body; a write has a request id."""
    call = Call(method, target, intent, "leader" if intent != "read" else "read")
    if body is not None:
        call.body, call.content_type = to_json(body), "application/json"
    if intent == "write":
        call.request_id = checked_request_id(request_id)
    if timeout is not None:
        call.timeout = seconds(timeout)
    return call


def path(route: str, name: str, what: str, rest: str = "") -> str:
    """A route that ends with a slash, a name that is one segment, and what comes after it."""
    if not name:
        raise InvalidRequestError(f"{what} has at least one character")
    return f"{route}{escaped(name, '')}{rest}"


def key_path(key: Key) -> str:
    """The path of an entry; slashes stand for themselves, since keys are hierarchical."""
    if not key:
        raise InvalidRequestError("a key has at least one character")
    return f"/v1/kv/{quote(name_bytes(key), safe='/')}"


def escaped(text: str, safe: str) -> str:
    """A text as it stands in a URL.

    Raises:
        InvalidRequestError: It is none: half a character is in it.
    """
    try:
        return quote(text, safe=safe)
    except UnicodeEncodeError as error:
        raise InvalidRequestError(f"{text!r} is no text: {error.reason} at {error.start}") from error


def query(target: str, **parameters: Any) -> str:
    """Appends parameters; those that are `None` or `False` are left out. A `_` at the end of a name is not part of it."""
    pairs: list[str] = []
    for name, value in parameters.items():
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
        for one in values:
            if one is None or one is False:
                continue
            text = "true" if one is True else str(one)
            value = quote(name_bytes(cast("Key", one)), safe="/") if name in NAMES else escaped(text, "/")
            pairs.append(f"{name.rstrip('_')}={value}")
    if not pairs:
        return target
    return f"{target}{'&' if '?' in target else '?'}{'&'.join(pairs)}"


def part_query(part: Part | None) -> dict[str, int]:
    """The parameters of a part of the keys."""
    return {} if part is None else {"part": part[0], "of": part[1]}


def compact(**fields: Any) -> dict[str, Any]:
    """The fields that are said: `None` and `False` are not. A `_` at the end of a name is not part of it."""
    return {name.rstrip("_"): value for name, value in fields.items() if value is not None and value is not False}


def span(time: Seconds | None) -> int | None:
    """Milliseconds, where there is a time."""
    return None if time is None else milliseconds(time)
