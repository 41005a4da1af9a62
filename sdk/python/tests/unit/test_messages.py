from __future__ import annotations

import pytest

from quorate import _messages
from quorate._messages import BadMessageError, Message, Messages

TEXT = 'retry: 1000\n\n: alive\n\nevent: put\r\ndata: {"a":\r\ndata: "\u00fc"}\r\nid: 7.0\r\n\r\nevent: progress\ndata: 1\n\n'.encode()
EXPECTED = [Message("put", "7.0", '{"a":\n"\u00fc"}'), Message("progress", None, "1")]


def taken(messages: Messages) -> list[Message]:
    found: list[Message] = []
    while (message := messages.next()) is not None:
        found.append(message)
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_the_same_however_the_pieces_come(size: int) -> None:
    messages = Messages()
    found: list[Message] = []
    for start in range(0, len(TEXT), size):
        messages.feed(TEXT[start : start + size])
        found += taken(messages)
    assert found == EXPECTED


def test_what_is_no_text_or_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = Messages()
    messages.feed(b"data: \xff\n")
    with pytest.raises(BadMessageError):
        messages.next()
    monkeypatch.setattr(_messages, "MESSAGE_BYTES_MAX", 10)
    messages = Messages()
    messages.feed(b"data: 0123456789")
    with pytest.raises(BadMessageError):
        messages.next()
