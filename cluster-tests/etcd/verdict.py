#!/usr/bin/env python3
"""Owns the verdict over the tests of a Go program: shows its output, and compares what failed with what was expected to.

usage: verdict.py FILE     reads the output of `-test.v` from standard input. Each line of FILE names a test and says why it fails;
                           one that passes is as wrong as one that fails without being named. /dev/null expects nothing.
"""

import re
import sys


def expected_failures(path):
    with open(path) as file:
        lines = [line.split(None, 1) for line in file if line.strip() and not line.startswith("#")]
    return {name: reason.strip() for name, reason in lines}


def read_results(lines):
    """Shows the lines and gives the result of each test, PASS, FAIL or SKIP, with its time."""
    results, last = {}, ""
    for line in lines:
        print(line, end="", flush=True)
        last = line.strip() or last
        found = re.match(r"\s*--- (PASS|FAIL|SKIP): (\S+) \(([\d.]+)s\)", line)
        if found:
            results[found.group(2)] = (found.group(1), found.group(3))
    return results, last


def main(path):
    expected = expected_failures(path)
    results, last = read_results(sys.stdin)
    failed = {name for name, (result, _) in results.items() if result == "FAIL"}
    # A test fails with a test in it: only the inner one needs a reason.
    outer = {name for name in failed if any(other.startswith(name + "/") for other in failed)}
    wrong = sorted(failed - outer - set(expected))
    passed = sorted(name for name in expected if results.get(name, ("", ""))[0] == "PASS")
    tops = [result for name, (result, _) in results.items() if "/" not in name]
    print(f"\n{tops.count('PASS')} passed, {tops.count('SKIP')} skipped, {tops.count('FAIL')} failed, of these as expected:")
    for name in sorted(failed & set(expected)):
        print(f"  {name}: {expected[name]}")
    for name in wrong:
        print(f"FAILED: {name}")
    for name in passed:
        print(f"FAILED: {name} passes, though {path} says that it fails")
    if not tops or last not in ("PASS", "FAIL"):
        print(f"FAILED: the program did not end as a test does, but with: {last}")
        return 1
    return 1 if wrong or passed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    sys.exit(main(sys.argv[1]))
