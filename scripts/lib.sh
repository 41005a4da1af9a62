# Shared by the scripts beside it; sourced, never run.
#
# Owns where things are built.

# shellcheck shell=bash

# A failure inside $(...) counts too.
shopt -s inherit_errexit

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Where cargo builds, with or without these scripts: `target` in the checkout, or where CARGO_TARGET_DIR says.
target_dir=${CARGO_TARGET_DIR:-$repo/target}

# What takes long to build and does not depend on the checkout.
cache_dir=${XDG_CACHE_HOME:-$HOME/.cache}/quorate

# Where scripts/setup says which RocksDB cargo links, and by what line it knows that it wrote that.
cargo_config=$repo/.cargo/config.toml
config_mark='# Written by scripts/setup.'

# Whether somebody else wrote it.
has_foreign_config() { [[ -f $cargo_config && $(head -n 1 "$cargo_config") != "$config_mark" ]]; }

# Has cargo link RocksDB at full optimisation from now on, whatever scripts/setup told it for debug builds, but not what the caller did.
link_full_rocksdb() {
    if [[ -z ${ROCKSDB_LIB_DIR:-} ]] && ! has_foreign_config; then
        link_own_rocksdb
    fi
}

# The same, whatever the caller or cargo's settings name.
link_own_rocksdb() {
    local home
    home=$("$repo/scripts/rocksdb") || die "RocksDB could not be compiled, see above"
    export ROCKSDB_LIB_DIR=$home ROCKSDB_STATIC=1
}

# cargo takes a crate for built when its sources are older than the build, and does not see that they lie in another
# checkout. So a checkout that takes over a build directory from another makes its own sources new first. What cargo built in the
# checkout itself, before any of these scripts ran, is its own.
claim_target_dir() {
    local mark=$target_dir/checkout owner=
    mkdir -p "$target_dir"
    if [[ -f $mark ]]; then
        owner=$(<"$mark")
    elif [[ $target_dir == "$repo/target" ]]; then
        owner=$repo
    fi
    if [[ $owner != "$repo" ]]; then
        find "$repo" \( -name .quorate -o -name target \) -prune -o \( -name '*.rs' -o -name Cargo.toml \) -exec touch {} +
    fi
    printf '%s\n' "$repo" >"$mark"
}

say() { printf '%s\n' "$*" >&2; }

# Sets `ports` to $1 ports that nobody listens on, an array. No other test is given one of them until the script and all that it has
# started since have ended.
take_ports() {
    local from
    exec {from}< <(exec python3 -B "$repo/scripts/ports.py" "$1")
    read -ra ports <&"$from" || die "there are no $1 free ports"
}

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

# Builds the programs named in the profile given (debug, release, packaged), and prints the directory they are in. Flags of cargo may stand
# among the names.
# Selects them from the whole workspace: with `-p` some dependencies would have other features and be built twice.
build_programs() {
    local profile=$1 flags=() bins=() name
    shift
    for name in "$@"; do
        case $name in
            -*) flags+=("$name") ;;
            *) bins+=(--bin "$name") ;;
        esac
    done
    if [[ $profile == debug ]]; then
        "$repo/scripts/setup" >&2
    else
        "$repo/scripts/setup" --tools >&2
        # Any other archive than that of the flags of a package knows where it was compiled.
        if [[ $profile == packaged ]]; then link_own_rocksdb; else link_full_rocksdb; fi
        flags+=(--profile "$profile")
    fi
    claim_target_dir
    say "Building Quorate ($profile)."
    (cd "$repo" && cargo build --workspace "${bins[@]}" --locked "${flags[@]}") >&2 || die "the build failed, see above"
    printf '%s\n' "$target_dir/$profile"
}
