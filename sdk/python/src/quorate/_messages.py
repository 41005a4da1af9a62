"""Server-sent events, taken apart as they come in.

Owns their syntax. Pure: is fed pieces of a body, and knows neither where they come from nor what the events are about.
"""

from __future__ import annotations

from dataclasses import dataclass

# The longest event taken: a few times the largest entry with its former version. Protects the memory of the caller.
MESSAGE_BYTES_MAX = 16 * 1024 * 1024


@dataclass(slots=True)
class Message:
    """One event: `event:`, `id:` where there is one, and `data:`, several lines joined."""

    name: str = ""
    id: str | None = None
    data: str = ""


class BadMessageError(Exception):
    """What comes in is not a stream of events."""


class Messages:
    """What came in and is not taken yet."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._open = Message()
        self._open_bytes = 0
        self._is_begun = False

    def feed(self, piece: bytes) -> None:
        """Takes a piece."""
        self._buffer += piece

    def next(self) -> Message | None:
        """The next event that is whole."""
        while (at := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:at])
            del self._buffer[: at + 1]
            self._searched = 0
            try:
                text = line.removesuffix(b"\r").decode()
            except UnicodeDecodeError as error:
                raise BadMessageError("an event that is not UTF-8") from error
            if self._take_line(text):
                whole, self._open = self._open, Message()
                self._open_bytes, self._is_begun = 0, False
                return whole
        self._searched = len(self._buffer)
        if self._open_bytes + len(self._buffer) > MESSAGE_BYTES_MAX:
            raise BadMessageError(f"an event of more than {MESSAGE_BYTES_MAX} bytes")
        return None

    def _take_line(self, line: str) -> bool:
        """Whether the line is the end of an event."""
        if not line:
            return self._is_begun
        self._open_bytes += len(line)
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._open.name = value
        elif name == "id":
            self._open.id = value
        elif name == "data":
            self._open.data = f"{self._open.data}\n{value}" if self._open.data else value
        else:
            # A comment, which only shows that the stream lives, or something of a later version.
            return False
        self._is_begun = True
        return False
