#!/usr/bin/env python3
"""Owns what etcd's benchmark is run for, and the table of what it says.

usage: bench.py run PROGRAM ADDRESSES SCALE FILE     runs all, writes the numbers to FILE
       bench.py show NAME FILE [NAME FILE]...        prints a table of them, with a column for each NAME
"""

import base64
import json
import re
import subprocess
import sys
import urllib.request

# Name, and arguments; `total` is multiplied by the scale.
MANY = ["--clients=100", "--conns=10"]
# The mixed transactions read from a key to the end of all, so they come before there is much.
RUNS = [
    ("mixed txn, 50 clients", ["--clients=50", "--conns=5", "txn-mixed", "--key-size=32", "--val-size=256", "--key-space-size=1000",
                               "--limit=100", "--total=4000"]),
    ("put, 1 client", ["put", "--key-size=32", "--val-size=256", "--sequential-keys", "--key-space-size=100000", "--total=400"]),
    ("put, 100 clients", [*MANY, "put", "--key-size=32", "--val-size=256", "--sequential-keys", "--key-space-size=100000",
                          "--total=10000"]),
    ("txn of 8 puts, 100 clients", [*MANY, "txn-put", "--key-size=32", "--val-size=256", "--key-space-size=100000", "--txn-ops=8",
                                    "--total=3000"]),
    ("get, linearizable, 100 clients", [*MANY, "range", "bench/0500", "--total=20000"]),
    ("get, serializable, 100 clients", [*MANY, "range", "bench/0500", "--consistency=s", "--total=20000"]),
    ("list of 500, linearizable, 20 clients", ["--clients=20", "--conns=5", "range", "bench/", "bench0", "--limit=500", "--total=1000"]),
    ("stm, 20 clients on 100 keys", ["--clients=20", "--conns=5", "stm", "--keys=100", "--keys-per-txn=2", "--total=2000"]),
    ("lease keep-alive, 50 clients", ["--clients=50", "--conns=5", "lease-keepalive", "--total=10000"]),
    ("watch: 1,000 watches, 1,000 puts", ["--conns=5", "watch", "--streams=10", "--watch-per-stream=100", "--watched-key-total=100",
                                          "--key-space-size=100", "--put-total=1000"]),
    ("watch latency, 100 watches", ["--conns=5", "watch-latency", "--streams=10", "--watchers-per-stream=10", "--put-rate=100",
                                    "--put-total=500"]),
]


def seed(address):
    """The entries that reads read: the benchmark's own keys cannot be given as arguments."""
    for start in range(0, 1000, 100):
        puts = [{"request_put": {"key": encoded(f"bench/{number:04}"), "value": encoded("x" * 256)}}
                for number in range(start, start + 100)]
        request = urllib.request.Request(f"http://{address}/v3/kv/txn", json.dumps({"success": puts}).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            json.load(answer)


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def run(program, addresses, scale, file):
    seed(addresses.split(",")[0])
    numbers, failed = {}, False
    for name, arguments in RUNS:
        arguments = [re.sub(r"^(--(?:put-)?total=)(\d+)$", lambda found: found[1] + str(int(found[2]) * int(scale)), each)
                     for each in arguments]
        done = subprocess.run([program, f"--endpoints={addresses}", "--precise", *arguments], capture_output=True, text=True, timeout=600)
        said = done.stdout + done.stderr
        numbers[name] = read(said)
        print(f"  {name}: {tell(numbers[name])}", flush=True)
        if done.returncode or "Error distribution" in said or not numbers[name]:
            failed = True
            print(f"  FAILED with {done.returncode}: {said[-1500:]}")
    with open(file, "w") as out:
        json.dump(numbers, out)
    return failed


def read(said):
    """The last report of a run: some runs report twice, of the beginning of watches and of their events."""
    found = {}
    for name, pattern in (("rate", r"Requests/sec:\s+([\d.]+)"), ("mean", r"Average:\s+([\d.]+)"), ("p50", r"50% in ([\d.]+) secs"),
                          ("p99", r"99% in ([\d.]+) secs")):
        values = re.findall(pattern, said)
        if values:
            found[name] = float(values[-1])
    return found


def tell(numbers):
    if not numbers:
        return "nothing"
    return f"{numbers.get('rate', 0):,.0f}/s, {1000 * numbers['p50']:.1f} ms, p99 {1000 * numbers['p99']:.1f} ms"


def show(columns):
    names, tables = columns[::2], []
    for path in columns[1::2]:
        with open(path) as file:
            tables.append(json.load(file))
    print("| run | " + " | ".join(f"{name}: requests/s, median, p99" for name in names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for name, _ in RUNS:
        print(f"| {name} | " + " | ".join(tell(table.get(name)) for table in tables) + " |")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", program, addresses, scale, file]:
            sys.exit(run(program, addresses, scale, file))
        case ["show", *columns] if len(columns) >= 2 and len(columns) % 2 == 0:
            show(columns)
        case _:
            raise SystemExit(__doc__)
