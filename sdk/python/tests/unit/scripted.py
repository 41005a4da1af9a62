"""A server that answers as it is told, for tests without a node."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote


@dataclass
class Asked:
    """A request that came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    # The number of its connection.
    connection: int = 0

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    """What is answered, `after` so many seconds. `cut`: nothing, the connection ends. `hang`: nothing, for so many seconds."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cut: bool = False
    hang: float = 0.0
    after: float = 0.0
    raw: bytes | None = None


def problem(status: int, code: str, applied: str = "no", retry: str = "after_reading", **more: Any) -> Reply:
    body = {"code": code, "status": status, "applied": applied, "retry": retry, "detail": code, "request_id": "r"}
    return Reply(status, {**body, "title": code, "type": f"/errors/{code}", **more})


class Scripted:
    """Answers request after request from a list, the last answer again and again; or as it is told for each."""

    def __init__(self, replies: Iterable[Reply] | Callable[[Asked], Reply], listener: socket.socket | None = None) -> None:
        self.answer = replies if callable(replies) else None
        self.replies = [] if callable(replies) else list(replies)
        self.asked: list[Asked] = []
        self.connections = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._listener = listener or socket.create_server(("127.0.0.1", 0))
        name = self._listener.getsockname()
        self.address = f"unix:{name}" if isinstance(name, str) else f"127.0.0.1:{name[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(client, self.connections), daemon=True).start()

    def _serve(self, client: socket.socket, connection: int) -> None:
        # A client may leave whenever it likes, by a reset as well.
        with suppress(ConnectionError):
            self._answer_all(client, connection)

    def _answer_all(self, client: socket.socket, connection: int) -> None:
        reply = Reply()
        with client, client.makefile("rb") as source:
            while (asked := self._read(source)) is not None:
                asked.connection = connection
                with self._lock:
                    self.asked.append(asked)
                    if self.answer is None:
                        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                if self.answer is not None:
                    reply = self.answer(asked)
                if reply.cut:
                    return
                if reply.hang:
                    self._ended.wait(reply.hang)
                    return
                if reply.after:
                    self._ended.wait(reply.after)
                client.sendall(self._text(reply))

    @staticmethod
    def _read(source: Any) -> Asked | None:
        line = source.readline().decode()
        if not line:
            return None
        method, target, _ = line.split(" ", 2)
        headers: dict[str, str] = {}
        while line := source.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Asked(method, target, headers, source.read(int(headers.get("content-length", "0"))))

    @staticmethod
    def _text(reply: Reply) -> bytes:
        if reply.raw is not None:
            return reply.raw
        body = json.dumps(reply.body).encode() if reply.body is not None else b""
        headers = {"content-type": "application/json", "content-length": str(len(body)), **reply.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {reply.status} -\r\n{head}\r\n".encode() + body


class Coordination:
    """Answers as a node does for one session, its locks and one queue of tasks; `special` first, where it has an answer."""

    def __init__(self, special: Callable[[Asked], Reply | None] = lambda asked: None, ttl_ms: int = 10_000) -> None:
        self.special = special
        self.ttl_ms = ttl_ms
        # Tasks to be claimed, and what was done to them.
        self.due: list[str] = []
        self.done: list[tuple[str, dict[str, Any]]] = []
        self.released: list[dict[str, Any]] = []

    def __call__(self, asked: Asked) -> Reply:
        reply = self.special(asked)
        if reply is not None:
            return reply
        route = asked.target.split("?")[0].split("/")
        if route[2] == "sessions":
            return self._session(route)
        if route[2] == "locks":
            return self._lock(route, asked)
        if route[2] == "tasks":
            return self._task(route[-1], asked)
        raise AssertionError(f"nobody said what to answer to {asked}")

    def _session(self, route: list[str]) -> Reply:
        lease = {"session": "9", "ttl_ms": self.ttl_ms, "renew_in_ms": self.ttl_ms // 3, "expires_in_ms": self.ttl_ms}
        if route[-1] == "renew":
            return Reply(200, {"sessions": [lease], "revision": "1", "index": 1})
        if route[-1] == "9":
            return Reply(200, {"session": "9", "ended": True, "count": 0, "revision": "1", "index": 1})
        return Reply(201, {**lease, "owner": "", "labels": {}, "revision": "1", "index": 1})

    def _lock(self, route: list[str], asked: Asked) -> Reply:
        known = {"lock": unquote(route[3]), "revision": "5", "index": 5}
        if route[-1] == "release":
            self.released.append(asked.json)
            return Reply(200, {**known, "released": True})
        return Reply(200, {**known, "session": "9", "mode": "exclusive", "state": "held", "token": "5"})

    def _task(self, verb: str, asked: Asked) -> Reply:
        if verb == "claim":
            due, self.due = self.due[: asked.json.get("limit", 1)], self.due[asked.json.get("limit", 1) :]
            lease = asked.json["lease_ms"]
            tasks = [
                {"id": task, "token": "3", "attempt": 1, "lease_ms": lease, "execute_at": "", "planned_at": "", "max_attempts": 5}
                for task in due
            ]
            body = {"tasks": tasks, "count": len(tasks), "waited_ms": 0, "revision": "1", "index": 1}
            return Reply(200, body, after=0.0 if due else 0.05)
        self.done.append((verb, asked.json))
        body = {"id": asked.json["id"], "state": "claimed", "attempts": 1, "max_attempts": 5, "revision": "1", "index": 1}
        return Reply(200, body)
