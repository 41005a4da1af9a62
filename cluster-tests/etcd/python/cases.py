"""What both Python clients offer, as cases that say what they saw.

Owns how cases run: one line each, "ok NAME" or "failed NAME: WHY". Where the environment has passwords, only those that log in.
"""

import os
import sys
import threading
import time
import traceback
from importlib.metadata import version

import etcd3_cases
import etcd3gw_cases

# No case takes longer, unless it hangs.
PATIENCE = 60


def run(name, case, *args):
    """Runs a case in a thread of its own, since a client that waits for ever must not keep the others."""
    outcome = [f"hangs: no end after {PATIENCE} s"]

    def body():
        try:
            case(*args)
            outcome[0] = None
        except Exception as error:  # Whatever it is, it is the outcome.
            where = traceback.extract_tb(error.__traceback__)
            line = next((each for each in reversed(where) if "_cases" in each.filename), where[-1])
            what = " ".join(str(error).split())[:300]
            outcome[0] = f"{type(error).__name__} {what} [{line.line}]"

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    print(f"ok {name}" if outcome[0] is None else f"failed {name}: {outcome[0]}", flush=True)


def main():
    host, _, port = sys.argv[1].split(",")[0].partition(":")
    print(f"python-etcd3 {version('etcd3')}, etcd3gw {version('etcd3gw')}, grpcio {version('grpcio')}, protobuf {version('protobuf')}")
    if "CONFORMANCE_ROOT_PASSWORD" in os.environ:
        passwords = os.environ["CONFORMANCE_ROOT_PASSWORD"], os.environ["CONFORMANCE_CLIENT_PASSWORD"]
        # etcd3gw cannot log in.
        for case in etcd3_cases.LOGIN_CASES:
            run(f"etcd3/{case.__name__}", case, host, int(port), *passwords)
        return
    for module in (etcd3_cases, etcd3gw_cases):
        # A prefix of its own for each case, so that one does not see what another left.
        label = module.__name__.removesuffix("_cases")
        for case in module.CASES:
            name = f"{label}/{case.__name__}"
            run(name, case, module.client(host, int(port)), f"/{name}-{time.time_ns()}/")


main()
