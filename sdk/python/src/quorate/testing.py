"""Real nodes for the tests of other programs.

A `TestCluster` starts `quorate-node` processes on free ports, with their data in a temporary directory, and ends them when it is closed.
The program is the one that `QUORATE_NODE` names, else the one on the `PATH`.

    with TestCluster() as cluster, cluster.client() as client:
        client.put("greeting", "hello")

With pytest there are fixtures, of the plugin `quorate.pytest_plugin`, which pytest finds by itself: `quorate_node` is a node for the whole
session of tests, `quorate_client` and `quorate_async_client` are clients of it, `quorate_cluster` is three nodes for one test.

Owns processes, ports and directories. Talks to the nodes as any client does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO

from quorate._async.client import AsyncClient
from quorate._ports import Ports
from quorate._sync.client import Client

# The environment variable that names the program of a node.
NODE_ENV = "QUORATE_NODE"
# How long nodes may take until they are ready, in seconds.
READY_WITHIN = 30.0
# How often new ports are tried when another program was faster.
PORT_TRIES = 5
# Lines of a log that an error shows.
LOG_LINES = 20


class TestClusterError(Exception):
    """There is no cluster to test with."""

    __test__ = False


class Node:
    """One process."""

    def __init__(self, command: list[str], address: str, home: Path, number: int) -> None:
        self.address = address
        self._command = command
        self._home = home
        self._log = home / f"node-{number}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        """Whether it was started and not killed."""
        return self._process is not None

    def start(self) -> None:
        """Starts it, without settings that the environment of the test might have for it."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("QUORATE_")}
        # A node that keeps nothing has its files there; nobody else removes them when it is killed.
        environment["TMPDIR"] = str(self._home)
        with self._log.open("ab") as log:
            self._process = self._spawn(log, environment)

    def _spawn(self, log: IO[bytes], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        except OSError as error:
            hint = f"name it in {NODE_ENV}, or put it on the PATH"
            raise TestClusterError(f"cannot start `{self._command[0]}` ({hint}): {error.strerror}") from error

    def check(self) -> None:
        """Refuses to go on if it has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise TestClusterError(f"a node ended at its start with {self._process.returncode}:\n{self.log_end()}")

    def log_end(self) -> str:
        """The last lines that it logged."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n".join(lines[-LOG_LINES:])

    def kill(self) -> None:
        """Ends it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class TestCluster:
    """A cluster of real nodes, ended when it is closed.

    Args:
        nodes: How many; one answers in a moment and keeps nothing beyond its process, three can lose one.
        program: The program of a node, whatever the environment says.
        node_args: Further arguments of each.
    """

    __test__ = False

    def __init__(self, nodes: int = 1, *, program: str | None = None, node_args: tuple[str, ...] = ()) -> None:
        self._program = program or os.environ.get(NODE_ENV) or "quorate-node"
        self._node_args = node_args
        self._home = Path(tempfile.mkdtemp(prefix="quorate-testing-"))
        self.nodes: list[Node] = []
        # No other test has these, even while a node is down.
        self._ports: Ports | None = None
        try:
            self._start(nodes)
        except BaseException:
            self.close()
            raise

    @property
    def endpoints(self) -> str:
        """The addresses of all nodes, as clients take them."""
        return ",".join(node.address for node in self.nodes)

    def client(self) -> Client:
        """A client of all nodes."""
        return Client(self.endpoints)

    def async_client(self) -> AsyncClient:
        """The same for asyncio."""
        return AsyncClient(self.endpoints)

    def kill(self, node: int) -> None:
        """Ends a node at once, as a crash does; nodes are counted from 0."""
        self.nodes[node].kill()

    def restart(self, node: int) -> None:
        """Starts a node again that was killed, with the data that it has; waits until all that run are ready."""
        self.nodes[node].kill()
        self.nodes[node].start()
        self._wait_ready()

    def close(self) -> None:
        """Ends all nodes and removes their data."""
        for node in self.nodes:
            node.kill()
        if self._ports is not None:
            self._ports.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self) -> TestCluster:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _start(self, count: int) -> None:
        for attempt in range(1, PORT_TRIES + 1):
            self.nodes = self._prepare(count, self._home / f"try-{attempt}")
            try:
                for node in self.nodes:
                    node.start()
                self._wait_ready()
                return
            except TestClusterError as error:
                for node in self.nodes:
                    node.kill()
                # Another program took a port between our look and the node's.
                if attempt == PORT_TRIES or "in use" not in str(error).lower():
                    raise

    def _prepare(self, count: int, home: Path) -> list[Node]:
        """Ports, directories and command lines; nothing runs yet."""
        if count < 1:
            raise TestClusterError("a cluster has at least one node")
        home.mkdir()
        ports = self._take_ports(2 * count)
        peers = ports[count:]
        join = ",".join(f"{number}=127.0.0.1:{port}" for number, port in enumerate(peers, 1))
        nodes: list[Node] = []
        for number, (client, peer) in enumerate(zip(ports[:count], peers, strict=True), 1):
            address = f"127.0.0.1:{client}"
            command = [self._program, "--client-listen", address, "--peer-listen", f"127.0.0.1:{peer}"]
            if count == 1:
                command += ["--dev"]
            else:
                command += ["--node-id", str(number), "--join", join, "--data-dir", str(home / f"node-{number}")]
                command += ["--ballast-bytes", "0", "--min-free-bytes", "0"]
            nodes.append(Node([*command, *self._node_args], address, home, number))
        return nodes

    def _take_ports(self, count: int) -> list[int]:
        """Others than those that the cluster had before."""
        try:
            ports = Ports(count)
        except OSError as error:
            raise TestClusterError(str(error)) from error
        if self._ports is not None:
            self._ports.close()
        self._ports = ports
        return ports.numbers

    def _wait_ready(self) -> None:
        """Waits until every node that runs would serve a linearizable read."""
        running = [node for node in self.nodes if node.runs]
        until = time.monotonic() + READY_WITHIN
        with Client(",".join(node.address for node in running), discover_members=False) as client:
            while not all(status.is_ready for status in client.wait_ready(timeout=0.2)):
                for node in running:
                    node.check()
                if time.monotonic() > until:
                    logs = "\n".join(node.log_end() for node in running)
                    raise TestClusterError(f"the nodes are not ready after {READY_WITHIN:.0f} s:\n{logs}")
