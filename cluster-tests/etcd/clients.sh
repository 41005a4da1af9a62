# Shared by the suites of clients beside it; sourced after suite.sh, never run.
#
# Owns where the packages of such a suite are installed, and the judgement over its cases.

# shellcheck shell=bash disable=SC2154

# Prints the directory of a Python environment with what file $1 names; makes it where there is none yet.
python_with() {
    local home
    home=$cache_dir/conformance/python-$(cat "$1" <(python3 --version) | sha256sum | cut -c1-12)
    if [[ ! -f $home/complete ]]; then
        say "Installing $(grep -c '^[a-zA-Z]' "$1") Python packages."
        rm -rf "$home"
        mkdir -p "$(dirname "$home")"
        python3 -m venv "$home" >&2 || die "python3 -m venv failed; Debian has it in python3-venv"
        "$home/bin/pip" install --quiet --no-deps --requirement "$1" >&2 || die "the packages in $1 were not installed, see above"
        touch "$home/complete"
    fi
    printf '%s\n' "$home"
}

# Runs the command given twice, once as it is and once with CONFORMANCE_ROOT_PASSWORD and CONFORMANCE_CLIENT_PASSWORD for servers that ask
# who calls, where the servers are the suite's own.
run_cases() {
    local passwords=()
    "$@" || return 1
    [[ $kind != given ]] || return 0
    read -ra passwords <<<"$("$repo/cluster-tests/etcd/gateway.py" authenticate "$servers")"
    [[ ${#passwords[@]} -eq 2 ]] || die "authentication was not turned on, see above"
    CONFORMANCE_ROOT_PASSWORD=${passwords[0]} CONFORMANCE_CLIENT_PASSWORD=${passwords[1]} "$@"
}

# Reads "ok NAME" and "failed NAME: WHY" lines and ends with 1 where one failed that expected.txt in directory $1 does not name, or one
# that it names passed. Each line of the file is a name and why that fails. An etcd fails in nothing.
judge() {
    awk -v kind="$kind" '
        NR == FNR { if ($1 != "" && $1 !~ /^#/) { name = $1; sub(/^[^ ]+ +/, ""); expected[name] = $0 } next }
        { print; fflush() }
        $1 == "ok" { passed++; if (kind == "quorate" && $2 in expected) wrong[$2] = "passes although it is expected to fail" }
        $1 == "failed" {
            name = $2; sub(/:$/, "", name)
            if (kind == "quorate" && name in expected) { differ[name] } else { wrong[name] = "failed" }
        }
        END {
            print ""
            for (name in differ) print "differs as expected: " name ": " expected[name]
            for (name in wrong) print "wrong: " name ": " wrong[name]
            print passed + 0 " passed, " length(wrong) " wrong, " length(differ) " differ as expected"
            exit length(wrong) > 0 || passed == 0
        }' "$1/expected.txt" -
}
