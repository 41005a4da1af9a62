#!/usr/bin/env python3
"""A cluster that can be hurt, for the common suite of the clients.

Starts nodes with a TCP proxy of its own before each client port, and prints one line of JSON on standard output once the
cluster serves: {"endpoints": ["http://127.0.0.1:PORT", ...], "control": "http://127.0.0.1:PORT"}. The endpoints are the
proxies; the nodes advertise them to clients, too. Ends, with all that it started, at the end of standard input or SIGTERM.

The control port takes POST, JSON in and out. README.md beside this file lists the faults.

Owns the processes, the ports, the temporary directory and the faults. Knows of HTTP/1.1 only where a request begins and
ends, so that one can be held back, or the answer to one cut off. Needs Python 3.10 and nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from ports import Ports  # noqa: E402

# How long nodes may take until they serve, and a new leader until it leads.
READY_WITHIN = 60.0
# Pause between two looks at what is waited for.
LOOK_EVERY = 0.03
# Longest head of a request or an answer.
HEAD_MAX = 64 * 1024
CHUNK = 64 * 1024
# How often new ports are tried when another program was faster.
PORT_TRIES = 5
# How long a request may take to come that is to be held back, and after it went on, its answer.
HELD_WITHIN = 10.0
ANSWERED_WITHIN = 1.0
# History is short, so that a file can wait until a revision is compacted: nodes look for it every five seconds.
HISTORY = ["--history-keep-ms", "3000", "--history-keep-revisions", "300"]


class ClusterError(Exception):
    """The cluster does not do what was asked of it."""


class Hold:
    """One request that is to be held back on its way, or the answer to it."""

    def __init__(self, number: int, what: str) -> None:
        if number < 1 or what not in ("request", "answer"):
            raise ClusterError("`request` counts from 1, and `what` is `request` or `answer`")
        # How many requests are still to come, with that one.
        self.to_come = number
        self.is_answer = what == "answer"
        # What is held: method and path. It is there, goes on, and was answered.
        self.held: dict[str, Any] = {}
        self.is_there = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.is_answered = asyncio.Event()

    async def keep(self) -> None:
        """It is there, and waits until it is let go."""
        self.is_there.set()
        await self.goes_on.wait()


class Faults:
    """What goes wrong next on the way between clients and nodes."""

    def __init__(self) -> None:
        self.hold: Hold | None = None
        self.answers_lost = 0
        self.connections_refused = 0
        # What was done since the last reset.
        self.used = {"answers_lost": 0, "connections_refused": 0}
        self.flows = asyncio.Event()
        self.flows.set()
        self._release: asyncio.TimerHandle | None = None

    def take_lost_answer(self) -> bool:
        """Whether the answer at hand is one to lose."""
        if self.answers_lost == 0:
            return False
        self.answers_lost -= 1
        self.used["answers_lost"] += 1
        return True

    def take_refusal(self) -> bool:
        """Whether the connection at hand is one to refuse."""
        if self.connections_refused == 0:
            return False
        self.connections_refused -= 1
        self.used["connections_refused"] += 1
        return True

    def take_hold(self, connection: Connection) -> Hold | None:
        """What holds the request at hand back, or its answer."""
        if self.hold is None or not connection.can_hold or self.hold.to_come == 0:
            return None
        self.hold.to_come -= 1
        if self.hold.to_come > 0:
            return None
        self.hold.held = {"method": connection.method, "path": connection.path}
        return self.hold

    async def held(self) -> dict[str, Any]:
        """Waits until it is there."""
        if self.hold is None:
            raise ClusterError("nothing is to be held back")
        try:
            await asyncio.wait_for(self.hold.is_there.wait(), HELD_WITHIN)
        except asyncio.TimeoutError as error:
            raise ClusterError(f"it did not come; {self.hold.to_come} requests are missing") from error
        return self.hold.held

    async def let_go(self) -> None:
        """Lets it go on, however late it is; a request that is answered at once has been by then."""
        await self.held()
        hold, self.hold = self.hold, None
        assert hold is not None
        hold.goes_on.set()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(hold.is_answered.wait(), ANSWERED_WITHIN)

    def block(self, seconds: float) -> None:
        """Holds every byte back for so long."""
        self.unblock()
        self.flows.clear()
        self._release = asyncio.get_running_loop().call_later(seconds, self.flows.set)

    def unblock(self) -> None:
        """Lets everything pass again."""
        if self._release is not None:
            self._release.cancel()
            self._release = None
        self.flows.set()

    def reset(self) -> None:
        """Nothing goes wrong any more."""
        if self.hold is not None:
            self.hold.goes_on.set()
            self.hold = None
        self.answers_lost = 0
        self.connections_refused = 0
        self.used = dict.fromkeys(self.used, 0)
        self.unblock()


@dataclass(eq=False)
class Connection:
    """One connection of a client, and what is asked on it."""

    client: asyncio.StreamWriter
    # The way on to the node; not there at once.
    node: asyncio.StreamWriter | None = None
    # The request that is being answered, or will be.
    method: str = ""
    path: str = ""
    # What its answer is for, if that was or is to be held back.
    hold: Hold | None = None

    @property
    def is_stream(self) -> bool:
        """Whether a watch or an observer is on it."""
        return self.method == "GET" and (self.path == "/v1/watch" or self.path.endswith("/observe"))

    @property
    def can_lose(self) -> bool:
        """Whether an answer on it counts as one to lose: renewals of sessions come at any time and do not."""
        return self.method not in ("", "GET", "HEAD") and not self.path.endswith("/renew")

    @property
    def can_hold(self) -> bool:
        """Whether a request on it counts as one to hold back: what clients ask by themselves at any time does not."""
        is_own = self.path.endswith("/renew") or self.path.startswith("/v1/cluster/")
        return self.method != "" and not (is_own or self.is_stream)

    def abort(self) -> None:
        """Closes both ends at once."""
        for writer in (self.client, self.node):
            if writer is not None:
                writer.transport.abort()


class Proxy:
    """The way of clients to one node."""

    def __init__(self, node_port: int, faults: Faults) -> None:
        self.node_port = node_port
        # Where connections lead; the node, unless its address is another's.
        self.target = node_port
        self.faults = faults
        self.connections: set[Connection] = set()
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Takes a free port and listens there."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_MAX)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Listens no more and closes what is open."""
        if self._server is not None:
            self._server.close()
        self.cut(lambda _: True)

    def lead_to(self, port: int) -> None:
        """From now on its address is that of what listens there."""
        if port != self.target:
            self.target = port
            self.cut(lambda _: True)

    def cut(self, which: Callable[[Connection], bool]) -> int:
        """Closes those connections; how many."""
        chosen = [connection for connection in self.connections if which(connection)]
        for connection in chosen:
            connection.abort()
        return len(chosen)

    async def _serve(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        if self.faults.take_refusal():
            client_out.transport.abort()
            return
        # From now on, so that a cut misses none that a client has.
        connection = Connection(client_out)
        self.connections.add(connection)
        try:
            node_in, connection.node = await asyncio.open_connection("127.0.0.1", self.target, limit=HEAD_MAX)
            if not client_out.is_closing():
                await self._pass_both(connection, client_in, node_in)
        except OSError:
            # As from a machine where nothing listens: the node is down.
            return
        finally:
            self.connections.discard(connection)
            connection.abort()

    async def _pass_both(
        self, connection: Connection, client_in: asyncio.StreamReader, node_in: asyncio.StreamReader
    ) -> None:
        ways = [
            asyncio.ensure_future(self._requests(connection, client_in)),
            asyncio.ensure_future(self._answers(connection, node_in)),
        ]
        try:
            # A client that has said all still hears the answer; a node that has said all has ended the connection.
            await ways[1]
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _requests(self, connection: Connection, source: asyncio.StreamReader) -> None:
        """Passes request after request on, and notes which one is under way."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                head = await source.readuntil(b"\r\n\r\n")
                method, target = head.decode("latin-1").split(" ", 2)[:2]
                connection.method, connection.path = method, target.partition("?")[0]
                headers = dict(
                    (name.strip().lower(), value.strip())
                    for name, _, value in (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
                )
                if "chunked" in headers.get("transfer-encoding", "").lower():
                    await self._forward(connection.node, head)
                    await self._chunks(connection, source)
                else:
                    await self._request(connection, source, head, int(headers.get("content-length", "0")))
        if connection.node.can_write_eof():
            with contextlib.suppress(OSError):
                connection.node.write_eof()

    async def _request(self, connection: Connection, source: asyncio.StreamReader, head: bytes, size: int) -> None:
        hold = self.faults.take_hold(connection)
        if hold is None:
            await self._forward(connection.node, head)
            await self._exactly(connection, source, size)
        else:
            # Whole before it is held: whoever sent it may be gone when it goes on.
            await self._held(connection, hold, head + await source.readexactly(size))

    async def _held(self, connection: Connection, hold: Hold, data: bytes) -> None:
        connection.hold = hold
        if hold.is_answer:
            await self._forward(connection.node, data)
            return
        await hold.keep()
        await self._forward(connection.node, data)
        # The node is not told meanwhile that its client is gone.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(hold.is_answered.wait(), ANSWERED_WITHIN)

    async def _chunks(self, connection: Connection, source: asyncio.StreamReader) -> None:
        while True:
            line = await source.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            # On a stream of operations each is a request.
            hold = self.faults.take_hold(connection) if size > 0 and connection.path == "/v1/ops" else None
            if hold is not None:
                await self._held(connection, hold, line + await source.readexactly(size + 2))
                continue
            await self._forward(connection.node, line)
            if size == 0:
                break
            await self._exactly(connection, source, size + 2)
        # Trailers, up to the empty line.
        while True:
            line = await source.readuntil(b"\r\n")
            await self._forward(connection.node, line)
            if line == b"\r\n":
                return

    async def _exactly(self, connection: Connection, source: asyncio.StreamReader, size: int) -> None:
        while size > 0:
            data = await source.read(min(size, CHUNK))
            if not data:
                raise asyncio.IncompleteReadError(b"", size)
            await self._forward(connection.node, data)
            size -= len(data)

    async def _answers(self, connection: Connection, source: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            opening = False
            while data := await source.read(CHUNK):
                # The head by which a node agrees to a stream of operations answers none of them.
                opening = self._is_stream_head(connection, data)
                if not opening and connection.can_lose and self.faults.take_lost_answer():
                    return
                if connection.hold is not None and not opening:
                    hold, connection.hold = connection.hold, None
                    if hold.is_answer:
                        await hold.keep()
                    hold.is_answered.set()
                await self._forward(connection.client, data)

    @staticmethod
    def _is_stream_head(connection: Connection, data: bytes) -> bool:
        return (
            connection.path == "/v1/ops"
            and data.startswith(b"HTTP/1.1 200")
            and b"application/x-ndjson" in data.lower()
            # Nothing behind it: the end of a stream looks the same.
            and data.find(b"\r\n\r\n") == len(data) - 4
        )

    async def _forward(self, target: asyncio.StreamWriter, data: bytes) -> None:
        await self.faults.flows.wait()
        target.write(data)
        await target.drain()


@dataclass(eq=False)
class Node:
    """One process of the cluster."""

    number: int
    command: list[str]
    log: Path
    proxy: Proxy
    process: asyncio.subprocess.Process | None = None
    is_paused: bool = False
    resume: asyncio.TimerHandle | None = field(default=None, repr=False)

    @property
    def runs(self) -> bool:
        """Whether the process is there."""
        return self.process is not None and self.process.returncode is None

    @property
    def data(self) -> Path:
        """Its data directory, beside its log."""
        return self.log.with_suffix("")

    async def start(self, home: Path) -> None:
        """Starts it."""
        self.process = await self._spawn(home)

    async def run(self, *verb: str) -> None:
        """Runs another verb of its program with its settings, and waits for the end."""
        process = await self._spawn(self.log.parent, *verb)
        if await process.wait() != 0:
            raise ClusterError(f"`{' '.join(verb)}` failed\n{self.log_end()}")

    async def _spawn(self, home: Path, *verb: str) -> asyncio.subprocess.Process:
        """Its program with its settings, and none that the environment might have for it."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("QUORATE_")}
        environment["TMPDIR"] = str(home)
        program, *settings = self.command
        with self.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                program, *verb, *settings, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )

    async def kill(self) -> None:
        """Ends it as a crash does."""
        self.wake()
        if self.runs:
            assert self.process is not None
            self.process.kill()
            await self.process.wait()

    def pause(self, seconds: float) -> None:
        """Stops it for so long."""
        assert self.process is not None
        self.wake()
        self.process.send_signal(signal.SIGSTOP)
        self.is_paused = True
        self.resume = asyncio.get_running_loop().call_later(seconds, self.wake)

    def wake(self) -> None:
        """Lets it go on if it is paused."""
        if self.resume is not None:
            self.resume.cancel()
            self.resume = None
        if self.is_paused and self.runs:
            assert self.process is not None
            self.process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def log_end(self) -> str:
        """The last lines that it logged."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-20:])


class Cluster:
    """All nodes, their proxies and what can be done to them."""

    def __init__(self, program: str, count: int, home: Path, extra: list[str]) -> None:
        self.program, self.count, self.home, self.extra = program, count, home, extra
        self.faults = Faults()
        self.nodes: list[Node] = []
        # A cluster of its own, once one was asked for.
        self.stranger: Node | None = None
        # No other test has these, even while a node is down.
        self.ports: list[Ports] = []
        # Who started us is the client.
        self.client = os.getppid()

    async def start(self) -> None:
        """Starts all nodes and waits until they serve."""
        for attempt in range(1, PORT_TRIES + 1):
            await self._prepare(self.home / f"try-{attempt}")
            try:
                await asyncio.gather(*(node.start(self.home) for node in self.nodes))
                await self._wait("the nodes serve", self._all_serve)
                return
            except ClusterError as error:
                # Another program took a port between our look and the node's.
                if attempt == PORT_TRIES or "in use" not in str(error):
                    raise
                await self.stop()

    async def stop(self) -> None:
        """Ends all processes and listeners."""
        if self.stranger is not None:
            await self.stranger.kill()
            self.stranger = None
        for node in self.nodes:
            await node.proxy.stop()
            await node.kill()
        while self.ports:
            self.ports.pop().close()

    def _take_ports(self, count: int) -> list[int]:
        self.ports.append(Ports(count))
        return self.ports[-1].numbers

    async def _prepare(self, home: Path) -> None:
        home.mkdir()
        ports = self._take_ports(2 * self.count)
        clients, peers = ports[: self.count], ports[self.count :]
        join = ",".join(f"{number}=127.0.0.1:{port}" for number, port in enumerate(peers, 1))
        self.nodes = []
        for number, (client, peer) in enumerate(zip(clients, peers, strict=True), 1):
            proxy = Proxy(client, self.faults)
            await proxy.start()
            command = [self.program, "--node-id", str(number), "--data-dir", str(home / f"node-{number}")]
            command += ["--client-listen", f"127.0.0.1:{client}", "--client-advertise", f"127.0.0.1:{proxy.port}"]
            command += ["--peer-listen", f"127.0.0.1:{peer}", "--join", join]
            command += ["--ballast-bytes", "0", "--min-free-bytes", "0", *HISTORY, *self.extra]
            self.nodes.append(Node(number, command, home / f"node-{number}.log", proxy))

    async def _wait(self, what: str, look: Callable[[], Awaitable[Any]]) -> Any:
        until = time.monotonic() + READY_WITHIN
        while not (found := await look()):
            if time.monotonic() > until:
                raise ClusterError(f"not within {READY_WITHIN:.0f} s: {what}\n{self._logs()}")
            await asyncio.sleep(LOOK_EVERY)
        return found

    def _logs(self) -> str:
        return "\n".join(f"--- node {node.number}\n{node.log_end()}" for node in self.nodes)

    async def _all_serve(self) -> bool:
        running = [node for node in self.nodes if node.runs]
        if not running or any(node.process is None for node in self.nodes) or len(running) * 2 <= self.count:
            raise ClusterError(f"a node ended by itself\n{self._logs()}")
        answers = await asyncio.gather(*(ask(node.proxy.node_port, "/readyz") for node in running))
        return all(answer is not None and answer[0] == 200 for answer in answers)

    async def leader(self, other_than: Node | None = None) -> Node:
        """The node that leads, of the highest term that a node which runs tells of."""

        async def look() -> Node | None:
            asked = [node for node in self.nodes if node.runs and not node.is_paused and node is not other_than]
            answers = await asyncio.gather(*(ask(node.proxy.node_port, "/v1/cluster/status") for node in asked))
            known = [json.loads(answer[1]) for answer in answers if answer is not None and answer[0] == 200]
            known = [status for status in known if status.get("leader_id") is not None]
            if not known:
                return None
            newest = max(known, key=lambda status: int(status["term"]))
            leader = next((node for node in self.nodes if node.number == newest["leader_id"]), None)
            if leader is None or leader is other_than or not leader.runs:
                return None
            ready = await ask(leader.proxy.node_port, "/readyz")
            return leader if ready is not None and ready[0] == 200 else None

        return await self._wait("a node leads", look)

    async def control(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """Does one thing to the cluster."""
        match name:
            case "lose_answer":
                self.faults.answers_lost = int(body.get("times", 1))
            case "refuse":
                self.faults.connections_refused = int(body.get("times", 1))
            case "hold":
                self.faults.hold = Hold(int(body.get("request", 1)), body["what"])
            case "held":
                return await self.faults.held()
            case "let_go":
                await self.faults.let_go()
            case "used":
                return self.faults.used
            case "block":
                self.faults.block(int(body["ms"]) / 1000)
            case "kill_leader":
                leader = await self.leader()
                await leader.kill()
                return {"node": leader.number, "leader": (await self.leader(other_than=leader)).number}
            case "pause_leader":
                leader = await self.leader()
                leader.pause(int(body["ms"]) / 1000)
                return {"node": leader.number}
            case "suspend":
                await self._suspend(int(body["ms"]) / 1000, bool(body.get("cut")))
            case "foreign":
                return await self._foreign(body.get("node"))
            case "restore":
                return await self._restore()
            case "restart":
                return {"nodes": await self._restart()}
            case "cut":
                return {"cut": sum(node.proxy.cut(lambda _: True) for node in self.nodes)}
            case "cut_watches":
                return {"cut": sum(node.proxy.cut(lambda one: one.is_stream) for node in self.nodes)}
            case "reset":
                self.faults.reset()
                for node in self.nodes:
                    node.wake()
                    node.proxy.lead_to(node.proxy.node_port)
                return {"nodes": await self._restart()}
            case _:
                raise ClusterError(f"there is no fault `{name}`")
        return {}

    async def _suspend(self, seconds: float, cut: bool) -> None:
        """Stops the process of the client for so long. It hears the answer once it goes on."""
        os.kill(self.client, signal.SIGSTOP)
        try:
            if cut:
                for node in self.nodes:
                    node.proxy.cut(lambda _: True)
            await asyncio.sleep(seconds)
        finally:
            os.kill(self.client, signal.SIGCONT)

    async def _foreign(self, number: int | None) -> dict[str, Any]:
        """From now on the address of this node, or of the leader, is that of a node of another cluster, which leads there."""
        if self.stranger is None:
            client, peer = self._take_ports(2)
            command = [self.program, "--dev", "--client-listen", f"127.0.0.1:{client}"]
            command += ["--peer-listen", f"127.0.0.1:{peer}"]
            self.stranger = Node(0, command, self.home / "stranger.log", Proxy(client, self.faults))
            await self.stranger.start(self.home)
        stranger = self.stranger

        async def serves() -> bool:
            if not stranger.runs:
                raise ClusterError(f"the node of another cluster ended by itself\n{stranger.log_end()}")
            answer = await ask(stranger.proxy.node_port, "/readyz")
            return answer is not None and answer[0] == 200

        await self._wait("the node of another cluster serves", serves)
        node = await self.leader() if number is None else self.nodes[number - 1]
        node.proxy.lead_to(stranger.proxy.node_port)
        return {"node": node.number}

    async def _restore(self) -> dict[str, Any]:
        """Exchanges the cluster for one that is made of a backup of it, at the same addresses."""
        status, backup = await exchange((await self.leader()).proxy.node_port, "/v1/cluster/backup")
        if status != 200:
            raise ClusterError(f"there is no backup: {status} {backup[:1000]!r}")
        for node in self.nodes:
            await node.kill()
            shutil.rmtree(node.data)
        file = self.home / "backup"
        file.write_bytes(backup)
        first = self.nodes[0]
        await first.run("restore", "--from", str(file))
        return {"nodes": await self._restart()}

    async def _restart(self) -> list[int]:
        down = [node for node in self.nodes if not node.runs]
        for node in down:
            await node.start(self.home)
        await self._wait("the nodes serve", self._all_serve)
        return [node.number for node in down]


async def ask(port: int, path: str) -> tuple[int, bytes] | None:
    """One GET; `None` where no whole answer came."""
    try:
        return await asyncio.wait_for(exchange(port, path), timeout=3)
    except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, ValueError, IndexError):
        return None


async def exchange(port: int, path: str) -> tuple[int, bytes]:
    """One GET on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nRequest-Timeout: 2000\r\n\r\n".encode())
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        return int(head.split(b" ")[1]), await reader.read()
    finally:
        writer.transport.abort()


