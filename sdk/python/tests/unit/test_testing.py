"""The helper for tests of other programs, as far as it needs no node."""

import socket

from quorate.testing import PORTS_FROM, free_ports


def test_ports_are_none_that_outgoing_connections_get() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        given: int = server.getsockname()[1]
        ports = free_ports(8)
    assert len(set(ports)) == 8
    assert all(PORTS_FROM <= port < max(given, PORTS_FROM + 1_000) for port in ports), (ports, given)
