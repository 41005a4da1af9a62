"""A server that answers as it is told, for tests without a node."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Asked:
    """A request that came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    """What is answered. `cut`: nothing, the connection ends. `hang`: nothing, for so many seconds."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cut: bool = False
    hang: float = 0.0
    raw: bytes | None = None


def problem(status: int, code: str, applied: str = "no", retry: str = "after_reading", **more: Any) -> Reply:
    body = {"code": code, "status": status, "applied": applied, "retry": retry, "detail": code, "request_id": "r"}
    return Reply(status, {**body, "title": code, "type": f"/errors/{code}", **more})


class Scripted:
    """Answers request after request from a list; the last answer again and again."""

    def __init__(self, replies: Iterable[Reply], listener: socket.socket | None = None) -> None:
        self.replies = list(replies)
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
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as source:
            while (asked := self._read(source)) is not None:
                with self._lock:
                    self.asked.append(asked)
                    reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                if reply.cut:
                    return
                if reply.hang:
                    self._ended.wait(reply.hang)
                    return
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
