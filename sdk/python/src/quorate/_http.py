"""One exchange of HTTP/1.1 after the other on one connection, without the connection.

Owns the use of h11: bytes in, bytes out. Knows of no sockets, and no deadlines.
"""

from __future__ import annotations

from dataclasses import dataclass

import h11

from quorate._endpoints import LeaderHint

# Longest head of an answer.
HEAD_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an answer."""

    status: int
    headers: dict[str, str]

    @property
    def hint(self) -> LeaderHint:
        """What it says of the cluster. Headers that make no sense say nothing."""
        leader = number(self.headers.get("quorate-leader"))
        return LeaderHint(number(self.headers.get("quorate-term")) or 0, leader)

    @property
    def revision(self) -> int | None:
        """The revision at which the answer begins."""
        return number(self.headers.get("quorate-revision"))

    @property
    def cluster(self) -> str | None:
        """The id of the cluster that answers, where it says it."""
        return self.headers.get("quorate-cluster") or None

    def is_of(self, kind: str) -> bool:
        """Whether what follows is of this content type."""
        return self.status == 200 and self.headers.get("content-type", "").startswith(kind)


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer."""

    head: Head
    body: bytes

    @property
    def status(self) -> int:
        """Its status."""
        return self.head.status


class BadAnswerError(Exception):
    """What came is not HTTP/1.1."""


class NeedData:
    """There is nothing more to take before more comes in."""


class End:
    """The answer is at its end."""


NEED_DATA = NeedData()
END = End()


def number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


class Exchanges:
    """The requests and answers of one connection."""

    def __init__(self) -> None:
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES_MAX)

    def request(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> bytes:
        """The bytes of a request."""
        if body or method in ("POST", "PUT", "PATCH"):
            headers = [*headers, ("Content-Length", str(len(body)))]
        head = self._h11.send(h11.Request(method=method, target=target, headers=headers)) or b""
        data = self._h11.send(h11.Data(data=body)) or b""
        return head + data + (self._h11.send(h11.EndOfMessage()) or b"")

    def feed(self, data: bytes) -> None:
        """Takes what came; nothing stands for the end."""
        try:
            self._h11.receive_data(data)
        except h11.RemoteProtocolError as error:
            raise BadAnswerError(str(error)) from error

    def next(self) -> Head | bytes | NeedData | End:
        """The head, then pieces of the body, then the end."""
        try:
            event = self._h11.next_event()
        except h11.RemoteProtocolError as error:
            raise BadAnswerError(str(error)) from error
        if isinstance(event, h11.InformationalResponse):
            return self.next()
        if isinstance(event, h11.Response):
            return Head(event.status_code, {name.decode(): value.decode("latin-1") for name, value in event.headers})
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if isinstance(event, h11.EndOfMessage):
            return END
        if isinstance(event, h11.ConnectionClosed):
            raise BadAnswerError("the connection ended without an answer")
        return NEED_DATA

    def restart(self) -> bool:
        """Whether the connection can take another request."""
        if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
            return False
        self._h11.start_next_cycle()
        return True
