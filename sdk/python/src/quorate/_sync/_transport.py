# Written by scripts/generate_sync.py out of quorate._async; do not edit.
"""How a call gets to one node and its answer back.

Owns the connections. Makes exactly one attempt, and says of a failed one whether the request went out. Never retries, but for a
kept connection that turns out closed before anything was sent on it.
"""

from __future__ import annotations

import ssl
import threading
from collections import deque

from quorate import __version__
from quorate._credentials import Credentials
from quorate._endpoints import Endpoint
from quorate._fork import tell_in_child
from quorate._http import END, NEED_DATA, Answer, BadAnswerError, Exchanges, Head
from quorate._requests import Call
from quorate._retry import Failure, FailureKind
from quorate._sync._io import Connection, now
from quorate._values import AttemptError, BrokenStreamError
from quorate.errors import InvalidRequestError

# Longest time for a connection to come about; a node that is further away is not worth waiting for.
CONNECT_TIMEOUT = 2.0
# The node is told to answer at most this much earlier than we stop waiting, so that its own word on a timeout arrives.
GRACE_MAX = 0.25
# Largest answer taken: many times the largest page of a listing. Protects the memory of the caller.
ANSWER_BYTES_MAX = 64 * 1024 * 1024
# Connections kept to one node; further ones are closed after use.
IDLE_MAX = 128
# A kept connection is not trusted for longer: servers close idle ones.
KEPT_MAX = 30.0
USER_AGENT = f"quorate-python/{__version__}"


class Wire:
    """One connection and the exchanges on it."""

    def __init__(self, connection: Connection, generation: int) -> None:
        self.connection = connection
        self.generation = generation
        self.since = now()
        self._exchanges = Exchanges()

    def is_fit(self, generation: int) -> bool:
        """Whether it can be trusted with another request."""
        return self.generation == generation and now() - self.since <= KEPT_MAX and not self.connection.is_dead

    def send(self, call: Call, headers: list[tuple[str, str]], deadline: float) -> None:
        """Sends the request."""
        data = self._exchanges.request(call.method, call.target, headers, call.body)
        self.connection.send(data, deadline - now())

    def head(self, deadline: float) -> Head:
        """The head of the answer."""
        while True:
            event = self._exchanges.next()
            if isinstance(event, Head):
                return event
            self._exchanges.feed(self.connection.receive(deadline - now()))

    def piece(self, timeout: float) -> bytes | None:
        """The next piece of the body; `None` at its end."""
        while True:
            event = self._exchanges.next()
            if event is END:
                return None
            if event is NEED_DATA:
                self._exchanges.feed(self.connection.receive(timeout))
            elif isinstance(event, bytes):
                return event

    def rest(self, deadline: float) -> bytes:
        """All of the body."""
        body = bytearray()
        while (piece := self.piece(deadline - now())) is not None:
            body += piece
            if len(body) > ANSWER_BYTES_MAX:
                raise BadAnswerError(f"an answer of more than {ANSWER_BYTES_MAX} bytes")
        return bytes(body)

    def restart(self) -> bool:
        """Whether it can take another request."""
        self.since = now()
        return self._exchanges.restart()


class Body:
    """An answer whose pieces are still to come, on a connection of its own."""

    def __init__(self, head: Head, wire: Wire) -> None:
        self.head = head
        self._wire = wire

    def next(self, patience: float) -> bytes | None:
        """The next piece; `None` once the node has sent all. `patience` is for how many seconds nothing at all may come."""
        try:
            return self._wire.piece(patience)
        except TimeoutError as error:
            raise BrokenStreamError(f"nothing came for {patience:.1f} s") from error
        except (OSError, BadAnswerError) as error:
            raise BrokenStreamError(str(error) or type(error).__name__) from error

    def close(self) -> None:
        """Ends it. A `next` that is under way fails."""
        self._wire.connection.close()

    def __del__(self) -> None:
        # Of a watch that was left without being closed.
        self.close()


