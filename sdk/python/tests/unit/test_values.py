from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Literal

import pydantic
import pytest

import quorate
from quorate import _codec, types
from quorate import field as document_field
from quorate._convert import load, to_json, value_fields
from quorate._entry import entry_of
from quorate._mirror_state import Entries
from quorate._names import name_bytes, name_fields, name_text, shown
from quorate._requests import checked_request_id, compact, key_path, path, query, random_request_id
from quorate.conditions import NOW, all_of, any_of, criteria_list, not_
from quorate.errors import (
    CasMismatchError,
    DecodeError,
    InvalidRequestError,
    QuorateError,
    RejectedError,
    StaleCasError,
    UnavailableError,
    UnknownOutcomeError,
    rejected,
)
from quorate.ops import Guard, Op, Txn, check, txn_body


class Color(Enum):
    RED = "red"


@dataclass
class Line:
    item: str
    count: int = 1


@dataclass
class Order:
    status: Literal["new", "paid"]
    lines: list[Line]
    color: Color | None = None
    when: datetime | None = None
    weight: float = 0.0
    tags: tuple[str, ...] = ()
    by_name: dict[str, Line] = field(default_factory=dict[str, Line])


class Stock(pydantic.BaseModel):
    left: int


ENTRY = {
    "key": "k",
    "value": {"left": 1},
    "content_type": "json",
    "cas": "18446744073709551615",
    "create_revision": "9007199254740993",
    "mod_revision": "18446744073709551615",
    "version": 1,
}


def test_values_go_there_and_back() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    order = Order("paid", [Line("figs", 2)], Color.RED, at, 1, ("a",), {"x": Line("y")})
    assert to_json(order).startswith(b'{"status":"paid","lines":[{"item":"figs","count":2}],"color":"red"')
    import json

    assert load(Order, json.loads(to_json(order)), "it") == order
    assert load(Stock, {"left": 3}, "it") == Stock(left=3)
    assert to_json(Stock(left=3)) == b'{"left":3}'
    assert load(None, [1], "it") == [1]
    assert load(list[int], [1, 2], "it") == [1, 2]
    assert load(Order, {"status": "new", "lines": [], "newer": 1}, "it") == Order("new", [])


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (Order, {"status": "lost", "lines": []}),
        (Order, {"status": "new", "lines": [{"item": 1}]}),
        (Order, {"status": "new"}),
        (Order, []),
        (Stock, {"left": "many"}),
        (int, True),
        (int, "1"),
        (tuple[int, int], [1]),
        (Color, "blue"),
    ],
)
def test_what_is_not_of_the_model_is_told(model: Any, value: Any) -> None:
    with pytest.raises(DecodeError, match="it is no"):
        load(model, value, "it")


@pytest.mark.parametrize("value", [object(), float("nan"), {"a": b"x"}, {1j}])
def test_what_has_no_json_form_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequestError):
        to_json(value)


def test_bytes_are_a_value_of_their_own() -> None:
    assert value_fields(b"\x00\xff") == {"value_base64": "AP8="}
    entry = entry_of({**ENTRY, "content_type": "bytes", "value_base64": "AP8="})
    assert entry.value == b"\x00\xff"


def test_numbers_of_64_bits_keep_all_digits() -> None:
    entry = entry_of(ENTRY, Stock)
    assert (entry.cas, entry.create_revision, entry.mod_revision) == ("18446744073709551615", 9007199254740993, 2**64 - 1)
    assert entry.value == Stock(left=1)
    answer = _codec.decode(types.WriteAnswer, '{"key":"k","revision":"18446744073709551615","index":3,"newer":true}')
    assert (answer.revision, answer.cas, answer.replayed) == (2**64 - 1, None, False)


def test_an_entry_tells_whether_it_was_only_tried() -> None:
    assert not entry_of(ENTRY).dry_run
    assert entry_of({**ENTRY, "dry_run": True}).dry_run


