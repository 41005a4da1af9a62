"""Values of Python to JSON and back.

Owns which values there are: what JSON has, `bytes`, dataclasses, and models of pydantic where that is installed. Whole numbers
keep all their digits in both directions.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, cast

from quorate._names import shown
from quorate.errors import DecodeError, InvalidRequestError

BYTES = (bytes, bytearray)


class NoJsonError(Exception):
    """A value has no JSON form, or another one would be read back; `path` is where, from the inside to the outside."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.path: list[str] = []


def to_json(value: Any) -> bytes:
    """The JSON text of a value; dataclasses and models are objects.

    Raises:
        InvalidRequestError: It has no JSON form, or one that says something else.
    """
    try:
        text = json.dumps(faithful(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except NoJsonError as error:
        where = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in reversed(error.path))
        raise InvalidRequestError(f"the value has no JSON form: {where + ': ' if where else ''}{error}") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequestError(f"the value has no JSON form: {error}") from error


def faithful(value: Any) -> Any:
    """The value in what JSON has.

    Raises:
        NoJsonError: There is none that says the same: what is stored in silence as something else is noticed when it is too late.
    """
    if value is None or isinstance(value, bool | int):
        # Of an enumeration the number that it stands for.
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NoJsonError(f"JSON has no {value}")
        return value
    if isinstance(value, str):
        return faithful_text(value)
    if isinstance(value, Mapping):
        return faithful_mapping(cast("Mapping[Any, Any]", value))
    if isinstance(value, Sequence) and not isinstance(value, BYTES):
        return [faithful_part(str(n), part) for n, part in enumerate(cast("Sequence[Any]", value))]
    return faithful(plain(value))


def faithful_text(text: str) -> str:
    """A text, which has no half characters."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise NoJsonError(f"{text!r} is no text: {error.reason} at {error.start}") from error
    return text


def faithful_mapping(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """A mapping, whose keys are texts: others would become some, and could become the same."""
    for key in mapping:
        if not isinstance(key, str):
            raise NoJsonError(f"the key {key!r} is {type(key).__name__}, not str")
    return {faithful_part(key, key): faithful_part(key, part) for key, part in mapping.items()}


def faithful_part(step: str, part: Any) -> Any:
    """A part of a value; an error says where it is."""
    try:
        return faithful(part)
    except NoJsonError as error:
        error.path.append(step)
        raise


def plain(value: Any) -> Any:
    """What JSON has of a value that it does not know."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: field_value(value, field.name) for field in dataclasses.fields(value)}
    dump: Any = getattr(cast("Any", value), "model_dump", None)
    if callable(dump):
        return dump(mode="json", by_alias=True)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, BYTES):
        raise NoJsonError("bytes are a whole value, not a part of one")
    if isinstance(value, set | frozenset):
        raise NoJsonError("a set has no order, and would be read as a list: make a list of it")
    raise NoJsonError(f"{type(value).__name__} is neither JSON nor a dataclass nor a model")


def field_value(value: Any, name: str) -> Any:
    """A field of a dataclass. A set is one that its class declares, and is read as a set again where the class is the model."""
    part: Any = getattr(value, name)
    if isinstance(part, set | frozenset) and is_set(hints(cast("Any", type(value))).get(name)):
        return list(cast("set[Any]", part))
    return cast("Any", part)


def is_set(kind: Any) -> bool:
    """Whether a type is that of sets, or of sets or nothing."""
    if typing.get_origin(kind) in (Union, types.UnionType):
        return any(is_set(one) for one in typing.get_args(kind))
    return kind in (set, frozenset) or typing.get_origin(kind) in (set, frozenset)


def is_model(value: Any) -> bool:
    """Whether a value is an object of a dataclass, or of a model of pydantic."""
    is_object = not isinstance(value, type)
    return is_object and (dataclasses.is_dataclass(value) or callable(getattr(value, "model_dump", None)))


def value_fields(value: Any) -> dict[str, Any]:
    """The fields of an operation that say this value."""
    if isinstance(value, BYTES):
        return {"value_base64": base64.b64encode(bytes(value)).decode()}
    return {"value": value}


