# Shared by the scripts beside it; sourced, never run.
#
# Owns where things are built, how Debian packages are fetched, and how the release build borrows RocksDB.

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

# Lets a --release build link the RocksDB archive that the development build already compiled. Dependencies have
# opt-level 3 and no debug information in both profiles (Cargo.toml), so the C++ flags are the same; without this the
# same 15 minutes of C++ would be spent once more. Call it for release builds only: in the development profile these
# variables would make cargo run the build script again and throw the archive away.
#
# librocksdb-sys links what ROCKSDB_LIB_DIR holds (statically, for ROCKSDB_STATIC) and still generates its bindings
# from its own headers, so the archive must stem from the very same version: the output of its build script says which.
# lz4-sys builds its four C files anew in every profile, within seconds, and needs no help.
use_built_rocksdb() {
    local version output archive
    version=$(awk '/^name = "librocksdb-sys"$/ { found = 1 } found && /^version = / { gsub(/"/, "", $3); print $3; exit }' \
        "$repo/Cargo.lock")
    for output in "$CARGO_TARGET_DIR"/debug/build/librocksdb-sys-*/output; do
        archive=$(dirname "$output")/out/librocksdb.a
        if [[ -f $archive ]] && grep -q "cargo_manifest_dir=.*/librocksdb-sys-$version\$" "$output"; then
            ROCKSDB_LIB_DIR=$(dirname "$archive")
            export ROCKSDB_LIB_DIR ROCKSDB_STATIC=1
            say "Linking the RocksDB that the development build compiled ($ROCKSDB_LIB_DIR)."
            return
        fi
    done
}

# Builds programs of the workspace in the profile given, debug or release, all or those named, and prints the directory they are in.
# Always the whole workspace: another selection would mean other crate features and another build of RocksDB.
build_programs() {
    local profile=$1 flags=() bins=() name
    shift
    for name in "$@"; do bins+=(--bin "$name"); done
    [[ ${#bins[@]} -gt 0 ]] || bins=(--bins)
    "$repo/scripts/setup" >&2
    claim_target_dir
    if [[ $profile == release ]]; then
        flags=(--release)
        use_built_rocksdb
    fi
    say "Building Quorate ($profile)."
    if ! compgen -G "$CARGO_TARGET_DIR/*/build/librocksdb-sys-*/out/librocksdb.a" >/dev/null; then
        say "This first build compiles RocksDB, which takes about a quarter of an hour on two cores."
    fi
    (cd "$repo" && cargo build --workspace "${bins[@]}" --locked "${flags[@]}") >&2 || die "the build failed, see above"
    printf '%s\n' "$CARGO_TARGET_DIR/$profile"
}
