"""Connections, waiting and background work, on sockets and threads. `quorate._async._io` is the same on asyncio.

Owns all that the two clients do not have in common. Everything else is written once.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from quorate._fork import tell_in_child

T = TypeVar("T")
# Bytes that are taken at once.
CHUNK = 64 * 1024
# How long a node is asked to hold an answer back: a question is not taken back here, so a stop waits for the answer.
LONG_POLL = 2.0


def now() -> float:
    """Seconds of a monotonic clock."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    """Does nothing for so long."""
    time.sleep(seconds)


class Connection:
    """A connection to a node."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._is_closed = False
        tell_in_child(self, Connection._forked)

    @classmethod
    def open(cls, host: str, port: int, tls: ssl.SSLContext | None, timeout: float) -> Connection:
        """Connects.

        Raises:
            TimeoutError: It took longer.
            OSError: It did not work.
        """
        sock = socket.create_connection((host, port), max(timeout, 0.001))
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return cls(sock if tls is None else tls.wrap_socket(sock, server_hostname=host))
        except BaseException:
            sock.close()
            raise

    @classmethod
    def open_socket(cls, path: str, timeout: float) -> Connection:
        """Connects to a Unix socket; fails as `open` does."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(max(timeout, 0.001))
            sock.connect(path)
            return cls(sock)
        except BaseException:
            sock.close()
            raise

    @property
    def is_here(self) -> bool:
        """Whether it can be used, or be closed, by who asks: any thread may."""
        return True

    @property
    def is_dead(self) -> bool:
        """Whether a connection on which nothing is under way is of no more use."""
        if self._is_closed:
            return True
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            return bool(poll.poll(0))
        return bool(select.select([self._socket], [], [], 0)[0])

    def send(self, data: bytes, timeout: float) -> None:
        """Sends all of it."""
        self._socket.settimeout(max(timeout, 0.001))
        self._socket.sendall(data)

    def receive(self, timeout: float) -> bytes:
        """What came; nothing at the end.

        Raises:
            TimeoutError: Nothing came.
            OSError: The connection broke.
        """
        try:
            self._socket.settimeout(max(timeout, 0.001))
            return self._socket.recv(CHUNK)
        except ValueError as error:
            # Closed by another thread.
            raise ConnectionAbortedError("closed") from error

    def close(self) -> None:
        """Closes it at once. A receive that is under way in another thread ends."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            # Of the plain socket: that of TLS would take from a reader what it reads with.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        except OSError:
            # It was not connected any more.
            pass
        self._socket.close()

    def _forked(self) -> None:
        """In a forked child: it is the parent's, and stays open there. A shutdown, or a farewell of TLS, would end it for both."""
        self._is_closed = True
        self._socket.close()

    def __del__(self) -> None:
        if not self._is_closed:
            self._socket.close()


class Signal:
    """Wakes whoever waits for something to change.

    Read `count`, look at what you wait for, and wait from that count on: what is told in between is not missed.
    """

    def __init__(self) -> None:
        # Another one after each change. Not a number and no lock for both: a handler of a signal may interrupt its own thread anywhere in
        # here, and a forked child may have no thread that would unlock it.
        self.count: object = object()
        self._waiting: list[threading.Lock] = []

    def notify(self) -> None:
        """Something changed. May be called from any thread, and from the handler of a signal."""
        self.count = object()
        for one in tuple(self._waiting):
            try:
                one.release()
            except RuntimeError:
                # It was woken before, and has not left yet.
                pass

    def wait(self, seen: object, timeout: float | None = None) -> None:
        """Until something changed since, or so many seconds have passed."""
        lock = threading.Lock()
        lock.acquire()
        self._waiting.append(lock)
        try:
            # After it is in the list: who notifies in between finds it there.
            if self.count is seen:
                lock.acquire(timeout=-1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX))
        finally:
            self._waiting.remove(lock)


class Task:
    """Work in the background."""

    def __init__(self, thread: threading.Thread) -> None:
        self._thread = thread

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """Threads cannot be ended: this does nothing."""

    def join(self) -> None:
        """Waits for its end."""
        self._thread.join()


def spawn(work: Callable[..., None], *arguments: Any) -> Task:
    """Begins work in the background. It does not keep the program from ending."""
    thread = threading.Thread(target=work, args=arguments, name=f"quorate-{work.__name__}", daemon=True)
    thread.start()
    return Task(thread)


def while_true(work: T, signal: Signal, holds: Callable[[], bool]) -> T | None:
    """The outcome of the work, which has bounded itself: here it is done already."""
    del signal, holds
    return work


def opening(start: Callable[[], T]) -> T:
    """Opens something now."""
    return start()