class Line:
    """The way to one node."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials) -> None:
        if endpoint.is_tls and credentials.shown().tls is None:
            raise InvalidRequestError(
                f"https://{endpoint.address}: no CA is named, and only certificates of CAs that are named are believed; say"
                " ca_file (QUORATE_CA)"
            )
        self.endpoint = endpoint
        self._credentials = credentials
        self._idle: deque[Wire] = deque()
        self._is_over = False
        self._lock = threading.Lock()
        tell_in_child(self, Line._forked)

    @property
    def address(self) -> str:
        """`host:port`, or `unix:/path`."""
        return self.endpoint.address

    def send(self, call: Call, budget: float) -> Answer:
        """One attempt, over within `budget` seconds.

        Raises:
            AttemptError: It brought no answer.
        """
        deadline = now() + budget
        wire = self._take() if call.intent != "once" else None
        wire = wire or self._connect(deadline)
        is_kept = False
        try:
            head = self._exchange(wire, call, deadline)
            answer = Answer(head, self._receive(wire, deadline))
            is_kept = wire.restart()
        finally:
            if is_kept:
                self._keep(wire)
            else:
                wire.connection.close()
        return answer

    def open(self, call: Call, kind: str, budget: float) -> Body | Answer:
        """One attempt to open an answer of this content type, or any other answer.

        Raises:
            AttemptError: It brought none.
        """
        deadline = now() + budget
        wire = self._connect(deadline)
        is_open = False
        try:
            head = self._exchange(wire, call, deadline)
            if head.is_of(kind):
                is_open = True
                return Body(head, wire)
            return Answer(head, self._receive(wire, deadline))
        finally:
            if not is_open:
                wire.connection.close()

    def _forked(self) -> None:
        """In a forked child: what is kept is the parent's."""
        self._lock = threading.Lock()
        self._idle.clear()

    def close(self) -> None:
        """Closes what is kept."""
        with self._lock:
            idle = list(self._idle)
            self._idle.clear()
        for wire in idle:
            wire.connection.close()

    def end(self) -> None:
        """Closes what is kept, and what is in use once it is not."""
        with self._lock:
            self._is_over = True
        self.close()

    def _take(self) -> Wire | None:
        """The warmest connection that is fit."""
        generation = self._credentials.shown().generation
        while True:
            with self._lock:
                wire = next((one for one in reversed(self._idle) if one.connection.is_here), None)
                if wire is not None:
                    self._idle.remove(wire)
            if wire is None or wire.is_fit(generation):
                return wire
            wire.connection.close()

    def _keep(self, wire: Wire) -> None:
        with self._lock:
            self._idle.append(wire)
            surplus = self._idle.popleft() if self._is_over or len(self._idle) > IDLE_MAX else None
        if surplus is not None:
            surplus.connection.close()

    def _connect(self, deadline: float) -> Wire:
        shown = self._credentials.shown()
        tls = shown.tls if self.endpoint.is_tls else None
        timeout = min(CONNECT_TIMEOUT, deadline - now())
        try:
            if self.endpoint.socket is not None:
                connection = Connection.open_socket(self.endpoint.socket, timeout)
            else:
                connection = Connection.open(self.endpoint.host, self.endpoint.port, tls, timeout)
        except TimeoutError as error:
            raise self._failed("connect", f"cannot connect: nothing came for {timeout:.2f} s") from error
        except ssl.SSLError as error:
            raise self._failed("tls", f"no secure connection: {error}") from error
        except OSError as error:
            raise self._failed("connect", f"cannot connect: {error.strerror or error}") from error
        return Wire(connection, shown.generation)

    def _exchange(self, wire: Wire, call: Call, deadline: float) -> Head:
        """Sends the request, and reads the head of the answer."""
        try:
            wire.send(call, self._headers(call, deadline - now()), deadline)
            return wire.head(deadline)
        except TimeoutError as error:
            raise self._failed("timed_out", "no answer in time") from error
        except ssl.SSLError as error:
            # The node tells what it thinks of our certificate when we read.
            raise self._failed("tls", f"no secure connection: {error}") from error
        except (OSError, BadAnswerError) as error:
            raise self._failed("broken", f"the connection broke: {error}") from error

    def _receive(self, wire: Wire, deadline: float) -> bytes:
        try:
            return wire.rest(deadline)
        except TimeoutError as error:
            raise self._failed("timed_out", "no whole answer in time") from error
        except (OSError, BadAnswerError) as error:
            raise self._failed("broken", f"in the middle of the answer: {error}") from error

    def _failed(self, kind: FailureKind, detail: str) -> AttemptError:
        return AttemptError(Failure(self.address, kind, detail))

    def _headers(self, call: Call, budget: float) -> list[tuple[str, str]]:
        told = max(int((budget - min(GRACE_MAX, budget / 10)) * 1000), 1)
        headers = [("Host", self.endpoint.authority), ("User-Agent", USER_AGENT), ("Request-Timeout", str(told))]
        authorization = self._credentials.shown().authorization
        if authorization is not None:
            headers.append(("Authorization", authorization))
        if call.request_id is not None:
            headers.append(("Idempotency-Key", call.request_id))
        if call.content_type is not None:
            headers.append(("Content-Type", call.content_type))
        return headers + call.headers
