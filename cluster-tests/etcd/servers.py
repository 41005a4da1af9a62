#!/usr/bin/env python3
"""Owns a cluster of real servers, Quorate's or etcd's, whose nodes a suite kills and starts again.

usage: servers.py up quorate|etcd PROGRAM DIRECTORY [NODES]   starts it, prints the addresses of its clients with commas between
       servers.py kill DIRECTORY N                            SIGKILL for node N, counted from 1
       servers.py start DIRECTORY N                           starts node N again, and waits until it serves
       servers.py leader DIRECTORY                            prints which node leads
       servers.py down DIRECTORY                              kills all
       servers.py hold DIRECTORY                              the same once it gets SIGTERM

Data, logs and `servers.json`, which says what runs, are in DIRECTORY.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
from ports import Ports  # noqa: E402

PATIENCE = 60


def quorate_commands(program, directory, clients, peers):
    members = ",".join(f"{id}={peer}" for id, peer in enumerate(peers, 1))
    for id, (client, peer) in enumerate(zip(clients, peers), 1):
        yield [program, "--node-id", str(id), "--data-dir", f"{directory}/data-{id}", "--client-listen", client,
               "--peer-listen", peer, "--join", members]


def etcd_commands(program, directory, clients, peers):
    members = ",".join(f"n{id}=http://{peer}" for id, peer in enumerate(peers, 1))
    for id, (client, peer) in enumerate(zip(clients, peers), 1):
        yield [program, "--name", f"n{id}", "--data-dir", f"{directory}/data-{id}", "--listen-client-urls", f"http://{client}",
               "--advertise-client-urls", f"http://{client}", "--listen-peer-urls", f"http://{peer}",
               "--initial-advertise-peer-urls", f"http://{peer}", "--initial-cluster", members, "--log-level", "warn"]


COMMANDS = {"quorate": quorate_commands, "etcd": etcd_commands}


def fetch(address, path, body=None):
    """The JSON at a path, or None where the node does not answer with 200."""
    request = urllib.request.Request(f"http://{address}{path}", None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=2) as answer:
            text = answer.read()
    except OSError:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace")


class Servers:
    """What runs in a directory. Each method leaves `servers.json` as things are."""

    def __init__(self, directory):
        self.file = os.path.join(directory, "servers.json")
        self.directory = directory
        with open(self.file) as file:
            state = json.load(file)
        self.kind, self.nodes = state["kind"], state["nodes"]
        # Given to the nodes that are started with it, so that the ports are theirs as long as one of them lives.
        self.ports = None

    @classmethod
    def up(cls, kind, program, directory, count=3):
        os.makedirs(directory, exist_ok=True)
        ports = Ports(2 * count)
        addresses = [f"127.0.0.1:{port}" for port in ports.numbers]
        clients, peers = addresses[:count], addresses[count:]
        commands = COMMANDS[kind](program, directory, clients, peers)
        nodes = [{"client": client, "command": command, "pid": None} for client, command in zip(clients, commands)]
        with open(os.path.join(directory, "servers.json"), "w") as file:
            json.dump({"kind": kind, "nodes": nodes}, file)
        servers = cls(directory)
        servers.ports = ports
        try:
            for number in range(1, count + 1):
                servers._spawn(number)
            for number in range(1, count + 1):
                servers.wait(number)
        except BaseException:
            servers.down()
            raise
        return servers

    def addresses(self):
        return [node["client"] for node in self.nodes]

    def _save(self):
        with open(self.file + ".new", "w") as file:
            json.dump({"kind": self.kind, "nodes": self.nodes}, file)
        os.replace(self.file + ".new", self.file)

    def _spawn(self, number):
        node = self.nodes[number - 1]
        held = [holder.fileno() for holder in self.ports.holders] if self.ports else []
        with open(os.path.join(self.directory, f"log-{number}"), "ab") as log:
            process = subprocess.Popen(node["command"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                       pass_fds=held)
        node["pid"] = process.pid
        self._save()

    def serves(self, number):
        """Whether a node serves linearizable reads; one of Quorate knows by then what all of its members know."""
        address = self.nodes[number - 1]["client"]
        if self.kind == "etcd":
            answer = fetch(address, "/health")
            return bool(answer) and answer.get("health") == "true"
        status = fetch(address, "/readyz") is not None and fetch(address, "/v1/cluster/status")
        return bool(status) and status["level"] == status["level_known"]

    def wait(self, number):
        deadline = time.monotonic() + PATIENCE
        while not self.serves(number):
            if time.monotonic() > deadline or not alive(self.nodes[number - 1]["pid"]):
                with open(os.path.join(self.directory, f"log-{number}"), errors="replace") as log:
                    sys.stderr.write("".join(log.readlines()[-15:]))
                raise SystemExit(f"node {number} does not get ready; the end of its log is above")
            time.sleep(0.05)

    def leader(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for number, node in enumerate(self.nodes, 1):
                answer = node["pid"] and fetch(node["client"], "/v3/maintenance/status", {})
                if answer and answer.get("leader", "0") == answer["header"]["member_id"]:
                    return number
            time.sleep(0.05)
        raise SystemExit("no node leads")

    def kill(self, number):
        node = self.nodes[number - 1]
        if node["pid"]:
            end(node["pid"])
        node["pid"] = None
        self._save()

    def start(self, number):
        self._spawn(number)
        self.wait(number)

    def down(self):
        for number in range(1, len(self.nodes) + 1):
            self.kill(number)


def alive(pid):
    """Whether a thread of the process runs: its first may be over while others still hold its ports."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return False
    return any(state(f"/proc/{pid}/task/{thread}/stat") not in "ZX" for thread in threads)


def state(path):
    try:
        with open(path) as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def end(pid):
    """Kills a process and waits until it is gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    while alive(pid):
        time.sleep(0.01)


def hold(directory):
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    signal.sigwait(signals)
    Servers(directory).down()


def main(arguments):
    match arguments:
        case ["up", ("quorate" | "etcd") as kind, program, directory, *count] if len(count) < 2:
            print(",".join(Servers.up(kind, os.path.abspath(program), os.path.abspath(directory), *map(int, count)).addresses()))
        case ["kill", directory, number]:
            Servers(directory).kill(int(number))
        case ["start", directory, number]:
            Servers(directory).start(int(number))
        case ["leader", directory]:
            print(Servers(directory).leader())
        case ["down", directory]:
            Servers(directory).down()
        case ["hold", directory]:
            hold(directory)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