class Control:
    """The port on which a test does things to the cluster, one after the other."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.port = 0
        self._one_at_a_time = asyncio.Lock()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Takes a free port and listens there."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_MAX)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            status, answer = await self._handle(reader)
            body = json.dumps(answer).encode() + b"\n"
            head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # Whoever asked has gone.
            pass
        finally:
            writer.close()

    async def _handle(self, reader: asyncio.StreamReader) -> tuple[int, dict[str, Any]]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = next(
            (int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0
        )
        body = await reader.readexactly(length)
        method, target = head.split(" ", 2)[:2]
        if method != "POST":
            return 405, {"error": "POST only"}
        try:
            async with self._one_at_a_time:
                return 200, await self.cluster.control(target.strip("/"), json.loads(body or b"{}"))
        except (ClusterError, KeyError, TypeError, ValueError) as error:
            return 500, {"error": f"{type(error).__name__}: {error}"}


async def end_of_input() -> None:
    """Returns at the end of standard input."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(CHUNK):
        pass


async def run(cluster: Cluster) -> None:
    """Serves until standard input ends or a signal comes."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    endings = [asyncio.ensure_future(end_of_input()), asyncio.ensure_future(stopped.wait())]
    serving = asyncio.ensure_future(serve(cluster))
    try:
        await asyncio.wait([*endings, serving], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            await serving
            await asyncio.wait(endings, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in [*endings, serving]:
            task.cancel()
        await asyncio.gather(*endings, serving, return_exceptions=True)
        await cluster.stop()


async def serve(cluster: Cluster) -> None:
    """Starts everything and says where it is."""
    await cluster.start()
    control = Control(cluster)
    await control.start()
    endpoints = [f"http://127.0.0.1:{node.proxy.port}" for node in cluster.nodes]
    print(json.dumps({"endpoints": endpoints, "control": f"http://127.0.0.1:{control.port}"}), flush=True)


def node_program() -> str:
    """The program that QUORATE_NODE names, else the one built in this repository, else the one on the PATH."""
    if named := os.environ.get("QUORATE_NODE"):
        return named
    built = Path(__file__).resolve().parents[2] / "target/debug/quorate-node"
    if built.exists():
        return str(built)
    if found := shutil.which("quorate-node"):
        return found
    raise ClusterError("there is no quorate-node: name it in QUORATE_NODE, build it, or put it on the PATH")


def main() -> int:
    """Runs the cluster until it is told to end."""
    parser = argparse.ArgumentParser(description="A cluster that can be hurt, for the common suite of the clients.")
    parser.add_argument("--nodes", type=int, default=3, help="how many (default 3)")
    parser.add_argument("--keep", action="store_true", help="leave logs and data behind, and say where")
    parser.add_argument("node_args", nargs="*", metavar="-- ARG", help="further arguments of the nodes, after --")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="quorate-conformance-"))
    try:
        asyncio.run(run(Cluster(node_program(), options.nodes, home, options.node_args)))
    except ClusterError as error:
        print(f"cluster.py: {error}", file=sys.stderr)
        return 1
    finally:
        if options.keep:
            print(f"cluster.py: logs and data are in {home}", file=sys.stderr)
        else:
            shutil.rmtree(home, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