def test_answers_are_read_with_what_is_in_them() -> None:
    text = '{"succeeded":true,"revision":"7","index":1,"results":[{"op":"get","key":"a","entry":null},'
    text += '{"op":"insert","key":"b","revision":"7","cas":"7"},{"op":"txn","succeeded":false,"results":[]}]}'
    kinds = [type(result) for result in _codec.decode(types.TxnAnswer, text).results]
    assert kinds == [types.TxnRead, types.TxnWritten, types.TxnBlockResult]
    renewed = _codec.decode(types.RenewAnswer, '{"revision":"1","index":1,"sessions":[{"session":"4","expired":true}]}')
    assert renewed.sessions == [types.SessionExpired(session="4", expired=True)]
    with pytest.raises(ValueError, match=r"KeyError|TypeError"):
        _codec.decode(types.WriteAnswer, '{"key":"k"}')


def problem(code: str, **more: Any) -> types.Problem:
    fields: dict[str, Any] = {"applied": "no", "retry": "after_reading", "status": 412, "detail": "d", "request_id": "r"}
    return types.Problem(code=code, title="t", type="x", **{**fields, **more})


def test_errors_say_what_became_of_the_call() -> None:
    error = rejected(problem("cas_mismatch", current=entry_of(ENTRY)))
    assert isinstance(error, CasMismatchError)
    assert (error.applied, error.retry, error.status, error.code) == ("no", "after_reading", 412, "cas_mismatch")
    assert error.current.value == {"left": 1}
    # The entry has gone.
    gone = rejected(problem("cas_mismatch"))
    assert (type(gone), gone.current) == (StaleCasError, None)
    assert str(error) == "cas_mismatch: d (applied: no)"
    newer = rejected(problem("of_tomorrow", retry="same_request_id", retry_after_ms=250))
    assert type(newer) is RejectedError
    assert (newer.code, newer.retry, newer.retry_after) == ("of_tomorrow", "same_request_id", 0.25)
    for kind, applied in ((UnavailableError, "no"), (UnknownOutcomeError, "unknown")):
        gave_up = kind("x", request_id="r", attempts=2, elapsed=1.0, problem=None)
        assert isinstance(gave_up, QuorateError)
        assert (gave_up.applied, gave_up.retry, gave_up.request_id) == (applied, "same_request_id", "r")


def test_conditions_are_the_json_that_the_api_takes() -> None:
    criterion = any_of(document_field("n").between(1, 2), not_(all_of(document_field("s").exists())))
    assert criteria_list(criterion, "if_") == [
        {"any": [{"field": "n", "op": "between", "value": [1, 2]}, {"not": {"all": [{"field": "s", "op": "exists"}]}}]}
    ]
    assert criteria_list([document_field("a").lt(NOW)], "if_") == [{"field": "a", "op": "lt", "value": {"now": True}}]
    assert criteria_list(None, "if_") is None


def test_operations_say_what_they_expect() -> None:
    assert Op.put("k", 1).body == {"op": "upsert", "key": "k", "value": 1}
    assert Op.put("k", 1, cas="3").body == {"op": "replace", "key": "k", "value": 1, "cas": "3"}
    assert Op.put("k", 1, if_absent=True).body["op"] == "insert"
    assert Op.put("k", 1, if_present=True).body["op"] == "replace"
    with pytest.raises(InvalidRequestError):
        Op.put("k", 1, cas="3", if_absent=True)
    guard = Guard(2**63 + 1, lock="l")
    assert Op.remove("k", guard=guard).body["guard"] == {"lock": "l", "token": str(2**63 + 1)}
    body = txn_body([check("k", exists=False)], [Op.get("k"), Txn(then=[Op.remove("k")])], [])
    assert body == {
        "if": [{"key": "k", "exists": False}],
        "then": [{"op": "get", "key": "k"}, {"op": "txn", "then": [{"op": "remove", "key": "k"}]}],
    }


def test_paths_and_parameters_are_escaped() -> None:
    assert key_path("a b/\u00fc?#%") == "/v1/kv/a%20b/%C3%BC%3F%23%25"
    assert path("/v1/locks/", "a/b", "a name", "/acquire") == "/v1/locks/a%2Fb/acquire"
    assert path("/v1/locks/", "..", "a name", "/acquire") == "/v1/locks/%2E%2E/acquire"
    assert path("/v1/locks/", "a/..", "a name") == "/v1/locks/a%2F.."
    keys = {".": "%2E", "..": "%2E%2E", "a/../b": "a%2F..%2Fb", "./a": ".%2Fa", "a//.b/": "a//.b/"}
    assert {key: key_path(key) for key in keys} == {key: f"/v1/kv/{escaped}" for key, escaped in keys.items()}
    assert query("/x", from_=3, prefix="", keys=True, none=None, no=False, a="b&c") == "/x?from=3&prefix=&keys=true&a=b%26c"
    assert compact(if_=[], none=None, no=False, zero=0) == {"if": [], "zero": 0}
    for name in ("", "\0"[:0]):
        with pytest.raises(InvalidRequestError):
            key_path(name)


