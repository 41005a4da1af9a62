# Shared by suites that run against a whole cluster; sourced after lib.sh, never run.
#
# Owns the servers that such a suite takes: a Quorate cluster of its own, an etcd of its own, or one that runs already; and how
# programs in Go are built and their tests judged.

# shellcheck shell=bash disable=SC2154

cluster_usage() {
    cat <<'EOF'
Without an option the suite starts three nodes of Quorate.

--etcd               starts three nodes of etcd instead, to tell a mistake of the suite from one of Quorate
--against ADDRESSES  takes servers that run already, HOST:PORT with commas between; what has to kill nodes is left out
EOF
}

# Takes the options above from the arguments. Sets `endpoints`, `kind` (quorate, etcd or given), `servers`, the directory for
# servers.py, and `program`, what runs there, both empty where the servers are not the suite's, and `rest`, an array of the other
# arguments.
take_servers() {
    kind=quorate endpoints='' servers='' program='' rest=()
    while [[ $# -gt 0 ]]; do
        case $1 in
            -h | --help) usage; exit 0 ;;
            --etcd) kind=etcd ;;
            --against)
                kind=given endpoints=${2:-}
                [[ $endpoints =~ ^[^,]+:[0-9]+(,[^,]+:[0-9]+)*$ ]] || die_usage "--against takes HOST:PORT with commas between"
                shift
                ;;
            *) rest+=("$1") ;;
        esac
        shift
    done
    [[ $kind != given ]] || return 0
    if [[ $kind == etcd ]]; then
        program=$("$repo/cluster-tests/etcd/server/build")
    else
        program=${QUORATE_NODE:?is set by scripts/conformance}
    fi
    servers=$work/servers-$kind
    endpoints=$("$repo/cluster-tests/etcd/servers.py" up "$kind" "$program" "$servers")
    "$repo/cluster-tests/etcd/servers.py" hold "$servers" &
    started+=("$!")
}

# What the suite runs against, for the first line of its answer.
say_servers() {
    local version
    version=$(curl -fsS --max-time 5 "http://${endpoints%%,*}/version") || die "nothing answers at ${endpoints%%,*}"
    if [[ $kind == quorate ]]; then
        version="$("$QUORATE_NODE" --version), $version"
    fi
    say "Against $kind at $endpoints: $version"
}

# Builds with Go in module $1, where what comes out is not there yet for the sources of the module, and prints its path.
# What follows goes to `go`, but for -o.
build_go() {
    local module=$1 mark built
    shift
    command -v go >/dev/null || die "needs Go"
    mark=$(find "$module" -type f \( -name '*.go' -o -name 'go.*' \) | LC_ALL=C sort | xargs cat | cat - <(echo "$*") |
        sha256sum | cut -c 1-12)
    built=$cache_dir/conformance/$(basename "$module")/$mark
    if [[ ! -x $built ]]; then
        say "Building with go $*."
        mkdir -p "$(dirname "$built")"
        (cd "$module" && go "$1" -p 1 -trimpath -ldflags '-s -w' -o "$built.new" "${@:2}") >&2 ||
            die "go $* failed in $module, see above"
        # Of an older state of the module.
        find "$(dirname "$built")" -maxdepth 1 -type f -mtime +7 -delete
        mv "$built.new" "$built"
    fi
    printf '%s\n' "$built"
}

# Runs the Go tests in program $1 against the servers that were taken, with the arguments that follow, and judges them by
# expected.txt of the suite in directory $2, or expected-etcd.txt where that is about etcd.
run_go_tests() {
    local tests=$1 expected=$2/expected.txt
    if [[ $kind != quorate ]]; then expected=$2/expected-$kind.txt; fi
    if [[ ! -f $expected ]]; then expected=/dev/null; fi
    shift 2
    export CONFORMANCE_ENDPOINTS=$endpoints CONFORMANCE_KIND=$kind CONFORMANCE_PROGRAM=$program CONFORMANCE_SERVERS=$servers
    export CONFORMANCE_KEEPER=$repo/cluster-tests/etcd/servers.py
    # Its exit code says nothing where some are expected to fail.
    { "$tests" -test.v "$@" 2>&1 || true; } | "$repo/cluster-tests/etcd/verdict.py" "$expected"
}
