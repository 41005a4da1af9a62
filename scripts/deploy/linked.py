"""Which crates are in the programs, by cargo: what third-party and bill-of-materials have in common."""

import json
import subprocess
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
PROGRAMS = ["quorate-node", "quorate-cli"]


def metadata():
    """What cargo knows of all packages on the platform at hand."""
    target = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    target = next(line.split()[1] for line in target.splitlines() if line.startswith("host: "))
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    return json.loads(subprocess.run(command, cwd=REPO, check=True, capture_output=True, text=True).stdout)


def uses(known):
    """What each package uses, but for builds, tests and macros, which run in the compiler; by ids."""
    macros = {package["id"] for package in known["packages"] if any("proc-macro" in each["kind"] for each in package["targets"])}
    used = {}
    for node in known["resolve"]["nodes"]:
        links = [link["pkg"] for link in node["deps"] if any(kind["kind"] is None for kind in link["dep_kinds"])]
        used[node["id"]] = [link for link in links if link not in macros]
    return used


def linked(known):
    """Ids of the packages that end up in the programs."""
    used = uses(known)
    wanted = [package["id"] for package in known["packages"] if package["name"] in PROGRAMS and package["source"] is None]
    found = set()
    while wanted:
        at = wanted.pop()
        if at not in found:
            found.add(at)
            wanted += used[at]
    return found
