"""Which node to ask next.

Owns what is known of the nodes: who leads, who failed lately. Pure: time comes in as an argument, nothing is sent.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from quorate._lists import listed
from quorate._requests import Preference
from quorate.errors import InvalidRequestError

# How long a node is left alone after its first failure; doubles with each further one, up to a longest time.
AVOID_MIN = 0.1
AVOID_MAX = 3.0
# Pause between two rounds of asking the nodes who they are.
INTRODUCTION_PAUSE = 1.0
# Pause between two looks at who the members are; the first comes once a client has lived a little.
DISCOVERY_PAUSE = 30.0
DISCOVERY_FIRST = 1.0
# How long a node of another cluster is not asked at all: somebody has to put it right first.
FOREIGN_PAUSE = 30.0
# A client of one endpoint goes over to the cluster that it hears there when it heard nothing of its own for so long: several nodes may
# stand behind the one address, and an outage of a restore takes longer.
FORGET_CLUSTER = 10.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One of the nodes that a client was given: `host:port`, and whether it is reached by TLS; or a Unix socket."""

    host: str
    port: int
    is_tls: bool
    # The path of the socket, by which the node of this machine is reached.
    socket: str | None = None

    @property
    def address(self) -> str:
        """`host:port`, as a URL has it, or `unix:/path`."""
        return self.authority if self.socket is None else f"unix:{self.socket}"

    @property
    def authority(self) -> str:
        """What `Host` says: who is asked."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.socket is not None else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class LeaderHint:
    """What every answer says about the cluster, in its headers."""

    term: int = 0
    leader_id: int | None = None


def parse_endpoints(given: str | list[str], prefers_tls: bool) -> list[Endpoint]:
    """The nodes of a list, or of a text with commas. `prefers_tls` is for those that do not say."""
    items = [item for item in given.split(",") if item.strip()] if isinstance(given, str) else listed(given, str, "endpoints")
    endpoints: list[Endpoint] = []
    for item in (item.strip() for item in items):
        if not item:
            # Of a variable that is not set, for instance: the others alone may be the wrong ones.
            raise InvalidRequestError("no endpoint is given in one place of the list; expected host:port")
        endpoint = parse_endpoint(item, prefers_tls)
        if all(known.address != endpoint.address for known in endpoints):
            endpoints.append(endpoint)
    if not endpoints:
        raise InvalidRequestError("no endpoint is given; expected host:port,host:port,…")
    return endpoints


def parse_endpoint(item: str, prefers_tls: bool) -> Endpoint:
    """One node."""
    if item.startswith("unix:/"):
        return parse_socket(item)
    is_tls, address = prefers_tls, item
    for scheme, tls in (("https://", True), ("http://", False)):
        if item.startswith(scheme):
            is_tls, address = tls, item[len(scheme) :]
    host, colon, port = address.rstrip("/").rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65_536 or set("@/") & set(address.rstrip("/")):
        raise InvalidRequestError(f"`{item}` is not an endpoint: expected host:port or unix:/path")
    return Endpoint(host, int(port), is_tls)


def parse_socket(item: str) -> Endpoint:
    """A Unix socket, `unix:/path` or `unix:///path`: never by TLS, since the mode of the file says who may speak there."""
    path = item.removeprefix("unix:")
    if path.startswith("//"):
        path = path[2:]
    if not path.startswith("/") or path.endswith("/") or "\0" in path:
        raise InvalidRequestError(f"`{item}` is not an endpoint: expected unix:/path/to/socket")
    if not hasattr(socket, "AF_UNIX"):
        raise InvalidRequestError(f"`{item}`: this Python knows no Unix sockets")
    return Endpoint("localhost", 0, False, path)


def is_clear(given: list[Endpoint], prefers_tls: bool) -> bool:
    """Whether a request to another member than those given could be read by others on its way.

    Sockets say nothing of it; without anything else it is as the client prefers.
    """
    ways = [endpoint.is_tls for endpoint in given if endpoint.socket is None]
    return not (all(ways) if ways else prefers_tls)


def is_reachable(advertised: str, given: list[Endpoint]) -> bool:
    """Whether an address that a member advertises can mean the same to us: one of its own machine does only if ours is that."""
    host = advertised.rpartition(":")[0]
    if not host or is_ip(host, "is_unspecified"):
        return False
    return not is_local(host) or any(is_local(endpoint.host) for endpoint in given)


def is_local(host: str) -> bool:
    return host == "localhost" or is_ip(host, "is_loopback")


def is_ip(host: str, kind: str) -> bool:
    try:
        return bool(getattr(ipaddress.ip_address(host.strip("[]")), kind))
    except ValueError:
        return False


@dataclass(slots=True)
class Node:
    """What is known of a node."""

    id: int | None = None
    failures: int = 0
    avoid_until: float = 0.0
    # No member any more. Never of a node that was given.
    is_gone: bool = False
    # The id of its cluster, as it said last.
    cluster: str | None = None


class Endpoints:
    """The nodes, by their place in the list: those that were given, then members that were discovered.

    Discovered ones are asked only while not every given one is well, so that a client of one node stays with it.
    """

    def __init__(self, count: int, start: int) -> None:
        self.nodes = [Node() for _ in range(count)]
        self.given = count
        # Highest term seen; what older terms say of the leader is ignored.
        self.term = 0
        self.leader_id: int | None = None
        # The leader's place, where it is in the list.
        self.leader: int | None = None
        self.next = start % count
        self.introduced_at: float | None = None
        # When to look for members; `None`: never.
        self.discover_at: float | None = None
        # The id of the cluster that most of the given nodes say, each by its last word, so that a client follows them through a restore.
        # One that was believed stays where as many speak for it as for another. Members that were discovered have no say.
        self.cluster: str | None = None
        # When a given node last spoke for it.
        self.cluster_heard = 0.0

    def discover(self, now: float) -> None:
        """Members are discovered from now on."""
        self.discover_at = now + DISCOVERY_FIRST

    def pick(self, preference: Preference, failed: int | None, now: float) -> int:
        """The node to ask now. `failed` has just failed this very request: it comes last."""
        reach = self._reach(now)
        leader = self.leader
        is_wanted = preference == "leader" and leader is not None and leader < reach and leader != failed
        if is_wanted and leader is not None and self._is_well(leader, now):
            return leader
        turn = [(self.next + step) % reach for step in range(reach)]
        turn = [node for node in turn if not self.nodes[node].is_gone and not self._is_left_alone(node, now)]
        others = [node for node in turn if node != failed]
        well = [node for node in others if self._is_well(node, now)]
        if well:
            pick = well[0]
        elif others:
            pick = min(others, key=lambda node: self.nodes[node].avoid_until)
        else:
            # The one that failed: a given node that speaks for our cluster is neither gone nor left alone.
            pick = turn[0]
        self.next = (pick + 1) % reach
        return pick

    def on_answer(self, node: int, hint: LeaderHint) -> None:
        """A node answered."""
        self.nodes[node].failures = 0
        self.nodes[node].avoid_until = 0.0
        self._hear(hint)

    def on_failure(self, node: int, now: float) -> None:
        """A node could not be reached, broke off, or cannot serve."""
        entry = self.nodes[node]
        entry.avoid_until = now + min(AVOID_MIN * 2.0 ** min(entry.failures, 8), AVOID_MAX)
        entry.failures += 1
        # It may have been replaced.
        if self.discover_at is not None:
            self.discover_at = min(self.discover_at, now + DISCOVERY_FIRST)
        if self.leader == node:
            self.leader = None
            self.leader_id = None

    def is_ours(self, node: int, cluster: str, now: float) -> bool:
        """Whether a node that says so is of our cluster. One of another is left alone for a while, unless no other was given."""
        entry = self.nodes[node]
        entry.cluster = cluster
        if node < self.given:
            self._count_vote(cluster, now)
        if not self._says_other(node):
            return True
        entry.id = None
        if self.given > 1:
            entry.avoid_until = now + FOREIGN_PAUSE
        self._find_leader()
        return False

    def _count_vote(self, told: str, now: float) -> None:
        """Goes over to the cluster that a given node told, where it is ours now: terms and leaders of the former say nothing any more."""

        def votes(cluster: str | None) -> int:
            return sum(node.cluster == cluster for node in self.nodes[: self.given])

        if self.cluster is None:
            is_over = True
        elif self.given == 1:
            is_over = told != self.cluster and now - self.cluster_heard >= FORGET_CLUSTER
        else:
            is_over = votes(told) > votes(self.cluster)
        if is_over and told != self.cluster:
            self.cluster, self.term, self.leader_id = told, 0, None
            self._find_leader()
        if told == self.cluster:
            self.cluster_heard = now

    def _says_other(self, node: int) -> bool:
        """Whether its last word was another cluster than ours."""
        return self.cluster is not None and self.nodes[node].cluster not in (None, self.cluster)

    def _is_left_alone(self, node: int, now: float) -> bool:
        return self.given > 1 and self._says_other(node) and not self._is_well(node, now)

    def introduce(self, node: int, node_id: int, hint: LeaderHint) -> None:
        """A node said who it is."""
        self.nodes[node].id = node_id
        self.on_answer(node, hint)
        self._find_leader()

    def begin_introduction(self, now: float) -> bool:
        """Whether the nodes should be asked for their ids now: a leader is known by an id that belongs to none of them.

        Says yes at most once a second, since the leader may well not be among the endpoints.
        """
        is_stranger = self.leader_id is not None and self.leader is None
        is_rested = self.introduced_at is None or now - self.introduced_at >= INTRODUCTION_PAUSE
        if is_stranger and is_rested and len(self.nodes) > 1:
            self.introduced_at = now
            return True
        return False

    def begin_discovery(self, now: float) -> bool:
        """Whether to look now who the members are."""
        if self.discover_at is None or self.discover_at > now:
            return False
        self.discover_at = now + DISCOVERY_PAUSE
        return True

    @property
    def discovers(self) -> bool:
        """Whether members are discovered."""
        return self.discover_at is not None

    def is_known(self, node_id: int) -> bool:
        """Whether one of the nodes is known to be this member. If it was gone, it is back."""
        known = [node for node in self.nodes if node.id == node_id]
        for node in known:
            node.is_gone = False
        return bool(known)

    def add(self, node_id: int) -> None:
        """A member was discovered, and has the next place."""
        self.nodes.append(Node(id=node_id))
        self._find_leader()

    def retain(self, members: list[int]) -> None:
        """These are all members: discovered ones that are none any more are gone."""
        for node in self.nodes[self.given :]:
            node.is_gone = node.id not in members
        self._find_leader()

    def _reach(self, now: float) -> int:
        """How many nodes, from the first, may be asked."""
        all_well = all(self._is_well(node, now) for node in range(self.given))
        return self.given if all_well else len(self.nodes)

    def _is_well(self, node: int, now: float) -> bool:
        return self.nodes[node].avoid_until <= now

    def _hear(self, hint: LeaderHint) -> None:
        is_news = hint.leader_id is not None and hint.leader_id != self.leader_id
        if hint.term < self.term or (hint.term == self.term and not is_news):
            return
        self.term = hint.term
        self.leader_id = hint.leader_id
        self._find_leader()

    def _find_leader(self) -> None:
        places = [place for place, node in enumerate(self.nodes) if node.id is not None and not node.is_gone]
        self.leader = next((place for place in places if self.nodes[place].id == self.leader_id), None)
