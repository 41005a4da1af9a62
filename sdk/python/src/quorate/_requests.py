"""A call before it is sent: method, target, body, and what may be done with it when it fails.

Owns request ids and the escaping of names. Sends nothing.
"""

from __future__ import annotations

import base64
import math
import os
import time
from dataclasses import dataclass, field
from datetime import timedelta
from numbers import Real
from typing import Any, Literal, cast
from urllib.parse import quote

from quorate._convert import to_json
from quorate._names import Key, name_bytes, name_text
from quorate._patience import Patience
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


def seconds(time: Seconds, what: str) -> float:
    """A span of time in seconds.

    Raises:
        InvalidRequestError: It is negative, or no span of time; `what` is the argument that says it.
    """
    span = time.total_seconds() if isinstance(time, timedelta) else time
    # Arguments may be anything: not everybody checks types.
    if isinstance(span, bool) or not isinstance(cast("Any", span), Real):
        raise InvalidRequestError(f"{what}: {time!r} is no time; expected seconds as a number, or a timedelta")
    if not 0 <= span < math.inf:
        raise InvalidRequestError(f"{what}: {time} is no time; expected a number of seconds, at least 0")
    return float(span)


def milliseconds(time: Seconds, what: str) -> int:
    """As the API takes spans of time: what is said is not cut short, so parts of a millisecond are rounded up. Fails as `seconds` does."""
    # First to whole nanoseconds: 0.07 is not exactly that in binary, and not to become 71 ms.
    return -(-round(seconds(time, what) * 1e9) // 1_000_000) or (1 if seconds(time, what) > 0 else 0)


def time_to_live(ttl: Seconds | None, else_: str = "leave it out for no expiry") -> int | None:
    """The time to live that a write gives an entry, in milliseconds.

    Raises:
        InvalidRequestError: It is none, or 0: for how long that lets an entry live is not agreed upon among stores.
    """
    given = span(ttl, "ttl")
    if given == 0:
        raise InvalidRequestError(f"ttl: 0 is no time to live; {else_}")
    return given


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
    # What the answer has to be about: its fields of these names, where it has them.
    about: dict[str, str] = field(default_factory=dict[str, str])
    # For how long a write goes under this id, from when it was made.
    patience: Patience = field(default_factory=Patience)


def get(
    target: str,
    *,
    timeout: Seconds | None = None,
    hold: float = 0.0,
    preference: Preference = "read",
    about: dict[str, str] | None = None,
) -> Call:
    """A call that reads."""
    left = None if timeout is None else seconds(timeout, "timeout")
    return Call("GET", target, "read", preference, timeout=left, hold=hold, about=about or {})


def post(
    target: str,
    body: Any,
    *,
    method: str = "POST",
    intent: Intent = "write",
    request_id: str | None = None,
    timeout: Seconds | None = None,
    about: dict[str, str] | None = None,
) -> Call:
    """A call with a JSON body; a write has a request id."""
    call = Call(method, target, intent, "leader" if intent != "read" else "read", about=about or {})
    if body is not None:
        call.body, call.content_type = to_json(body), "application/json"
    if intent == "write":
        call.request_id = checked_request_id(request_id)
    if timeout is not None:
        call.timeout = seconds(timeout, "timeout")
    return call


def path(route: str, name: str, what: str, rest: str = "") -> str:
    """A route that ends with a slash, a name that is one segment, and what comes after it."""
    if not name:
        raise InvalidRequestError(f"{what} has at least one character")
    return f"{route}{without_step(escaped(name, ''))}{rest}"


def key_path(key: Key) -> str:
    """The path of an entry; slashes stand for themselves, since keys are hierarchical, unless a segment is `.` or `..`."""
    if not key:
        raise InvalidRequestError("a key has at least one character")
    name = name_bytes(key)
    safe = "/" if {b".", b".."}.isdisjoint(name.split(b"/")) else ""
    return f"/v1/kv/{without_step(quote(name, safe=safe))}"


def without_step(segment: str) -> str:
    """A segment of a path; one that is `.` or `..` has its dots encoded, since proxies take it for a step (RFC 3986, 5.2.4)."""
    return segment.replace(".", "%2E") if segment in {".", ".."} else segment


def is_rewritten(key: Key) -> bool:
    """Whether proxies like to make another path of this key: one with an empty segment, `.` or `..`, at an end too."""
    return not {"", ".", ".."}.isdisjoint(name_text(key).split("/"))


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


def span(time: Seconds | None, what: str) -> int | None:
    """Milliseconds, where there is a time."""
    return None if time is None else milliseconds(time, what)


def end_of(timeout: Seconds | None, now: float, what: str = "timeout") -> float | None:
    """When a wait of at most so long ends; `None` for one without an end."""
    return None if timeout is None else now + seconds(timeout, what)
