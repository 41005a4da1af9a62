"""Judges rendered objects for Kubernetes: scripts/deploy/check says by what.

Usage: check-objects.py REPOSITORY DEFINITIONS FILE...      DEFINITIONS: the sources of cert-manager, or nothing
"""

import re
import sys
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

VERSIONS = ["1.27", "1.31", "1.37"]
GIB = 1 << 30
SPARES = 9

faults = []


def fault(where, what):
    faults.append(f"{where}: {what}")


def strict(schema):
    """The schema of a custom object, with which no unknown field passes."""
    if isinstance(schema, dict):
        if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema.setdefault("additionalProperties", False)
        for value in schema.values():
            strict(value)
    elif isinstance(schema, list):
        for value in schema:
            strict(value)
    return schema


def definitions(sources):
    found = {}
    for file in sorted((Path(sources) / "deploy/crds").glob("crd-*.yaml")) if sources else []:
        for of in filter(None, yaml.safe_load_all(file.read_text("utf-8"))):
            for version in of["spec"]["versions"]:
                schema = strict(version["schema"]["openAPIV3Schema"])
                # What every object has is described elsewhere.
                schema["properties"]["metadata"] = {"type": "object"}
                found[of["spec"]["names"]["kind"], f"{of['spec']['group']}/{version['name']}"] = schema
    return found


def check_schema(where, thing, known):
    kind, api = thing["kind"], thing["apiVersion"]
    if ".cert-manager.io" in f".{api}":
        if known:
            for error in jsonschema.Draft202012Validator(known[kind, api]).iter_errors(thing):
                fault(where, f"{kind} {thing['metadata']['name']}: {error.json_path}: {error.message}")
        return
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(thing, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            fault(where, f"{kind} {thing['metadata']['name']} by {version}: {'.'.join(map(str, error.path))}: {error.message}")


def gib(text):
    return int(re.fullmatch(r"(\d+)Gi", text).group(1)) * GIB


def default(arguments, setting):
    """The default of a setting, as its help has it."""
    help_text = re.search(r"((?:    ///[^\n]*\n)+)    \w+: \w+ = \"" + setting + '"', arguments).group(1)
    return int(re.search(r"\[default: (\d+)", " ".join(help_text.split())).group(1))


def check_probes(where, container):
    paths = [container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    if paths != ["/livez", "/livez", "/readyz"]:
        fault(where, f"the probes ask {paths}")
    ports = {container[name]["httpGet"]["port"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    listens = re.search(r"--admin-listen [\d.]+:(\d+)", " ".join(container["command"]))
    admin = [port["containerPort"] for port in container["ports"] if port["name"] == "admin"]
    if ports != {"admin"} or not listens or admin != [int(listens.group(1))]:
        fault(where, "probes have to ask at the port for administration: clients can use up the connections of theirs")
    start, live = container["startupProbe"], container["livenessProbe"]
    if start["periodSeconds"] * start["failureThreshold"] < 1200:
        fault(where, "a recovery may take more than twenty minutes")
    if live["periodSeconds"] * live["failureThreshold"] < 60 or live["timeoutSeconds"] < 5:
        fault(where, "a process that stands still for a moment would be killed")


def check_settings(where, container, arguments):
    known = set(re.findall(r' = "(QUORATE_\w+)"', arguments))
    given = {each["name"] for each in container["env"]}
    if unknown := {name for name in given if name.startswith("QUORATE_")} - known:
        fault(where, f"settings that no node has: {sorted(unknown)}")
    flags = set(re.findall(r"--([a-z-]+)", " ".join(container["command"])))
    if unknown := {flag for flag in flags if "QUORATE_" + flag.replace("-", "_").upper() not in known}:
        fault(where, f"flags that no node has: {sorted(unknown)}")


def check_size(where, stateful, arguments):
    state = default(arguments, "QUORATE_QUOTA_BYTES") + default(arguments, "QUORATE_HISTORY_BYTES_MAX")
    wanted = 2 * state + 2 * default(arguments, "QUORATE_LOG_BYTES_MAX") + default(arguments, "QUORATE_MIN_FREE_BYTES")
    size = gib(stateful["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"])
    if size < wanted:
        fault(where, f"a volume of {size / GIB} GiB is less than the {wanted / GIB} GiB that a full node wants")


def names_of_node(number):
    """As which a node may come: itself, and in the place of one that lost its disk."""
    return [f"node-{number}.quorate"] + [f"node-{number}0{spare}.quorate" for spare in range(1, SPARES + 1)]


def check_certificates(where, things, stateful):
    wanted = lambda number: [*names_of_node(number), f"node-{number}.quorate-peers", "quorate"]  # noqa: E731
    for thing in things:
        name = thing["metadata"]["name"]
        if thing["kind"] == "Certificate" and name.startswith("quorate-node-") and name != "quorate-node-ca":
            names, number = thing["spec"]["dnsNames"], name.rpartition("-")[2]
            if missing := set(wanted(number)) - set(names):
                fault(where, f"{name} has not the names {sorted(missing)}")
            if names[0] != f"node-{number}.quorate" or thing["spec"]["secretName"] != name:
                fault(where, f"{name} is not what it is called")
    for volume in stateful["spec"]["template"]["spec"].get("volumes", []):
        if driver := volume.get("csi"):
            attributes = driver["volumeAttributes"]
            names = attributes["csi.cert-manager.io/dns-names"].replace("${POD_NAME}", "node-3").split(",")
            if missing := set(wanted(3)) - set(names):
                fault(where, f"the certificates of pods have not the names {sorted(missing)}")
            issuers = {thing["metadata"]["name"] for thing in things if thing["kind"] == "Issuer"}
            if attributes["csi.cert-manager.io/issuer-name"] not in issuers:
                fault(where, "the certificates of pods are of an issuer that is not there")


def check(where, things, arguments, known):
    for thing in things:
        check_schema(where, thing, known)
    stateful = next(thing for thing in things if thing["kind"] == "StatefulSet")
    container = stateful["spec"]["template"]["spec"]["containers"][0]
    check_probes(where, container)
    check_settings(where, container, arguments)
    check_size(where, stateful, arguments)
    check_certificates(where, things, stateful)
    if "*." in yaml.safe_dump_all(things):
        fault(where, "a wildcard stands for one label alone, and for all pods")
    command = " ".join(container["command"])
    if command.count("${n}0") != SPARES or stateful["spec"]["ordinals"]["start"] != 1:
        fault(where, "the ids of nodes are not those in their certificates")


def main():
    repository, sources, *files = sys.argv[1:]
    arguments = (Path(repository) / "node/src/config/args.rs").read_text("utf-8")
    known = definitions(sources)
    count = 0
    for file in files:
        things = list(filter(None, yaml.safe_load_all(Path(file).read_text("utf-8"))))
        check(Path(file).stem, things, arguments, known)
        count += len(things)
    for each in faults:
        print(each, file=sys.stderr)
    if faults:
        sys.exit(1)
    print(f"{count} objects for Kubernetes are right, by the schemas of {', '.join(VERSIONS)}.", file=sys.stderr)


main()
