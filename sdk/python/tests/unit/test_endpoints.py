from __future__ import annotations

import pytest

from quorate._endpoints import (
    DISCOVERY_FIRST,
    DISCOVERY_PAUSE,
    DOUBT_GAP,
    FOREIGN_PAUSE,
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


# --- another cluster -------------------------------------------------------------------------------------------------------------


def of_ours(given: int) -> Endpoints:
    """All given nodes said at the start that they are of ours."""
    endpoints = Endpoints(given, 0)
    for node in range(given):
        assert endpoints.is_ours(node, "ours", 0.0)
    return endpoints


def test_members_that_were_discovered_keep_a_client_of_one_node_with_its_cluster() -> None:
    endpoints = of_ours(1)
    for place, node_id in ((1, 2), (2, 3)):
        endpoints.add(node_id)
        assert endpoints.is_ours(place, "ours", 0.0)
    # The given node was founded anew. The others are asked in its place, and nothing else is said for an hour.
    for second in range(3_600, 3_660):
        assert not endpoints.is_ours(0, "theirs", second)
        member = endpoints.pick("any", None, second)
        assert member > 0
        assert endpoints.is_ours(member, "ours", second)


def test_one_address_of_several_nodes_does_not_move_a_client_that_calls_now_and_then() -> None:
    endpoints = of_ours(1)
    for second in range(30, 600, 30):
        assert not endpoints.is_ours(0, "theirs", second), "one of the nodes behind it was founded anew"
        assert endpoints.pick("any", 0, second) == 0
        assert endpoints.is_ours(0, "ours", second + 1)


@pytest.mark.parametrize("given", [3, 2])
def test_nodes_that_are_gone_lock_nobody_out(given: int) -> None:
    endpoints, last = of_ours(given), given - 1
    for second in range(100, 110):
        assert not endpoints.is_ours(last, "theirs", second)
        assert endpoints.stranger() == last
        endpoints.on_failure(0, second)
        assert endpoints.pick("any", 0, second) != last, "it is only asked who it is"
        assert endpoints.begin_introduction(second)
        assert not endpoints.begin_introduction(second)
    assert endpoints.is_ours(last, "theirs", 110)
    assert (endpoints.cluster, endpoints.stranger(), endpoints.pick("any", None, 110)) == ("theirs", None, last)


def test_a_gap_begins_the_doubt_anew() -> None:
    endpoints = of_ours(1)
    # There is a gap of six seconds.
    assert not any(endpoints.is_ours(0, "theirs", second) for second in (0, 5, 9, 15, 20, 24))
    assert endpoints.is_ours(0, "ours", 24), "which ends it"
    assert [endpoints.is_ours(0, "theirs", second) for second in (25, 30, 34, 35)] == [False, False, False, True]
    assert not endpoints.is_ours(0, "ours", 36), "which is not believed any more"


def test_doubts_of_two_clusters_do_not_end_each_other() -> None:
    endpoints = of_ours(1)
    assert not any(endpoints.is_ours(0, ("theirs", "another")[second % 2], second) for second in range(10))
    assert endpoints.is_ours(0, "theirs", 10)
    endpoints = of_ours(2)
    assert [endpoints.is_ours(node, told, 1) for node, told in ((0, "theirs"), (1, "another"))] == [False, False]
    assert endpoints.pick("any", 0, 1) in {0, 1}


def test_a_majority_of_the_given_nodes_takes_the_client_over_at_once() -> None:
    endpoints = of_ours(3)
    endpoints.introduce(0, 1, LeaderHint(80, 1))
    assert [endpoints.is_ours(node, "theirs", 1) for node in (2, 1)] == [False, True]
    assert (endpoints.term, endpoints.nodes[0].id, endpoints.is_foreign(0)) == (0, None, True), "they are none of ours"
    endpoints = of_ours(4)
    assert [endpoints.is_ours(node, "theirs", 1) for node in range(3)] == [False, False, True], "half is not most"
    endpoints = of_ours(2)
    endpoints.add(3)
    assert [endpoints.is_ours(node, "theirs", 1) for node in (2, 0)] == [False, False], "a discovered member has no say"


def test_a_node_of_another_cluster_is_only_asked_who_it_is() -> None:
    endpoints = of_ours(3)
    assert not endpoints.is_ours(2, "theirs", 0.0)
    assert endpoints.is_ours(0, "ours", 0.0)
    assert {endpoints.pick("any", None, 1_000) for _ in range(6)} == {0, 1}
    assert [endpoints.begin_introduction(second) for second in (0, FOREIGN_PAUSE - 1, FOREIGN_PAUSE)] == [True, False, True]
    single = of_ours(1)
    assert not single.begin_introduction(0.0)
    assert not single.is_ours(0, "theirs", 0.0)
    assert [single.begin_introduction(second) for second in (0, 0, INTRODUCTION_PAUSE)] == [True, False, True]
    assert [single.is_in_doubt(second) for second in (DOUBT_GAP, DOUBT_GAP + 0.1)] == [True, False]
