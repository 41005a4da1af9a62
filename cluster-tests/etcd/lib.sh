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
    take_ports $((count * 2))
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

# Starts an etcd of $1 members (default 1) with the flags that follow. Sets `etcd`, the addresses of their clients with commas between,
# `etcd_nodes`, an array of the same, and `etcd_pids`.
start_etcd() {
    local count=${1:-1} program ports id peer members=()
    shift || true
    program=$("$repo/cluster-tests/etcd/server/build")
    take_ports $((count * 2))
    etcd_nodes=() etcd_pids=()
    for ((id = 1; id <= count; id++)); do members+=("m$id=http://127.0.0.1:${ports[count + id - 1]}"); done
    for ((id = 1; id <= count; id++)); do
        etcd_nodes+=("127.0.0.1:${ports[id - 1]}")
        peer=${members[id - 1]#*=}
        "$program" --name "m$id" --data-dir "$work/etcd-$id" --initial-cluster "$(IFS=, && echo "${members[*]}")" \
            --listen-client-urls "http://${etcd_nodes[id - 1]}" --advertise-client-urls "http://${etcd_nodes[id - 1]}" \
            --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" "$@" </dev/null >"$work/etcd-$id.log" 2>&1 &
        etcd_pids+=("$!")
        started+=("$!")
    done
    for ((id = 1; id <= count; id++)); do
        wait_until "$work/etcd-$id.log" "${etcd_pids[id - 1]}" curl -fsS --max-time 2 "http://${etcd_nodes[id - 1]}/health"
    done
    etcd=$(IFS=, && echo "${etcd_nodes[*]}")
}
