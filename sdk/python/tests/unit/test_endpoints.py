from __future__ import annotations

import pytest

from quorate._endpoints import (
    DISCOVERY_FIRST,
    DISCOVERY_PAUSE,
    INTRODUCTION_PAUSE,
    Endpoint,
    Endpoints,
    LeaderHint,
    is_clear,
    is_reachable,
    parse_endpoints,
)
from quorate.errors import InvalidRequestError


def introduced(count: int) -> Endpoints:
    endpoints = Endpoints(count, 0)
    for node in range(count):
        endpoints.introduce(node, node + 1, LeaderHint(1, 1))
    return endpoints


def test_a_list_says_by_which_way_each_node_is_reached() -> None:
    assert parse_endpoints("a:1, https://b:2/,http://[::1]:3,a:1", prefers_tls=False) == [
        Endpoint("a", 1, False),
        Endpoint("b", 2, True),
        Endpoint("::1", 3, False),
    ]
    assert parse_endpoints(["a:1"], prefers_tls=True)[0].is_tls
    assert parse_endpoints("unix:7100", prefers_tls=False)[0].host == "unix"
    assert Endpoint("::1", 3, False).address == "[::1]:3"


def test_a_unix_socket_is_an_endpoint_of_this_machine() -> None:
    socket, other = parse_endpoints("unix:/run/quorate.sock,unix:///run/quorate.sock,a:1", prefers_tls=True)
    assert (socket.socket, socket.address, socket.authority) == ("/run/quorate.sock", "unix:/run/quorate.sock", "localhost")
    assert (socket.is_tls, other.is_tls) == (False, True)
    assert is_reachable("127.0.0.1:7101", [socket])
    # What the socket is says nothing of the way to others.
    assert not is_clear([socket, other], prefers_tls=False)
    assert [is_clear([socket], prefers_tls=prefers) for prefers in (True, False)] == [False, True]


@pytest.mark.parametrize(
    "bad",
    [
        "",
        " , ",
        "a",
        "a:",
        ":1",
        "a:x",
        "a:70000",
        "a:0",
        "https://",
        "u@a:1",
        "a/b:1",
        "unix:",
        "unix:a.sock",
        "unix:/",
        "unix://a/b",
        "unix:/a/",
    ],
)
def test_what_is_no_endpoint_is_refused(bad: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse_endpoints(bad, prefers_tls=False)


def test_writes_go_to_the_leader_and_reads_to_all_in_turn() -> None:
    endpoints = introduced(3)
    assert {endpoints.pick("leader", None, 0.0) for _ in range(5)} == {0}
    assert [endpoints.pick("any", None, 0.0) for _ in range(4)] == [0, 1, 2, 0]


def test_a_node_that_failed_is_left_alone_for_a_while() -> None:
    endpoints = introduced(3)
    endpoints.on_failure(0, 0.0)
    assert endpoints.leader is None
    assert 0 not in {endpoints.pick("any", None, 0.05) for _ in range(6)}
    assert 0 in {endpoints.pick("any", None, 0.2) for _ in range(6)}


def test_who_failed_this_very_request_comes_last() -> None:
    endpoints = introduced(2)
    assert endpoints.pick("leader", 0, 0.0) == 1
    assert Endpoints(1, 0).pick("leader", 0, 0.0) == 0


def test_an_older_term_says_nothing_of_the_leader() -> None:
    endpoints = introduced(3)
    endpoints.on_answer(1, LeaderHint(5, 3))
    endpoints.on_answer(1, LeaderHint(4, 2))
    assert endpoints.leader == 2


def test_nodes_are_asked_for_their_ids_when_the_leader_is_a_stranger() -> None:
    endpoints = Endpoints(3, 1)
    assert not endpoints.begin_introduction(0.0)
    endpoints.on_answer(1, LeaderHint(2, 9))
    assert endpoints.begin_introduction(0.0)
    assert not endpoints.begin_introduction(0.5)
    assert endpoints.begin_introduction(INTRODUCTION_PAUSE)


def test_discovered_members_are_asked_only_while_a_given_node_is_not_well() -> None:
    endpoints = introduced(2)
    endpoints.add(7)
    assert {endpoints.pick("any", None, 0.0) for _ in range(6)} == {0, 1}
    endpoints.on_failure(0, 0.0)
    assert {endpoints.pick("any", None, 0.05) for _ in range(6)} == {1, 2}
    endpoints.retain([1, 2])
    assert {endpoints.pick("any", None, 0.05) for _ in range(6)} == {1}


def test_members_are_looked_for_soon_after_the_start_and_after_a_failure() -> None:
    endpoints = Endpoints(2, 0)
    assert not endpoints.begin_discovery(100.0)
    endpoints.discover(0.0)
    assert not endpoints.begin_discovery(0.0)
    assert endpoints.begin_discovery(DISCOVERY_FIRST)
    assert not endpoints.begin_discovery(DISCOVERY_FIRST + 1)
    endpoints.on_failure(0, DISCOVERY_FIRST + 1)
    assert endpoints.begin_discovery(DISCOVERY_FIRST * 2 + 1)
    assert DISCOVERY_PAUSE > DISCOVERY_FIRST


@pytest.mark.parametrize(
    ("advertised", "given", "expected"),
    [
        ("10.0.0.1:1", "10.0.0.2", True),
        ("127.0.0.1:1", "10.0.0.2", False),
        ("127.0.0.1:1", "localhost", True),
        ("0.0.0.0:1", "127.0.0.1", False),
        (":1", "10.0.0.2", False),
        ("node-2.example:1", "10.0.0.2", True),
    ],
)
def test_an_address_of_the_node_s_own_machine_means_nothing_elsewhere(advertised: str, given: str, expected: bool) -> None:
    assert is_reachable(advertised, [Endpoint(given, 1, False)]) is expected
