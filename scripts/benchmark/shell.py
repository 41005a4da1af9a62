"""What the scripts that measure share: saying and failing, running programs, and building those that they need."""

import subprocess
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent


def say(text):
    print(text, file=sys.stderr, flush=True)


def fail(text):
    say(f"bench: {text}")
    sys.exit(1)


def run(command, **options):
    """Runs a command and returns what it prints; ends the script with its errors if it fails."""
    command = [str(part) for part in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        fail(f"`{' '.join(command)}` ended with {done.returncode}")
    return done.stdout


def shell(command):
    """What a command prints that knows the functions of lib.sh."""
    return run(["bash", "-c", f'. "$1/scripts/lib.sh" && {command}', "scripts/bench", REPO]).strip()


def build(profile, *programs):
    """Builds programs of the workspace, and returns where they are."""
    return Path(shell(f"build_programs {profile} {' '.join(programs)}"))


def build_beside(name, profile):
    """Builds a program that is a workspace of its own below `scripts`, and returns it."""
    target = Path(shell('printf "%s" "$target_dir"')) / name
    manifest = REPO / "scripts" / name / "Cargo.toml"
    flags = ["--release"] if profile == "release" else []
    run(["cargo", "build", "--locked", "--manifest-path", manifest, "--target-dir", target, *flags])
    return target / profile / name


def new_home(parent):
    """A new directory on a real disk: on a memory file system an fsync costs nothing and says nothing."""
    parent.mkdir(parents=True, exist_ok=True)
    kind = run(["stat", "-f", "-c", "%T", parent]).strip()
    if kind in ("tmpfs", "ramfs"):
        fail(f"{parent} is on {kind}, where fsync costs nothing; name a directory on a disk with --dir")
    return Path(tempfile.mkdtemp(prefix="bench-", dir=parent))
