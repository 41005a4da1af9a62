"""Names of entries: bytes, which most often are a text.

Owns the form of those that are no UTF-8. To Python they are what names of files are (PEP 383): texts with a lone surrogate for each byte
that is no part of a character, so that no two names are the same text, and what was read can be asked for. To a node they are in base64, in
a field of their own. Knows no call.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, cast

from quorate.errors import InvalidRequestError

# A key, or what keys begin with: a text, or its bytes.
Key = str | bytes

# The fields that hold one, each with the field that it stands in where it is no text.
FIELDS = {"key": "key_base64", "prefix": "prefix_base64", "name": "name_base64", "keys": "keys_base64"}


def name_bytes(name: Key) -> bytes:
    """The bytes of a name.

    Raises:
        InvalidRequestError: It has half a character in it that stands for no byte.
    """
    if not isinstance(name, str):
        return bytes(name)
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidRequestError(f"{name!r} is no name: {error.reason} at {error.start}") from error


def name_text(name: Key) -> str:
    """The text that a name is to Python: the same for the same bytes, however they were given."""
    return name_bytes(name).decode("utf-8", "surrogateescape")


def shown(name: Key) -> str:
    r"""A name for people, as the command line shows and takes it: a byte that is no text is `\xff`, and no two names look alike."""
    data = re.sub(rb"\\(?=x[0-9a-fA-F]{2})", rb"\\x5c", name_bytes(name))
    return data.decode("utf-8", "backslashreplace")


def name_fields(name: Key, field: str = "key") -> dict[str, str]:
    """A name as a request says it."""
    data = name_bytes(name)
    try:
        return {field: data.decode()}
    except UnicodeDecodeError:
        return {FIELDS[field]: base64.b64encode(data).decode()}


def key_value(value: Any) -> Any:
    """What `$key` is compared with, as a request says it."""
    if isinstance(value, list):
        return [key_value(one) for one in cast("list[Any]", value)]
    if not isinstance(value, str | bytes):
        return value
    fields = name_fields(value)
    return fields["key"] if "key" in fields else {"base64": fields["key_base64"]}


def with_names(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of an answer, with the names in it as Python has them."""
    for field, encoded in FIELDS.items():
        if encoded in data:
            there = data[encoded]
            if isinstance(there, list):
                names: Any = [*data.get(field, ()), *map(decoded, cast("list[str]", there))]
            else:
                names = decoded(there)
            data = {**data, field: names}
    return data


def decoded(text: str) -> str:
    """A name that an answer has in base64."""
    return name_text(base64.b64decode(text))
