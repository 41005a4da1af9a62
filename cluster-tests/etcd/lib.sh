# Shared by the suites beside it, which source scripts/lib.sh first; sourced, never run.
#
# Owns the servers that a suite runs against: each is started on free ports, with its data in a directory that goes with the suite.

# shellcheck shell=bash

# Where the suite may write; servers keep their data and logs here.
work=$(mktemp -d)
# Processes that end with the suite.
started=()

# Ends what was started. What it leaves stays where QUORATE_KEEP is set.
end_servers() {
    local pid
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
    if [[ -n ${QUORATE_KEEP:-} ]]; then say "Logs and data stay in $work."; else rm -rf "$work"; fi
}
trap end_servers EXIT

# Prints $1 ports that nobody listens on, below those of outgoing connections: one of these could take the port of a node that is down.
free_ports() {
    python3 -c '
import random, socket, sys
held = {}
while len(held) < int(sys.argv[1]):
    port = random.randrange(10_000, 32_768)
    held[port] = socket.socket()
    try:
        held[port].bind(("127.0.0.1", port))
    except OSError:
        del held[port]
print(*held)
' "$1"
}

# Waits until the command given succeeds; shows the end of log $1 where process $2 ends first, or after a minute.
wait_until() {
    local log=$1 pid=$2 deadline=$((SECONDS + 60))
    shift 2
    until "$@" >/dev/null 2>&1; do
        if ! kill -0 "$pid" 2>/dev/null || [[ $SECONDS -ge $deadline ]]; then
            tail -n 15 "$log" >&2
            die "a server does not get ready; the end of its log is above"
        fi
        sleep 0.1
    done
}

# Whether the Quorate at address $1 serves, and all members have found out what all of them know.
quorate_serves() {
    curl -fsS --max-time 2 "http://$1/readyz" && curl -fsS --max-time 2 "http://$1/v1/cluster/status" |
        python3 -c 'import json, sys; status = json.load(sys.stdin); sys.exit(status["level"] != status["level_known"])'
}

# Starts $1 nodes (default 3) with the flags that follow. Sets `quorate`, the addresses of their clients with commas between,
# `quorate_nodes`, an array of the same, and `quorate_pids`.
start_quorate() {
    local count=${1:-3} ports id members=()
    shift || true
    read -ra ports <<<"$(free_ports $((count * 2)))"
    quorate_nodes=() quorate_pids=()
    for ((id = 1; id <= count; id++)); do members+=("$id=127.0.0.1:${ports[count + id - 1]}"); done
    for ((id = 1; id <= count; id++)); do
        quorate_nodes+=("127.0.0.1:${ports[id - 1]}")
        "$QUORATE_NODE" --node-id "$id" --data-dir "$work/node-$id" --client-listen "${quorate_nodes[id - 1]}" \
            --peer-listen "127.0.0.1:${ports[count + id - 1]}" --join "$(IFS=, && echo "${members[*]}")" "$@" \
            </dev/null >"$work/node-$id.log" 2>&1 &
        quorate_pids+=("$!")
        started+=("$!")
    done
    for ((id = 1; id <= count; id++)); do
        wait_until "$work/node-$id.log" "${quorate_pids[id - 1]}" quorate_serves "${quorate_nodes[id - 1]}"
    done
    quorate=$(IFS=, && echo "${quorate_nodes[*]}")
}

# Starts an etcd of one member with the flags given. Sets `etcd`, its address, and `etcd_pid`.
start_etcd() {
    local program ports
    program=$("$repo/cluster-tests/etcd/server/build")
    read -ra ports <<<"$(free_ports 2)"
    etcd=127.0.0.1:${ports[0]}
    "$program" --name one --data-dir "$work/etcd" --listen-client-urls "http://$etcd" --advertise-client-urls "http://$etcd" \
        --listen-peer-urls "http://127.0.0.1:${ports[1]}" --initial-advertise-peer-urls "http://127.0.0.1:${ports[1]}" \
        --initial-cluster "one=http://127.0.0.1:${ports[1]}" "$@" </dev/null >"$work/etcd.log" 2>&1 &
    etcd_pid=$!
    started+=("$etcd_pid")
    wait_until "$work/etcd.log" "$etcd_pid" curl -fsS --max-time 2 "http://$etcd/health"
}
