"""Connections, waiting and background work, on asyncio. `quorate._sync._io` is the same with threads.

Owns all that the two clients do not have in common. Everything else is written once.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from quorate._fork import tell_in_child

T = TypeVar("T")
# Bytes that come in before they are taken.
BUFFER_MAX = 256 * 1024
# How long a node is asked to hold an answer back to a question that can be taken back.
LONG_POLL = 30.0


def now() -> float:
    """Seconds of a monotonic clock."""
    return time.monotonic()


async def sleep(seconds: float) -> None:
    """Does nothing for so long."""
    await asyncio.sleep(seconds)


def loop_here() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs here, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class AsyncConnection(asyncio.Protocol):
    """A connection to a node. It belongs to the event loop in which it was opened: no other one can use it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._error: Exception | None = None
        self._is_paused = False
        tell_in_child(self, AsyncConnection._drop)

    @classmethod
    async def open(cls, host: str, port: int, tls: ssl.SSLContext | None, timeout: float) -> AsyncConnection:
        """Connects.

        Raises:
            TimeoutError: It took longer.
            OSError: It did not work.
        """
        name = host if tls is not None else None
        return await cls._opened(asyncio.get_running_loop().create_connection(cls, host, port, ssl=tls, server_hostname=name), timeout)

    @classmethod
    async def open_socket(cls, path: str, timeout: float) -> AsyncConnection:
        """Connects to a Unix socket; fails as `open` does."""
        return await cls._opened(asyncio.get_running_loop().create_unix_connection(cls, path), timeout)

    @classmethod
    async def _opened(cls, opening: Coroutine[Any, Any, tuple[Any, AsyncConnection]], timeout: float) -> AsyncConnection:
        try:
            _, connection = await asyncio.wait_for(opening, timeout)
        except asyncio.TimeoutError as error:
            raise TimeoutError(f"no connection within {timeout:.2f} s") from error
        return connection

    @property
    def is_here(self) -> bool:
        """Whether it can be used, or be closed, by who asks: it is of the loop that runs here, or its own one is closed."""
        return self._loop is loop_here() or self._loop.is_closed()

    @property
    def is_dead(self) -> bool:
        """Whether a connection on which nothing is under way is of no more use."""
        return self._ended or bool(self._buffer) or self._loop is not loop_here()

    async def send(self, data: bytes, timeout: float) -> None:
        """Sends all of it."""
        del timeout  # What does not fit into the socket is sent in the background; the answer has the deadline.
        self._check_loop()
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the connection is closed")
        self._transport.write(data)

    async def receive(self, timeout: float) -> bytes:
        """What came; nothing at the end.

        Raises:
            TimeoutError: Nothing came.
            OSError: The connection broke.
        """
        if not self._buffer and not self._ended:
            self._check_loop()
            await self._wait(timeout)
        if self._buffer:
            data = bytes(self._buffer)
            self._buffer.clear()
            self._resume()
            return data
        if self._error is not None:
            raise self._error
        return b""

    def close(self) -> None:
        """Closes it at once. A receive that is under way ends."""
        if self._ended and self._transport is None:
            return
        if self._loop is loop_here():
            self._abort()
        elif self._loop.is_closed():
            # Nobody is there to do it.
            self._drop()
        else:
            try:
                self._loop.call_soon_threadsafe(self._abort)
            except RuntimeError:
                # It was closed at this moment.
                self._drop()

    def _drop(self) -> None:
        """Lets go of the connection without telling the event loop, or anybody else.

        In a forked child the connection is the parent's, and so is what its loop watches files with: to take this one off there would
        take it off for both. So it is exchanged for nothing under its number, which the transport closes one day.
        """
        transport, self._transport = self._transport, None
        self._ended, self._error = True, ConnectionAbortedError("closed")
        opened = None if transport is None else transport.get_extra_info("socket")
        # One that is closed has no number.
        file = -1 if opened is None else opened.fileno()
        if file >= 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, file, inheritable=False)
            os.close(nothing)

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._end(ConnectionAbortedError("closed"))

    def _check_loop(self) -> None:
        if self._loop is not loop_here():
            raise ConnectionAbortedError("it is of another event loop")

    async def _wait(self, timeout: float) -> None:
        self._waiter = self._loop.create_future()
        timer = self._loop.call_later(max(timeout, 0), self._expire, self._waiter)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    @staticmethod
    def _expire(waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_exception(TimeoutError("nothing came"))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _end(self, error: Exception | None) -> None:
        if not self._ended:
            self._ended, self._error = True, error
        self._wake()

    def _resume(self) -> None:
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Of `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Of `asyncio.Protocol`."""
        self._buffer += data
        if len(self._buffer) > BUFFER_MAX and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """Of `asyncio.Protocol`."""
        self._end(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Of `asyncio.Protocol`."""
        self._end(exc)


class AsyncSignal:
    """Wakes whoever waits for something to change.

    Read `count`, look at what you wait for, and wait from that count on: what is told in between is not missed.
    """

    def __init__(self) -> None:
        # Another one after each change. Not a number: who counts can be interrupted by another thread, or by the handler of a signal.
        self.count: object = object()
        self._waiters: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        """Something changed. May be called from any thread, and from the handler of a signal."""
        self.count = object()
        for waiter in tuple(self._waiters):
            try:
                # Also wakes a loop that waits for files, and knows nothing of a handler of a signal.
                waiter.get_loop().call_soon_threadsafe(self._pass, waiter)
            except RuntimeError:
                # Its loop is closed.
                pass

    async def wait(self, seen: object, timeout: float | None = None) -> None:
        """Until something changed since, or so many seconds have passed."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.add(waiter)
        timer = None if timeout is None else loop.call_later(max(timeout, 0), self._pass, waiter)
        try:
            # After it is in the list: who notifies in between finds it there.
            if self.count is seen:
                await waiter
        finally:
            self._waiters.discard(waiter)
            if timer is not None:
                timer.cancel()

    @staticmethod
    def _pass(waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_result(None)


class AsyncTask:
    """Work in the background."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    @property
    def is_done(self) -> bool:
        """Whether it has ended, or can never go on, since its event loop is closed."""
        return self._task.done() or self._task.get_loop().is_closed()

    def cancel(self) -> None:
        """Ends it at its next wait. Threads cannot be ended: in the blocking client this does nothing."""
        self._task.cancel()

    async def join(self) -> None:
        """Waits for its end."""
        await asyncio.wait([self._task])


# The loop keeps only weak references to tasks.
_running: set[asyncio.Task[None]] = set()


def spawn(work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> AsyncTask:
    """Begins work in the background."""
    task = asyncio.get_running_loop().create_task(work(*arguments))
    _running.add(task)
    task.add_done_callback(_running.discard)
    return AsyncTask(task)


async def while_true(work: Coroutine[Any, Any, T], signal: AsyncSignal, holds: Callable[[], bool]) -> T | None:
    """The outcome of the work; `None`, and the work is ended, once something does not hold any more, which `signal` tells.

    In the blocking client work is not ended by others, and bounds itself.
    """
    task = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_until_not(signal, holds))
    try:
        await asyncio.wait([task, watching], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        return None
    finally:
        for one in (task, watching):
            one.cancel()
        await asyncio.gather(task, watching, return_exceptions=True)


async def _until_not(signal: AsyncSignal, holds: Callable[[], bool]) -> None:
    while True:
        seen = signal.count
        if not holds():
            return
        await signal.wait(seen)


class Closeable(Protocol):
    """What is closed at the end of an `async with`."""

    async def __aenter__(self) -> Any:
        """The thing itself."""

    async def __aexit__(self, *exc: object) -> None:
        """Closes it."""


C = TypeVar("C", bound=Closeable)


class Opening(Generic[C]):
    """Something that is opened when it is awaited, or for an `async with`, or for an `async for`."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, C]]) -> None:
        self._start = start
        self._opened: C | None = None

    def __await__(self) -> Any:
        return self._start().__await__()

    async def __aenter__(self) -> C:
        self._opened = await self._start()
        return await self._opened.__aenter__()

    async def __aexit__(self, *exc: object) -> None:
        assert self._opened is not None
        await self._opened.__aexit__(*exc)


def opening(start: Callable[[], Coroutine[Any, Any, C]]) -> Opening[C]:
    """Opens something later. In the blocking client: now."""
    return Opening(start)
