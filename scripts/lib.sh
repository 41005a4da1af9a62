# Shared by the scripts beside it; sourced, never run.
#
# Owns where things are built and which RocksDB they link.

# shellcheck shell=bash

# A failure inside $(...) counts too.
shopt -s inherit_errexit

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# One build directory outside the checkout: every clone and worktree shares RocksDB's long C++ build.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/quorate/target}

# cargo takes a crate for built when its sources are older than the build, and does not see that they lie in another
# checkout. So a checkout that takes over the directory from another makes its own sources new first.
claim_target_dir() {
    local mark=$CARGO_TARGET_DIR/checkout
    mkdir -p "$CARGO_TARGET_DIR"
    if [[ ! -f $mark || $(<"$mark") != "$repo" ]]; then
        find "$repo" -name .quorate -prune -o \( -name '*.rs' -o -name Cargo.toml \) -exec touch {} +
        printf '%s\n' "$repo" >"$mark"
    fi
}

say() { printf '%s\n' "$*" >&2; }

# Ends the script with one sentence and exit code 1.
die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# Ends the script with a sentence, the usage text of the script, and exit code 2.
die_usage() {
    printf '%s: %s\n\n' "$(basename "$0")" "$*" >&2
    usage >&2
    exit 2
}

# Lets cargo link one RocksDB archive into every profile and feature set, instead of compiling RocksDB for each. lz4-sys
# builds its four C files anew in every profile, within seconds, and needs no help.
use_built_rocksdb() {
    ROCKSDB_LIB_DIR=$("$repo/scripts/rocksdb") || die "RocksDB could not be compiled, see above"
    export ROCKSDB_LIB_DIR ROCKSDB_STATIC=1
}

# Builds programs of the workspace in the profile given, debug or release, all or those named, and prints the directory they are in.
# Always the whole workspace: another selection would mean other crate features, and dependencies built twice.
build_programs() {
    local profile=$1 flags=() bins=() name
    shift
    for name in "$@"; do bins+=(--bin "$name"); done
    [[ ${#bins[@]} -gt 0 ]] || bins=(--bins)
    "$repo/scripts/setup" >&2
    claim_target_dir
    if [[ $profile == release ]]; then flags=(--release); fi
    use_built_rocksdb
    say "Building Quorate ($profile)."
    (cd "$repo" && cargo build --workspace "${bins[@]}" --locked "${flags[@]}") >&2 || die "the build failed, see above"
    printf '%s\n' "$CARGO_TARGET_DIR/$profile"
}
