"""A Unix socket before a node, which passes all bytes on."""

from __future__ import annotations

import socket
import threading
from pathlib import Path


class UnixProxy:
    """Listens at `path`, and passes what comes to the node at `address`, until it is closed."""

    def __init__(self, path: Path, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._node = (host, int(port))
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._open: list[socket.socket] = [self._listener]
        self.endpoint = f"unix:{path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> UnixProxy:
        return self

    def __exit__(self, *exc: object) -> None:
        for one in self._open:
            try:
                # Who waits on it wakes up.
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                # The other side was faster.
                pass
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                node = socket.create_connection(self._node)
            except OSError:
                # The node is down: the client hears that by the end of the connection.
                client.close()
                continue
            self._open += [client, node]
            for source, target in ((client, node), (node, client)):
                threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            # One side is gone; the other finds out by its own.
            return
