"""Ports of this machine that are a test's own as long as it holds them.

Owns the choice of ports, for `quorate.testing` and for the tools of Quorate's repository, which load this file by itself: it needs nothing
but the standard library. The helpers in other languages choose alike. Never gives a port of outgoing connections: one of these could have
it before a node listens there, or while a node is down, and a node that dials a peer at such a port could even reach itself.

Ports lie in blocks. A listener at the first of a block holds the others: they are nobody else's then, though nobody listens there. The
system ends that with the process, however it ends.
"""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

# Blocks lie from here up to the ports of outgoing connections, which begin at the second one if the system does not say otherwise.
PORTS_FROM, OUTGOING_FROM = 10_000, 32_768
# Ports of a block, with the first.
BLOCK = 8


class Ports:
    """This many ports of 127.0.0.1, all different, that nobody listens at and no other test is given until this is closed.

    Attributes:
        numbers: The ports.
        holders: The listeners that hold them; a process that inherits these holds them, too.
    """

    def __init__(self, count: int) -> None:
        self.numbers: list[int] = []
        self.holders: list[socket.socket] = []
        highest = max(outgoing_from(), PORTS_FROM + 1_000)
        blocks = range(PORTS_FROM, highest - BLOCK + 1, BLOCK)
        for first in random.SystemRandom().sample(blocks, len(blocks)):
            if len(self.numbers) >= count:
                break
            self._claim(first)
        if len(self.numbers) < count:
            self.close()
            raise OSError(f"there are not {count} free ports from {PORTS_FROM} to {highest}")
        del self.numbers[count:]

    def _claim(self, first: int) -> None:
        """Takes the block with this first port, unless it is another's, without the ports that other programs listen at."""
        try:
            self.holders.append(socket.create_server(("127.0.0.1", first)))
        except OSError:
            return
        for port in range(first + 1, first + BLOCK):
            with contextlib.suppress(OSError), socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
                self.numbers.append(port)

    def close(self) -> None:
        """Gives them back."""
        for holder in self.holders:
            holder.close()


def outgoing_from() -> int:
    """The first port that the system gives to outgoing connections."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return OUTGOING_FROM
