"""The helper for tests of other programs, as far as it needs no node."""

import socket

from quorate._ports import BLOCK, PORTS_FROM, Ports


def test_ports_are_none_that_outgoing_connections_get() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        given: int = server.getsockname()[1]
        ports = Ports(20)
        ports.close()
    assert len(set(ports.numbers)) == 20
    assert all(PORTS_FROM <= port < max(given, PORTS_FROM + 1_000) for port in ports.numbers), (ports.numbers, given)


def test_ports_that_are_held_are_nobody_elses_though_nobody_listens_there() -> None:
    held, others = Ports(1), Ports(0)
    port = held.numbers[0]
    others._claim(port - (port - PORTS_FROM) % BLOCK)
    assert others.numbers == []
    socket.create_server(("127.0.0.1", port)).close()
    held.close()
