"""Which node to ask next.

Owns what is known of the nodes: who leads, who failed lately, which of them are of another cluster. Pure: time comes in as an argument,
nothing is sent.

Ours is the cluster that the first answer names, until the client goes over to another one: at once when more than half of the given nodes,
where there are several, said last that they are of it; else after a *doubt* of ten seconds. Doubt begins with a foreign word of a given
node, goes on while given nodes repeat it, within five seconds each, and ends with any word of ours, whoever says it, also a member that was
discovered. Silence is no word: an idle client never goes over, and nobody is locked out by nodes that are gone.
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
# Pause between two looks at a node of another cluster, which may have been put right.
FOREIGN_PAUSE = 30.0
# Doubt of so long takes a client over to another cluster: the own one leads again sooner after most faults, and a restore takes longer.
DOUBT_MIN = 10.0
# Foreign words further apart begin a doubt anew: nobody can tell what was there between them.
DOUBT_GAP = 5.0


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


@dataclass(slots=True)
class Doubt:
    """A foreign word that given nodes say again and again, since nobody of our cluster said anything."""

    theirs: str
    since: float
    last: float


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
        # The id of ours.
        self.cluster: str | None = None
        # The clusters that given nodes named since ours was last heard; none while there is no doubt.
        self.doubts: list[Doubt] = []

    def discover(self, now: float) -> None:
        """Members are discovered from now on."""
        self.discover_at = now + DISCOVERY_FIRST

    def pick(self, preference: Preference, failed: int | None, now: float) -> int:
        """The node to ask now. `failed` has just failed this very request: it comes last.

        One of another cluster is not asked, unless it is the only one that was given, and no other is well.
        """
        reach = self._reach(now)
        leader = self.leader
        is_wanted = preference == "leader" and leader is not None and leader < reach and leader != failed
        if is_wanted and leader is not None and self._is_well(leader, now):
            return leader
        turn = [(self.next + step) % reach for step in range(reach)]
        turn = [node for node in turn if self._is_asked(node)]
        others = [node for node in turn if node != failed]
        well = [node for node in others if self._is_well(node, now)]
        if well:
            pick = well[0]
        elif others:
            pick = min(others, key=lambda node: self.nodes[node].avoid_until)
        else:
            # The one that failed. Where all that were given are of other clusters, one of them says so once more.
            pick = turn[0] if turn else self.next % self.given
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
        """Whether a node that says so is of our cluster. Nothing else that one of another says counts."""
        entry = self.nodes[node]
        entry.cluster = cluster
        if cluster == self.cluster:
            self.doubts.clear()
            return True
        is_given = node < self.given
        if self.cluster is None or (is_given and (self._doubt(cluster, now) >= DOUBT_MIN or self._has_majority(cluster))):
            self._go_over(cluster)
            return True
        entry.id = None
        self._find_leader()
        return False

    def _doubt(self, theirs: str, now: float) -> float:
        """A given node named another cluster than ours: for how long that goes on."""
        self.doubts = [doubt for doubt in self.doubts if now - doubt.last <= DOUBT_GAP]
        known = next((doubt for doubt in self.doubts if doubt.theirs == theirs), None)
        if known is None:
            known = Doubt(theirs, now, now)
            self.doubts.append(known)
        known.last = now
        return now - known.since

    def _has_majority(self, told: str) -> bool:
        """Whether more than half of the given nodes said this one last. A single node is no majority."""
        votes = sum(node.cluster == told for node in self.nodes[: self.given])
        return self.given > 1 and votes * 2 > self.given

    def _go_over(self, theirs: str) -> None:
        """Another cluster is ours from now on: terms, leaders and ids of the former say nothing any more."""
        self.cluster, self.term, self.leader_id = theirs, 0, None
        self.doubts.clear()
        for place, node in enumerate(self.nodes):
            if self.is_foreign(place):
                node.id = None
        self._find_leader()

    def is_foreign(self, node: int) -> bool:
        """Whether its last word was another cluster than ours."""
        return self.cluster is not None and self.nodes[node].cluster not in (None, self.cluster)

    def stranger(self) -> int | None:
        """While in doubt: a given node that says it is of another cluster."""
        if not self.doubts:
            return None
        theirs = self.doubts[-1].theirs
        return next((node for node in range(self.given) if self.nodes[node].cluster == theirs), None)

    def is_in_doubt(self, now: float) -> bool:
        """Whether the doubt goes on: another word now would be one without a gap."""
        return any(now - doubt.last <= DOUBT_GAP for doubt in self.doubts)

    def _is_asked(self, node: int) -> bool:
        """The only node that was given may be an address of several."""
        is_only = self.given == 1 and node == 0
        return not self.nodes[node].is_gone and (is_only or not self.is_foreign(node))

    def introduce(self, node: int, node_id: int, hint: LeaderHint) -> None:
        """A node said who it is."""
        self.nodes[node].id = node_id
        self.on_answer(node, hint)
        self._find_leader()

    def begin_introduction(self, now: float) -> bool:
        """Whether the nodes should be asked who they are now.

        A leader is known by an id that belongs to none of them, or a node was of another cluster. Says yes at most once a second, since the
        leader may well not be among the endpoints, and for a node of another cluster now and then while ours is heard.
        """
        is_stranger = self.leader_id is not None and self.leader is None and len(self.nodes) > 1
        has_foreign = any(self.is_foreign(place) and not node.is_gone for place, node in enumerate(self.nodes))
        pause = INTRODUCTION_PAUSE if is_stranger or self.doubts else FOREIGN_PAUSE
        is_rested = self.introduced_at is None or now - self.introduced_at >= pause
        begins = (is_stranger or has_foreign) and is_rested
        if begins:
            self.introduced_at = now
        return begins

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
        return self.nodes[node].avoid_until <= now and not self.is_foreign(node)

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