def test_request_ids_are_new_each_time_and_checked() -> None:
    assert len({random_request_id() for _ in range(1000)}) == 1000
    assert len(random_request_id()) == 20
    assert checked_request_id("mine") == "mine"
    for bad in ("", "a b", "\u00fc", "x" * 129):
        with pytest.raises(InvalidRequestError):
            checked_request_id(bad)


def test_a_mirror_finds_by_fields() -> None:
    def entry(key: str, value: Any) -> Any:
        return entry_of({**ENTRY, "key": key, "value": value})

    entries = Entries(["n", "/tags"], [entry("a", {"n": 1}), entry("c", {"n": 1.0, "tags": ["x", "y"]})])
    assert [one.key for one in entries.find("n", 1) or ()] == ["a", "c"]
    assert [one.key for one in entries.find("/tags", "y") or ()] == ["c"]
    assert entries.find("n", True) == ()
    assert entries.find("other", 1) is None
    before = entries.set("a", entry("a", {"n": 2}))
    assert before is not None
    assert before.value == {"n": 1}
    assert [one.key for one in entries.find("n", 1) or ()] == ["c"]
    assert entries.set("b", entry("b", 3)) is None
    assert [one.key for one in entries.list("")] == ["a", "b", "c"]
    entries.set("c", None)
    assert entries.find("n", 1) == ()
    assert [one.key for one in entries.list("b")] == ["b"]


def test_a_key_is_its_bytes() -> None:
    names = [b"e/\xfd", b"e/\xff", "e/\ufffd".encode(), b"e/a"]
    texts = [name_text(name) for name in names]
    assert texts == ["e/\udcfd", "e/\udcff", "e/\ufffd", "e/a"]
    assert [name_bytes(text) for text in texts] == names
    assert Op.get("e/\udcff").body == Op.get(b"e/\xff").body == {"op": "get", "key_base64": "ZS//"}
    assert Op.get(b"e/a").body == Op.get("e/a").body == {"op": "get", "key": "e/a"}
    assert key_path(b"e/\xff") == key_path("e/\udcff") == "/v1/kv/e/%FF"
    assert query("/v1/kv", prefix=b"e/\xff", start=None) == "/v1/kv?prefix=e/%FF"
    assert quorate.field("$key").in_(["a", b"e/\xff"]) == {"field": "$key", "op": "in", "value": ["a", {"base64": "ZS//"}]}
    assert shown("e/\udcff") == r"e/\xff"
    assert shown(r"e/\xff") == r"e/\x5cxff"
    for wrong in ("a\ud800", "a\udc7f"):
        with pytest.raises(InvalidRequestError):
            Op.get(wrong)
    with pytest.raises(InvalidRequestError):
        path("/v1/locks/", "a\udcff", "a lock")
    with pytest.raises(InvalidRequestError):
        to_json({"name": "a\udcff"})


def test_keys_that_are_no_text_are_read_and_kept_apart() -> None:
    def entry(name: bytes) -> Any:
        return entry_of({key: value for key, value in ENTRY.items() if key != "key"} | name_fields(name))

    names = [b"e/\xfd", b"e/\xff", "e/\ufffd".encode()]
    entries = Entries(("left",), [entry(name) for name in names])
    assert [name_bytes(one.key) for one in entries.list(b"e/")] == sorted(names)
    entries.set(name_text(b"e/\xfd"), None)
    assert [name_bytes(one.key) for one in entries.find("left", 1) or ()] == ["e/\ufffd".encode(), b"e/\xff"]
    assert entries.get(b"e/\xff") is not None
    assert entries.get(b"e/\xfd") is None
    event = _codec.decode(types.WatchEvent, '{"type":"delete","revision":"4","key_base64":"ZS//"}')
    assert event.key == "e/\udcff"
    holds = '{"locks":[],"elections":[],"barriers":[],"keys":["a"],"keys_base64":["ZS//"],"count":2}'
    assert _codec.decode(types.SessionHolds, holds).keys == ["a", "e/\udcff"]