def entry_value(data: Mapping[str, Any], model: Any) -> Any:
    """The value of an entry given as JSON, as `model` has it."""
    what = f"the value of `{shown(data['key'])}`"
    text = data.get("value_base64")
    if text is not None:
        return load(model, base64.b64decode(text), what)
    if "value" not in data:
        # Only keys were asked for.
        return None
    return load(model, data["value"], what)


def load(model: Any, value: Any, what: str) -> Any:
    """The value as an object of `model`; as it is without one.

    Raises:
        DecodeError: It is none.
    """
    if model is None or model is Any:
        return value
    validate = getattr(model, "model_validate", None)
    try:
        if callable(validate):
            return validate(value)
        return build(model, value, "")
    except (TypeError, ValueError, KeyError) as error:
        raise DecodeError(f"{what} is no {getattr(model, '__name__', model)}: {error}") from error


def build(kind: Any, value: Any, path: str) -> Any:
    """An object of a type, by its annotations."""
    origin = typing.get_origin(kind)
    if kind is Any or kind is object:
        return value
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return build_dataclass(kind, value, path)
    kind = cast("Any", kind)
    validate: Any = getattr(kind, "model_validate", None)
    if callable(validate):
        return validate(value)
    if typing.is_typeddict(kind):
        return expect(dict, value, path)
    if origin is Literal:
        return expect_one_of(typing.get_args(kind), value, path)
    if origin is Union or origin is types.UnionType:
        return build_union(typing.get_args(kind), value, path)
    if origin is not None:
        return build_container(origin, typing.get_args(kind), value, path)
    return build_scalar(kind, value, path)


def build_scalar(kind: Any, value: Any, path: str) -> Any:
    """A value that has no parts, or of whose parts nothing is said."""
    if kind is None or kind is type(None):
        return expect(type(None), value, path)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is datetime:
        return datetime.fromisoformat(expect(str, value, path).replace("Z", "+00:00"))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if kind is tuple or kind is set or kind is frozenset:
        collect: Any = kind
        return collect(expect(list, value, path))
    return expect(kind, value, path)


def build_container(origin: Any, arguments: tuple[Any, ...], value: Any, path: str) -> Any:
    """A list, tuple, set or mapping of built values."""
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        items = expect(dict, value, path).items()
        return {key: build(arguments[1], item, f"{path}/{key}") for key, item in items}
    parts = expect(list, value, path)
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        if len(parts) != len(arguments):
            raise ValueError(f"{path or '/'} has {len(parts)} elements, not {len(arguments)}")
        return tuple(build(kind, part, f"{path}/{n}") for n, (kind, part) in enumerate(zip(arguments, parts, strict=True)))
    built = [build(arguments[0], part, f"{path}/{n}") for n, part in enumerate(parts)]
    collect: Any = origin if origin in (tuple, set, frozenset) else list
    return collect(built)


def build_union(arguments: tuple[Any, ...], value: Any, path: str) -> Any:
    """The first of the types that takes the value."""
    reasons: list[str] = []
    for kind in arguments:
        try:
            return build(kind, value, path)
        except (TypeError, ValueError, KeyError) as error:
            reasons.append(str(error))
    raise ValueError("; ".join(reasons))


@cache
def hints(kind: type) -> dict[str, Any]:
    """The types of the fields of a dataclass."""
    return typing.get_type_hints(kind)


def build_dataclass(kind: Any, value: Any, path: str) -> Any:
    """An object of a dataclass. Fields that it does not know are passed over: a newer writer may have more."""
    data = expect(dict, value, path)
    arguments: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in data and field.init:
            arguments[field.name] = build(hints(kind)[field.name], data[field.name], f"{path}/{field.name}")
    return kind(**arguments)


def expect(kind: Any, value: Any, path: str) -> Any:
    """The value, if it is of the type."""
    is_number = isinstance(value, bool) and kind in (int, float)
    if isinstance(kind, type) and isinstance(value, kind) and not is_number:
        return value
    raise TypeError(f"{path or '/'} is {type(value).__name__}, not {getattr(kind, '__name__', kind)}")


def expect_one_of(choices: tuple[Any, ...], value: Any, path: str) -> Any:
    """The value, if it is one of these."""
    if value in choices:
        return value
    raise ValueError(f"{path or '/'} is {value!r}, none of {choices}")
