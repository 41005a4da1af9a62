"""What loads a cluster, and what one such run came to: rate, latencies, and what the servers took of the processors for it.

Owns the commands of both load generators (`quorate bench` and `etcd-bench`), and the figures of one run. Never compares runs.
"""

import json
import statistics
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from clusters import Etcd
from shell import fail, run

# How clients speak: to Quorate, and to etcd beside it.
WAYS = {
    "native": "all clients share a stream to each of Quorate's nodes; etcd's speak gRPC, 16 to a connection",
    "http": "HTTP/1.1, a connection for each client: Quorate's API, and etcd's JSON gateway",
    "etcd": "etcd's gRPC, 16 clients to a connection, to both",
}


@dataclass(frozen=True)
class Load:
    """What clients do: `operation` is one that the load generators know."""

    operation: str
    clients: int
    seconds: float
    way: str = "native"
    keys: int = 10_000
    value_size: int = 256
    # Which of the nodes clients connect to, "all" or "leader".
    target: str = "leader"


@dataclass(frozen=True)
class Generators:
    """Where the load generators are."""

    quorate: Path
    etcd_bench: Path | None

    def command(self, cluster, load):
        if load.way == "native" and not isinstance(cluster, Etcd):
            return [
                *(self.quorate / "quorate", "--endpoints", cluster.endpoints(), "--output", "json", "bench"),
                *("--clients", load.clients, "--mix", f"{load.operation}=100", "--duration", f"{round(1000 * load.seconds)}ms"),
                *("--value-size", load.value_size, "--keys", load.keys),
            ]
        protocol = "grpc" if load.way != "http" else "gateway" if isinstance(cluster, Etcd) else "http"
        return [
            *(self.etcd_bench, "--endpoints", cluster.endpoints(), "--protocol", protocol, "--op", load.operation),
            *("--clients", load.clients, "--seconds", load.seconds, "--value-size", load.value_size),
            *("--keys", load.keys, "--target", load.target),
        ]


class CpuMeter(threading.Thread):
    """Notes the processor time of a cluster ten times a second."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.samples, self.done = cluster, [], threading.Event()

    def run(self):
        while not self.done.wait(0.1):
            self.samples.append((time.monotonic(), self.cluster.cpu_seconds()))

    def used_per_second(self, begin, end):
        """Processor seconds per second between two times: without what a load generator does before it measures."""
        within = [sample for sample in self.samples if begin <= sample[0] <= end]
        if len(within) < 2:
            fail("the measurement was too short to tell processor time; take more --seconds")
        (first, before), (last, after) = within[0], within[-1]
        return (after - before) / (last - first)


def measure(generators, cluster, load, is_filled=False, is_quiet=True):
    """One run of a load generator. `is_filled` says that the keys which a read needs were written before."""
    meter = CpuMeter(cluster)
    meter.start()
    command = generators.command(cluster, load) + (["--no-fill"] if is_filled else [])
    output = run(command, stderr=subprocess.DEVNULL if is_quiet else None)
    end = time.monotonic()
    meter.done.set()
    meter.join()
    result = json.loads(output)
    if result["errors"]:
        fail(f"{cluster.name}: operations failed, which a healthy cluster must not: {result['errors']}")
    kind = result["kinds"][load.operation]
    cpu = meter.used_per_second(end - 0.9 * load.seconds, end - 0.05 * load.seconds)
    figures = {
        "per_second": kind["ops_per_s"],
        "p50_ms": kind["p50"] / 1e3,
        "p99_ms": kind["p99"] / 1e3,
        "cpu_micros": 1e6 * cpu / max(kind["ops_per_s"], 1),
    }
    if "p9999" in kind:
        figures |= {"p9999_ms": kind["p9999"] / 1e3, "each_second": result["per_second"]}
    return figures


def medians(rounds):
    """The median of each figure that is one number."""
    numbers = [field for field, value in rounds[0].items() if isinstance(value, (int, float))]
    return {field: statistics.median(result[field] for result in rounds) for field in numbers}


def ratio(ours, theirs, field):
    """The median of what the first system's figure is of the second's in the same round."""
    return statistics.median(one[field] / other[field] for one, other in zip(ours, theirs, strict=True))
