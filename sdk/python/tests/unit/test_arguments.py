"""Arguments that make no sense are refused before anything is sent, by the client's own error."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, IntEnum
from fractions import Fraction
from typing import Any

import pydantic
import pytest

from quorate import Backoff, Client, InvalidRequestError, Op, TaskFailure, TaskSpec, Txn, all_of, any_of, check, not_
from quorate import field as document_field
from quorate._convert import load, to_json
from quorate._requests import milliseconds

WRONG: Any = "status eq paid"
NUMBERS: Any = [7]
# Nobody listens there, and nothing is sent.
client = Client("127.0.0.1:1", discover_members=False, timeout=0.01)

# --- spans of time ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (0, 0),
        (1, 1000),
        (1.5, 1500),
        (timedelta(seconds=1.5), 1500),
        (timedelta(microseconds=1), 1),
        (Fraction(1, 3), 334),
        (0.0001, 1),
        (1e-12, 1),
        (1.0001, 1001),
        # Not exact in binary.
        (0.07, 70),
        (1.001, 1001),
        (0.1 + 0.2, 300),
        (86_400.1, 86_400_100),
        (10**9, 10**12),
    ],
)
def test_a_span_of_time_is_never_cut_short(given: Any, expected: int) -> None:
    assert milliseconds(given, "ttl") == expected


CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    ("ttl", lambda time: client.put("k", 1, ttl=time)),
    ("ttl", lambda time: client.insert("k", 1, ttl=time)),
    ("ttl", lambda time: client.replace("k", 1, ttl=time)),
    ("ttl", lambda time: client.patch("k", {}, ttl=time)),
    ("ttl", lambda time: client.touch("k", time)),
    ("ttl", lambda time: client.get_and_touch("k", time)),
    ("ttl", lambda time: client.update("k", lambda value: value, ttl=time)),
    ("ttl", lambda time: client.update_where("k", [], {}, ttl=time)),
    ("ttl", lambda time: Op.put("k", 1, ttl=time)),
    ("ttl", lambda time: client.session(ttl=time)),
    ("lock_for", lambda time: client.lock_entry("k", time)),
    ("wait", lambda time: client.lock_entry("k", wait=time)),
    ("lock_for", lambda time: client.get_and_lock("k", time)),
    ("lock_for", lambda time: client.extend_entry_lock("k", "1", time)),
    ("lock_for", lambda time: client.claim("k", lock_for=time)),
    ("wait", lambda time: client.wait_for_change("k", None, time)),
    ("timeout", lambda time: client.get("k", timeout=time)),
    ("timeout", lambda time: client.put("k", 1, timeout=time)),
    ("timeout", lambda time: next(client.stream([Op.get("k")], timeout=time))),
    ("delay", lambda time: client.tasks("q").schedule(delay=time)),
    ("every", lambda time: client.tasks("q").schedule(every=time)),
    ("keep", lambda time: client.tasks("q").schedule(keep=time)),
    ("first", lambda time: client.tasks("q").schedule(backoff=Backoff(time))),
    ("longest", lambda time: client.tasks("q").schedule(backoff=Backoff(1, time))),
    ("lease", lambda time: client.tasks("q").claim(lease=time)),
    ("wait", lambda time: client.tasks("q").claim(wait=time)),
    ("lease", lambda time: client.tasks("q").extend("t", 1, time)),
    ("retry_in", lambda time: client.tasks("q").fail("t", 1, retry_in=time)),
    ("retry_in", lambda time: TaskFailure("no", retry_in=time)),
    ("lease", lambda time: client.tasks("q").worker(lambda run: None, lease=time)),
    ("stop_within", lambda time: client.tasks("q").worker(lambda run: None, stop_within=time)),
    ("wait", lambda time: client.latch("l").wait(time)),
    ("heartbeat", lambda time: client.watch("", heartbeat=time)),
    ("patience", lambda time: client.watch("", patience=time)),
    ("heartbeat", lambda time: client.mirror("", heartbeat=time)),
    ("expires_in", lambda time: client.access.create_token("u", expires_in=time)),
    ("timeout", lambda time: Client("a:1", timeout=time)),
    ("attempt_timeout", lambda time: Client("a:1", attempt_timeout=time)),
]


@pytest.mark.parametrize(("what", "call"), CALLS)
@pytest.mark.parametrize("time", [-1, -1e-9, math.nan, math.inf, timedelta(seconds=-5), "30s", True])
def test_a_time_that_is_none_is_refused_by_name(what: str, call: Callable[[Any], Any], time: Any) -> None:
    with pytest.raises(InvalidRequestError, match=rf"^{what}: .*no time; expected") as caught:
        call(time)
    assert str(time) in caught.value.detail


@pytest.mark.parametrize(
    ("call", "way"),
    [
        (lambda: client.put("k", 1, ttl=0), "leave it out for no expiry"),
        (lambda: client.insert("k", 1, ttl=timedelta(0)), "leave it out for no expiry"),
        (lambda: client.replace("k", 1, ttl=0.0), "leave it out for no expiry"),
        (lambda: Op.put("k", 1, ttl=0), "leave it out for no expiry"),
        (lambda: Op.insert("k", 1, ttl=0), "leave it out for no expiry"),
        (lambda: Op.patch("k", {}, ttl=0), "touch it with 0 for no expiry"),
        (lambda: client.update("k", lambda value: value, ttl=0), "touch it with 0 for no expiry"),
        (lambda: client.update_where("k", [], {}, ttl=0), "touch it with 0 for no expiry"),
    ],
)
def test_a_time_to_live_of_nothing_is_refused(call: Callable[[], Any], way: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"^ttl: 0 is no time to live; .*{way}"):
        call()


def test_what_means_at_once_or_for_ever_goes_on_to() -> None:
    assert Op.touch("k", 0).body["ttl_ms"] == 0
    assert Op.lock_entry("k", 0).body["lock_ms"] == 0
    assert Op.put("k", 1).body.get("ttl_ms") is None
    assert TaskSpec(delay=0).body()["delay_ms"] == 0


# --- endpoints -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["", " ", ",", [], [""], ["a:1", ""], ["a:1", " "]])
def test_no_endpoint_is_not_the_local_cluster(given: Any) -> None:
    with pytest.raises(InvalidRequestError, match="no endpoint is given"):
        Client(given)


def test_an_empty_variable_is_not_the_local_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORATE_ENDPOINTS", "")
    with pytest.raises(InvalidRequestError, match="no endpoint is given"):
        Client.from_env()
    monkeypatch.delenv("QUORATE_ENDPOINTS")
    assert len(Client.from_env().endpoints) == 3
    assert len(Client().endpoints) == 3


# --- lists -----------------------------------------------------------------------------------------------------------------------


# Whatever they are given.
LISTS: list[tuple[str, Callable[[Any], Any]]] = [
    ("if_", lambda wrong: Op.put("k", 1, if_=wrong)),
    ("if_", lambda wrong: client.patch("k", {}, if_=wrong)),
    ("if_", lambda wrong: check("k", if_=wrong)),
    ("where", lambda wrong: client.find("", wrong)),
    ("where", lambda wrong: list(client.find_all("", wrong))),
    ("where", lambda wrong: client.count("", wrong)),
    ("where", lambda wrong: client.claim("k", wrong)),
    ("where", lambda wrong: client.watch("", where=wrong)),
    ("where", lambda wrong: client.update_where("k", wrong, {})),
    ("where", lambda wrong: client.delete_where("k", wrong)),
    ("if_", lambda wrong: client.delete_where("k", [], if_=wrong)),
    ("where", lambda wrong: list(client.delete_all_where("k", wrong))),
    ("patch", lambda wrong: client.patch("k", wrong)),
    ("patch", lambda wrong: client.update_where("k", [], wrong)),
    ("patch", lambda wrong: client.claim("k", patch=wrong)),
    ("ops", lambda wrong: client.bulk(wrong)),
    ("ops", lambda wrong: list(client.stream(wrong))),
    ("if_", lambda wrong: client.txn(if_=wrong)),
    ("then", lambda wrong: client.txn(then=wrong)),
    ("else_", lambda wrong: client.txn(then=[Txn(else_=wrong)])),
    ("tasks", lambda wrong: client.tasks("q").schedule_all(wrong)),
    ("roles", lambda wrong: client.access.set_user("u", wrong)),
    ("grants", lambda wrong: client.access.set_role("r", wrong)),
    ("labels", lambda wrong: client.session(labels=wrong)),
    ("in_", lambda wrong: document_field("a").in_(wrong)),
    ("nin", lambda wrong: document_field("a").nin(wrong)),
    ("endpoints", lambda wrong: Client(wrong.encode())),
]


@pytest.mark.parametrize(("what", "call"), LISTS)
def test_a_text_is_not_the_list_of_its_letters(what: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidRequestError, match=rf"^{what}: expected .*, not b?'status eq paid'"):
        call(WRONG)


@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("if_/1", lambda: Op.put("k", 1, if_=[document_field("a").eq(1), WRONG])),
        ("ops/0", lambda: client.bulk([WRONG])),
        ("ops/0", lambda: list(client.stream([WRONG]))),
        ("then/0", lambda: client.txn(then=[WRONG])),
        ("any_of/0", lambda: any_of(WRONG)),
        ("all_of/0", lambda: all_of(WRONG)),
        ("not_", lambda: not_(WRONG)),
        ("order_by/1", lambda: client.find("", order_by=[WRONG, *NUMBERS])),
    ],
)
def test_an_element_of_another_kind_is_refused_by_its_place(what: str, call: Callable[[], Any]) -> None:
    with pytest.raises(InvalidRequestError, match=rf"^{what}: expected "):
        call()


# --- values ----------------------------------------------------------------------------------------------------------------------


class Color(str, Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@dataclass
class Tagged:
    tags: set[str] = field(default_factory=set[str])
    more: frozenset[int] | None = None
    other: Any = None


class Model(pydantic.BaseModel):
    weight: float = 0.0
    tags: set[str] = set()


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [1, {"b": {1, 2}}]}, r"/a/1/b: a set has no order"),
        (frozenset("ab"), r"form: a set"),
        ({"a": {1: "x"}}, r"/a: the key 1 is int, not str"),
        ({"a": {(1, 2): "x"}}, r"/a: the key \(1, 2\) is tuple"),
        ({None: 1}, r"the key None"),
        ({True: 1}, r"the key True"),
        ({"x/y~z": [math.nan]}, r"/x~1y~0z/0: JSON has no nan"),
        ([math.inf], r"/0: JSON has no inf"),
        (Model(weight=math.nan), r"/weight: JSON has no nan"),
        ({"a": b"x"}, r"/a: bytes are a whole value"),
        ({"a": "\ud800"}, r"/a: .*is no text"),
        ({"\ud800": 1}, r"is no text"),
        ({"a": object()}, r"/a: object is neither JSON"),
        (Tagged(other={1}), r"/other: a set"),
        (1 + 2j, r"complex is neither"),
    ],
)
def test_what_json_would_change_is_refused_with_the_path_to_it(value: Any, where: str) -> None:
    with pytest.raises(InvalidRequestError, match=where):
        to_json(value)


def test_what_json_has_is_as_it_was() -> None:
    value = {"a": [1, 2.5, None, True, "\u00fc"], "b": (1, 2), "c": deque([3]), "d": Color.RED, "e": Level.HIGH, "big": 2**80}
    expected = '{"a":[1,2.5,null,true,"\u00fc"],"b":[1,2],"c":[3],"d":"red","e":3,"big":1208925819614629174706176}'
    assert to_json(value).decode() == expected
    # What a class declares to be a set is read as one.
    tagged = Tagged({"x"}, frozenset({1}))
    assert to_json(tagged) == b'{"tags":["x"],"more":[1],"other":null}'
    assert load(Tagged, {"tags": ["x"], "more": [1]}, "it") == tagged
    assert to_json(Model(tags={"x"})) == b'{"weight":0.0,"tags":["x"]}'
    nested: list[Any] = []
    nested.append(nested)
    with pytest.raises(InvalidRequestError, match="no JSON form"):
        to_json(nested)
