"""Clusters of three processes, Quorate's and etcd's: how they are started, killed and asked, and what they take of the machine.

Owns processes and ports. Never loads a cluster: see `loads`.
"""

import base64
import http.client
import json
import os
import subprocess
import time
from pathlib import Path

from ports import Ports
from shell import fail

NODES = 3
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
# What a write may take before it is sent again when a leader was killed; the same for both systems.
FAILOVER_TRY_SECONDS = 0.25
FAILOVER_SECONDS_MAX = 30


class Cluster:
    """Three processes. The systems differ in how they are started and asked."""

    name = ""

    def __init__(self, home):
        self.home = home / self.name
        self.home.mkdir()
        # No other program of ours has these: a killed node must find its port free when it comes back.
        self.ports = Ports(2 * NODES)
        self.client_ports, self.peer_ports = self.ports.numbers[:NODES], self.ports.numbers[NODES:]
        self.processes = [None] * NODES
        for index in range(NODES):
            self.start(index)
        self.wait_until_whole()

    def start(self, index):
        log = open(self.home / f"{index + 1}.log", "ab")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("QUORATE_", "ETCD_"))}
        command = self.command(index)
        self.processes[index] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=clean)

    def kill(self, index):
        self.processes[index].kill()
        self.processes[index].wait()

    def stop(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.ports.close()

    def endpoints(self):
        return ",".join(f"127.0.0.1:{port}" for port in self.client_ports)

    def request(self, index, method, path, body=None, headers=None, timeout=2.0):
        """The status and the body of an answer; (None, reason) without one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.client_ports[index], timeout=timeout)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError as error:
            return None, str(error)
        except http.client.HTTPException as error:
            return None, repr(error)
        finally:
            connection.close()

    def wait_until_whole(self, seconds_max=FAILOVER_SECONDS_MAX):
        """Waits until every node takes a write and has caught up: a linearizable read is answered from its own state."""
        deadline = time.monotonic() + seconds_max
        for index in range(NODES):
            while not (self.write(index, f"ready-{index}", 2.0) and self.read(index)):
                if self.processes[index].poll() is not None:
                    fail(f"{self.name}: node {index + 1} has ended; its log: {self.tail(index)}")
                if time.monotonic() > deadline:
                    fail(f"{self.name}: node {index + 1} takes no write; its log: {self.tail(index)}")
                time.sleep(0.02)

    def tail(self, index):
        lines = (self.home / f"{index + 1}.log").read_text(errors="replace").splitlines()
        return "\n".join(["", *lines[-10:]])

    def leader(self):
        deadline = time.monotonic() + FAILOVER_SECONDS_MAX
        while time.monotonic() < deadline:
            for index in range(NODES):
                if self.is_leader(index):
                    return index
            time.sleep(0.02)
        fail(f"{self.name}: no leader")

    def cpu_seconds_each(self):
        return [cpu_seconds(process.pid) for process in self.processes]

    def cpu_seconds(self):
        return sum(self.cpu_seconds_each())

    def memory_bytes(self):
        """Resident memory of the node that has most."""
        return max(int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * PAGE for process in self.processes)

    def disk_bytes(self):
        """Bytes that all nodes had written to disks since they were started."""
        return sum(disk_bytes(process.pid) for process in self.processes)

    def failover_seconds(self, number):
        """Kills the leader; returns how long it took until a write through a survivor was acknowledged."""
        leader = self.leader()
        survivor = (leader + 1 + number % 2) % NODES
        begin = time.monotonic()
        self.kill(leader)
        while not self.write(survivor, f"failover-{number}", FAILOVER_TRY_SECONDS):
            if time.monotonic() - begin > FAILOVER_SECONDS_MAX:
                fail(f"{self.name}: no write for {FAILOVER_SECONDS_MAX} s after its leader was killed")
        taken = time.monotonic() - begin
        self.start(leader)
        self.wait_until_whole()
        return taken


def cpu_seconds(pid):
    """User and system time of a process. Its name, in brackets, may hold blanks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def disk_bytes(pid):
    """Bytes that a process had written to disks."""
    fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(fields["write_bytes"])


class Quorate(Cluster):
    name = "Quorate"

    def __init__(self, home, programs):
        self.programs = programs
        super().__init__(home)

    def command(self, index):
        members = ",".join(f"{number + 1}=127.0.0.1:{port}" for number, port in enumerate(self.peer_ports))
        return [
            *(self.programs / "quorate-node", "--node-id", str(index + 1), "--data-dir", self.home / str(index + 1)),
            *("--client-listen", f"127.0.0.1:{self.client_ports[index]}"),
            *("--peer-listen", f"127.0.0.1:{self.peer_ports[index]}", "--join", members),
        ]

    def is_leader(self, index):
        status, body = self.request(index, "GET", "/v1/cluster/status")
        return status == 200 and json.loads(body)["role"] == "leader"

    def write(self, index, request_id, timeout):
        headers = {"Idempotency-Key": request_id, "Request-Timeout": "10000"}
        status, _ = self.request(index, "PUT", "/v1/kv/bench-failover", b'"x"', headers, timeout)
        return status is not None and 200 <= status < 300

    def read(self, index):
        return self.request(index, "GET", "/v1/kv/bench-failover")[0] in (200, 404)


class OtherBuild(Quorate):
    name = "other"


class Etcd(Cluster):
    name = "etcd"

    def __init__(self, home, binary):
        self.binary = binary
        super().__init__(home)

    def command(self, index):
        peer, client = f"http://127.0.0.1:{self.peer_ports[index]}", f"http://127.0.0.1:{self.client_ports[index]}"
        members = ",".join(f"n{number + 1}=http://127.0.0.1:{port}" for number, port in enumerate(self.peer_ports))
        return [
            *(self.binary, "--name", f"n{index + 1}", "--data-dir", self.home / str(index + 1), "--log-level", "warn"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", members, "--initial-cluster-state", "new", "--quota-backend-bytes", str(8 << 30)),
        ]

    def is_leader(self, index):
        status, body = self.request(index, "POST", "/v3/maintenance/status", b"{}")
        if status != 200:
            return False
        answer = json.loads(body)
        return answer.get("leader") == answer["header"]["member_id"]

    def write(self, index, _request_id, timeout):
        text = base64.b64encode(b"bench-failover").decode()
        body = json.dumps({"key": text, "value": text}).encode()
        status, _ = self.request(index, "POST", "/v3/kv/put", body, timeout=timeout)
        return status == 200

    def read(self, index):
        body = json.dumps({"key": base64.b64encode(b"bench-failover").decode()}).encode()
        return self.request(index, "POST", "/v3/kv/range", body)[0] == 200
