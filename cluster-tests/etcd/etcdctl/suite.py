#!/usr/bin/env python3
"""Owns what each command of etcdctl has to do: cases that run the program against servers and look at what it prints.

usage: suite.py KIND ADDRESSES PROGRAM [CASE...]     KIND is quorate, etcd or given; only quorate may have expected failures
"""

import base64
import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 20
CASES = []


class Failure(Exception):
    """What a case found wrong, in one sentence."""


def case(since="3.4", members=1):
    def mark(function):
        CASES.append((function, since, members))
        return function
    return mark


def check(found, wanted, what):
    if found != wanted:
        raise Failure(f"{what}: {found!r} instead of {wanted!r}")


def check_in(part, text, what):
    if part not in text:
        raise Failure(f"{what}: no {part!r} in {text!r}")


def plain(data):
    return base64.b64encode(data.encode()).decode()


def logged(line):
    """Whether it is a line of the log, which goes to standard error like what a user is told."""
    return line.startswith('{"level":')


class Running:
    """An etcdctl that goes on, with what it has printed so far."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, bufsize=1)
        self.lines, self.seen = queue.Queue(), []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            if not logged(line):
                self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def line(self):
        """The next line; fails where none comes."""
        try:
            line = self.lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise Failure(f"no further line after {self.seen}") from None
        if line is None:
            raise Failure(f"ended after {self.seen}")
        self.seen.append(line)
        return line

    def take(self, count):
        return [self.line() for _ in range(count)]

    def until(self, pattern):
        while True:
            found = re.search(pattern, self.line())
            if found:
                return found

    def send(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def ended(self):
        try:
            return self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"does not end after {self.seen}") from None

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.ended()


class Etcdctl:
    """The program, and the servers that it talks to."""

    def __init__(self, program, addresses):
        self.program, self.addresses, self.user = program, addresses, []
        self.environment = dict(os.environ)
        self.environment.pop("ETCDCTL_API", None)
        self.version = re.search(r"etcdctl version: (\S+)", self.ok("version")).group(1)
        if not self.new:  # What 3.6 complains of.
            self.environment["ETCDCTL_API"] = "3"
        self.members = len(self.json("member", "list")["members"])

    def command(self, arguments, at=None):
        return [self.program, f"--endpoints={at or ','.join(self.addresses)}", *self.user, *arguments]

    def run(self, *arguments, stdin="", at=None, patience=PATIENCE):
        try:
            done = subprocess.run(self.command(arguments, at), env=self.environment, input=stdin, capture_output=True,
                                  text=True, timeout=patience, errors="backslashreplace")
        except subprocess.TimeoutExpired:
            raise Failure(f"{arguments} does not end within {patience} s") from None
        done.stderr = "".join(line for line in done.stderr.splitlines(keepends=True) if not logged(line))
        return done

    def ok(self, *arguments, **rest):
        done = self.run(*arguments, **rest)
        if done.returncode:
            raise Failure(f"{arguments} ends with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def lines(self, *arguments, **rest):
        return self.ok(*arguments, **rest).splitlines()

    def json(self, *arguments, **rest):
        return json.loads(self.ok("-w", "json", *arguments, **rest))

    def refused(self, text, *arguments, **rest):
        """Fails unless the command does, and says the text."""
        done = self.run(*arguments, **rest)
        if not done.returncode:
            raise Failure(f"{arguments} was not refused: {done.stdout}")
        check_in(text, done.stdout + done.stderr, f"{arguments}")

    def put(self, key, value, *flags):
        """Puts and gives the revision."""
        return self.json("put", key, value, *flags)["header"]["revision"]

    def grant(self, ttl=60):
        return re.fullmatch(rf"lease ([0-9a-f]{{1,16}}) granted with TTL\({ttl}s\)\n", self.ok("lease", "grant", str(ttl))).group(1)

    def keys(self, prefix, *flags):
        return [line for line in self.lines("get", prefix, "--prefix", "--keys-only", *flags) if line]

    @contextlib.contextmanager
    def running(self, *arguments):
        it = Running(self.command(arguments), self.environment)
        try:
            yield it
        finally:
            it.process.kill()
            it.process.wait()

    @property
    def new(self):
        return self.version >= "3.6"


def eventually(what, condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise Failure(f"never: {what}")
        time.sleep(0.05)


# --- entries ---------------------------------------------------------------------------------------------------------

@case()
def put_and_get(ctl, at):
    check(ctl.ok("put", at + "a", "first"), "OK\n", "put")
    check(ctl.lines("get", at + "a"), [at + "a", "first"], "get")
    check(ctl.lines("get", at + "a", "--print-value-only"), ["first"], "only the value")
    check(ctl.ok("get", at + "none"), "", "get of nothing")
    check(ctl.ok("put", at + "in", stdin="from standard input"), "OK\n", "put from standard input")
    check(ctl.lines("get", at + "in", "--print-value-only"), ["from standard input"], "what came from there")
    check(ctl.lines("get", at + "a", "--hex")[1], "\\x66\\x69\\x72\\x73\\x74", "hexadecimal")
    check(ctl.ok("put", at + "empty", ""), "OK\n", "put of an empty value")
    check(ctl.lines("get", at + "empty"), [at + "empty", ""], "an empty value")
    check(ctl.ok("put", "--", at + "-dash", "-value"), "OK\n", "put of what looks like a flag")
    check(ctl.lines("get", at + "-dash", "--print-value-only"), ["-value"], "what looks like a flag")


@case()
def put_flags(ctl, at):
    ctl.ok("put", at + "a", "first")
    check(ctl.lines("put", at + "a", "second", "--prev-kv"), ["OK", at + "a", "first"], "--prev-kv")
    check(ctl.lines("put", at + "new", "second", "--prev-kv")[0], "OK", "--prev-kv of a new key")
    lease = ctl.grant()
    ctl.ok("put", at + "a", "third", f"--lease={lease}")
    check(ctl.json("get", at + "a")["kvs"][0]["lease"], int(lease, 16), "--lease")
    ctl.ok("put", at + "a", "--ignore-value")
    entry = ctl.json("get", at + "a")["kvs"][0]
    check((entry["value"], entry.get("lease", 0), entry["version"]), (plain("third"), 0, 4), "--ignore-value")
    ctl.ok("put", at + "a", "--ignore-value", f"--lease={lease}")
    ctl.ok("put", at + "a", "fifth", "--ignore-lease")
    entry = ctl.json("get", at + "a")["kvs"][0]
    check((entry["value"], entry["lease"], entry["version"]), (plain("fifth"), int(lease, 16), 6), "--ignore-lease")
    ctl.refused("key not found", "put", at + "none", "--ignore-value")
    ctl.refused("key not found", "put", at + "none", "x", "--ignore-lease")
    ctl.refused("requested lease not found", "put", at + "a", "x", "--lease=123456")
    ctl.refused("key is not provided", "put", "", "x")


@case()
def formats(ctl, at):
    revision = ctl.put(at + "a", "first")
    answer = ctl.json("get", at + "a")
    header = answer["header"]
    check(all(header[name] for name in ("cluster_id", "member_id", "raft_term")), True, "the header is complete")
    check(header["revision"] >= revision, True, "the header's revision")
    check(answer["count"], 1, "count")
    check(answer["kvs"], [{"key": plain(at + "a"), "create_revision": revision, "mod_revision": revision, "version": 1,
                           "value": plain("first")}], "the entry in JSON")
    fields = ctl.lines("-w", "fields", "get", at + "a")
    for line in (f'"Key" : "{at}a"', f'"CreateRevision" : {revision}', f'"ModRevision" : {revision}', '"Version" : 1',
                 '"Value" : "first"', '"Lease" : 0', '"More" : false', '"Count" : 1'):
        check_in(line, fields, "the entry as fields")
    check_in("first", ctl.ok("-w", "protobuf", "get", at + "a"), "the entry in protobuf")
    said = re.search(r'^"Revision" : (\d+)$', ctl.ok("-w", "fields", "put", at + "a", "x"), re.MULTILINE)
    check(said is not None and int(said.group(1)) > revision, True, "put as fields")
    check_in('"Deleted" : 1', ctl.lines("-w", "fields", "del", at + "a"), "del as fields")


@case()
def ranges(ctl, at):
    for letter in "abcd":
        ctl.ok("put", at + letter, letter.upper())
    check(ctl.lines("get", at + "a", at + "c"), [at + "a", "A", at + "b", "B"], "a range")
    check(ctl.keys(at), [at + letter for letter in "abcd"], "--prefix")
    check(ctl.lines("get", at, "--prefix", "--print-value-only"), list("ABCD"), "--prefix --print-value-only")
    check(ctl.keys(at, "--limit=2"), [at + "a", at + "b"], "--limit")
    limited = ctl.json("get", at, "--prefix", "--limit=3")
    check((limited["count"], limited["more"], len(limited["kvs"])), (4, True, 3), "count and more with --limit")
    check(ctl.json("get", at, "--prefix", "--limit=4").get("more", False), False, "more where there is none")
    found = [line for line in ctl.lines("get", at + "c", "--from-key", "--limit=2", "--keys-only") if line]
    check(found, [at + "c", at + "d"], "--from-key")
    check(ctl.keys(at, "--consistency=s"), [at + letter for letter in "abcd"], "--consistency=s")
    check(ctl.ok("get", at + "c", at + "a"), "", "a range that ends before it begins")
    if ctl.new:
        check(ctl.lines("-w", "fields", "get", at, "--prefix", "--count-only")[-1], '"Count" : 4', "--count-only")


@case()
def orders(ctl, at):
    for key, value in (("b", "3"), ("c", "1"), ("a", "2"), ("c", "1"), ("c", "1"), ("b", "3")):
        ctl.ok("put", at + key, value)
    wanted = {"KEY": "abc", "CREATE": "bca", "MODIFY": "acb", "VALUE": "cab", "VERSION": "abc"}
    for target, order in wanted.items():
        check(ctl.keys(at, f"--sort-by={target}"), [at + key for key in order], f"--sort-by={target}")
        check(ctl.keys(at, f"--sort-by={target}", "--order=DESCEND"), [at + key for key in reversed(order)], f"{target} descending")
        check(ctl.keys(at, f"--sort-by={target}", "--order=ASCEND", "--limit=1"), [at + order[0]], f"{target} with a limit")
    check(ctl.keys(at, "--order=DESCEND"), [at + key for key in "cba"], "--order alone")


@case()
def revisions(ctl, at):
    first = ctl.put(at + "a", "first")
    second = ctl.put(at + "b", "second")
    third = ctl.put(at + "a", "third")
    gone = ctl.json("del", at + "b")["header"]["revision"]
    for revision, values in ((first, ["first"]), (second, ["first", "second"]), (third, ["third", "second"]), (gone, ["third"])):
        check(ctl.lines("get", at, "--prefix", "--print-value-only", f"--rev={revision}"), values, f"--rev={revision}")
    ctl.refused("required revision is a future revision", "get", at + "a", f"--rev={gone + 1000000}")
    if ctl.new:
        ctl.ok("put", at + "b", "again")
        check(ctl.keys(at, f"--min-mod-rev={gone}"), [at + "b"], "--min-mod-rev")
        check(ctl.keys(at, f"--max-mod-rev={gone}"), [at + "a"], "--max-mod-rev")
        check(ctl.keys(at, f"--min-create-rev={second}"), [at + "b"], "--min-create-rev")
        check(ctl.keys(at, f"--max-create-rev={first}"), [at + "a"], "--max-create-rev")
        check(ctl.json("get", at, "--prefix", f"--max-create-rev={first}")["count"], 2, "the count does not see the filters")


@case()
def deletions(ctl, at):
    for letter in "abcdefgh":
        ctl.ok("put", at + letter, letter.upper())
    check(ctl.ok("del", at + "a"), "1\n", "del")
    check(ctl.ok("del", at + "a"), "0\n", "del of nothing")
    check(ctl.lines("del", at + "b", "--prev-kv"), ["1", at + "b", "B"], "--prev-kv")
    check(ctl.ok("del", at + "c", at + "e"), "2\n", "del of a range")
    if ctl.new:
        check(ctl.ok("del", "--range", at + "e", at + "f"), "1\n", "del --range")
    check(ctl.ok("del", at + "zz", "--prefix"), "0\n", "del --prefix of nothing")
    # Once would do, but a lease of an earlier case may end just then, which takes a revision.
    check(any(takes_no_revision(ctl, "del", at + "zz", "--prefix") for _ in range(3)), True, "a deletion of nothing takes no revision")
    check(ctl.lines("del", at, "--prefix", "--prev-kv")[-2:], [at + "h", "H"], "del --prefix --prev-kv")
    ctl.ok("put", "\x7fa", "1")
    ctl.ok("put", "\x7fb", "2")
    check(ctl.ok("del", "\x7fa", "--from-key"), "2\n", "del --from-key")
    check(ctl.ok("get", at, "--prefix"), "", "nothing is left")


def takes_no_revision(ctl, *command):
    before = ctl.json("get", "none")["header"]["revision"]
    ctl.ok(*command)
    return ctl.json("get", "none")["header"]["revision"] == before


# --- transactions ----------------------------------------------------------------------------------------------------

def transaction(compares, success, failure):
    return "\n".join([*compares, "", *success, "", *failure, ""]) + "\n"


@case()
def comparisons(ctl, at):
    lease = ctl.grant()
    first = ctl.put(at + "a", "m")
    second = ctl.put(at + "a", "m", f"--lease={lease}")
    targets = (("version", 2), ("ver", 2), ("create", first), ("c", first), ("mod", second), ("m", second), ("value", "m"),
               ("val", "m"), ("lease", lease))
    for target, value in targets if ctl.new else targets[:-1]:  # 3.4 ends in a panic over a comparison of leases.
        less, more = ("l", "n") if value == "m" else (f"{int(str(value), 16 if target == 'lease' else 10) + step:x}"
                                                      if target == "lease" else int(value) + step for step in (-1, 1))
        for operator, truths in (("=", (False, True, False)), ("<", (False, False, True)), (">", (True, False, False)),
                                 ("!=", (True, False, True))):
            if operator == "!=" and not ctl.new:
                continue
            for other, truth in zip((less, value, more), truths):
                said = ctl.lines("txn", stdin=transaction([f'{target}("{at}a") {operator} "{other}"'], [], []))[0]
                check(said, "SUCCESS" if truth else "FAILURE", f"{target} {operator} {other} where it is {value}")
    for compare, truth in ((f'version("{at}none") = "0"', True), (f'create("{at}none") = "0"', True), (f'mod("{at}none") = "0"', True),
                           (f'value("{at}none") = ""', False), (f'value("{at}none") < "z"', False)):
        check(ctl.lines("txn", stdin=transaction([compare], [], []))[0], "SUCCESS" if truth else "FAILURE", compare)


@case()
def transactions(ctl, at):
    ctl.ok("put", at + "d", "to go")
    steps = [f'put {at}a "a value"', f"put {at}b second", f"get {at}a", f"del {at}d --prev-kv", f"get {at} --prefix"]
    said = ctl.lines("txn", stdin=transaction([f'version("{at}a") = "0"', f'version("{at}b") = "0"'], steps, [f"get {at}a"]))
    check([line for line in said if line], ["SUCCESS", "OK", "OK", at + "a", "a value", "1", at + "d", "to go", at + "a", "a value",
                                             at + "b", "second"], "txn")
    said = ctl.lines("txn", stdin=transaction([f'version("{at}a") = "0"'], [f"put {at}a never"], [f"get {at}a"]))
    check([line for line in said if line], ["FAILURE", at + "a", "a value"], "the other branch")
    said = ctl.json("txn", stdin=transaction([], [f"put {at}a 2", f"put {at}c 3"], []))
    check(said["succeeded"], True, "no comparison")
    inner = "response_put" if ctl.new else "ResponsePut"
    revisions = {answer["Response"][inner]["header"]["revision"] for answer in said["responses"]}
    check(revisions, {said["header"]["revision"]}, "one revision for all")
    ctl.refused("duplicate key given in txn request", "txn", stdin=transaction([], [f"put {at}a 1", f"put {at}a 2"], []))
    interactive = ctl.ok("txn", "-i", stdin=transaction([f'value("{at}a") = "2"'], [f"put {at}a 4"], []))
    for prompt in ("compares:", "success requests (get, put, del):", "failure requests (get, put, del):", "SUCCESS", "OK"):
        check_in(prompt, interactive, "txn -i")
    check(ctl.lines("get", at + "a", "--print-value-only"), ["4"], "after txn -i")


# --- watches ---------------------------------------------------------------------------------------------------------

def watched(ctl, *arguments):
    """A watch that is known to be there: entries beside it are put until one shows."""
    return ctl.running("watch", *arguments)


@case()
def watch_one(ctl, at):
    first = ctl.put(at + "a", "before")
    with watched(ctl, at + "a", f"--rev={first + 1}") as watch:
        ctl.ok("put", at + "a", "one")
        ctl.ok("put", at + "b", "not seen")
        ctl.ok("del", at + "a")
        ctl.ok("put", at + "a", "two")
        check(watch.take(8), ["PUT", at + "a", "one", "DELETE", at + "a", "", "PUT", at + "a"], "events of one key")
        check(watch.line(), "two", "the last event")


@case()
def watch_flags(ctl, at):
    first = ctl.put(at + "a", "before")
    with watched(ctl, at, "--prefix", "--prev-kv", f"--rev={first + 1}") as watch:
        ctl.ok("put", at + "a", "after")
        ctl.ok("del", at + "a")
        ctl.ok("put", at + "n", "new")
        check(watch.take(5), ["PUT", at + "a", "before", at + "a", "after"], "--prefix --prev-kv")
        check(watch.take(5), ["DELETE", at + "a", "after", at + "a", ""], "a deletion with --prev-kv")
        check(watch.take(3), ["PUT", at + "n", "new"], "a new key has no entry before")
    with watched(ctl, at + "a", at + "c", f"--rev={first}") as watch:
        check(watch.take(9), ["PUT", at + "a", "before", "PUT", at + "a", "after", "DELETE", at + "a", ""], "a range from the past")
        ctl.ok("put", at + "c", "beyond the range")
        ctl.ok("put", at + "bb", "within")
        check(watch.take(3), ["PUT", at + "bb", "within"], "a range")
    with ctl.running("-w", "json", "watch", at, "--prefix", f"--rev={first}") as watch:
        said = json.loads(watch.line())
        check(said["Events"][0]["kv"]["mod_revision"], first, "events in JSON")
    with ctl.running("-w", "fields", "watch", at, "--prefix", f"--rev={first}") as watch:
        watch.until(rf'^"ModRevision" : {first}$')


@case()
def watch_future(ctl, at):
    far = ctl.put(at + "a", "before") + 3
    with watched(ctl, at, "--prefix", f"--rev={far}") as watch:
        revisions = [ctl.put(at + "a", f"put {number}") for number in range(6)]
        for number, revision in enumerate(revisions):
            if revision >= far:
                check(watch.take(3), ["PUT", at + "a", f"put {number}"], f"revision {revision} with --rev={far}")


@case()
def watch_exec(ctl, at):
    first = ctl.put(at + "a", "x y")
    shown = 'echo "$ETCD_WATCH_EVENT_TYPE $ETCD_WATCH_KEY $ETCD_WATCH_VALUE $ETCD_WATCH_REVISION"'
    with watched(ctl, at + "a", f"--rev={first}", "--", "sh", "-c", shown) as watch:
        found = watch.until(r'^"PUT" (\S+) (".*") (\d+)$').groups()
        check((found[0], found[1], int(found[2]) >= first), (f'"{at}a"', '"x y"', True), "the environment of the program")


@case()
def watch_interactive(ctl, at):
    first = ctl.put(at + "a", "one")
    with ctl.running("watch", "-i") as watch:
        watch.send(f"watch {at}a --rev={first}\n")
        check(watch.take(3), ["PUT", at + "a", "one"], "the first watch")
        watch.send(f"watch {at}b {at}d --rev={first}\n")
        ctl.ok("put", at + "c", "two")
        check(watch.take(3), ["PUT", at + "c", "two"], "a second watch in the same stream")
        watch.send("progress\n")
        revision = int(watch.until(r"^progress notify: (\d+)$").group(1))
        check(revision > first, True, "the revision of progress")
        ctl.ok("put", at + "a", "three")
        watch.until("^PUT$")  # Progress shows once for each watch.
        check(watch.take(2), [at + "a", "three"], "after progress")


@case(since="3.6")
def watch_progress_notify(ctl, at):
    with watched(ctl, at, "--prefix", "--progress-notify", f"--rev={ctl.put(at + 'a', 'one')}") as watch:
        check(watch.take(3), ["PUT", at + "a", "one"], "a watch with --progress-notify")


# --- compaction ------------------------------------------------------------------------------------------------------

@case()
def compaction(ctl, at):
    first = ctl.put(at + "a", "one")
    second = ctl.put(at + "a", "two")
    check(ctl.ok("compaction", str(second)), f"compacted revision {second}\n", "compaction")
    ctl.refused("required revision has been compacted", "get", at + "a", f"--rev={first}")
    check(ctl.lines("get", at + "a", "--print-value-only", f"--rev={second}"), ["two"], "the revision itself is kept")
    ctl.refused("required revision has been compacted", "compaction", str(second))
    ctl.refused("required revision is a future revision", "compaction", str(second + 1000000))
    with watched(ctl, at + "a", f"--rev={first}") as watch:
        watch.until("required revision has been compacted")
    third = ctl.put(at + "a", "three")
    check(ctl.ok("compaction", "--physical", str(third)), f"compacted revision {third}\n", "compaction --physical")
    for address in ctl.addresses:
        ctl.refused("required revision has been compacted", "get", at + "a", f"--rev={second}", at=address)


# --- leases ----------------------------------------------------------------------------------------------------------

@case()
def leases(ctl, at):
    lease, other = ctl.grant(100), ctl.grant(200)
    found = re.fullmatch(r"lease (\S+) granted with TTL\(100s\), remaining\((\d+)s\)\n", ctl.ok("lease", "timetolive", lease))
    check((found.group(1), 90 <= int(found.group(2)) <= 100), (lease, True), "timetolive")
    check_in("attached keys([])", ctl.ok("lease", "timetolive", lease, "--keys"), "no key")
    for letter in "ba":
        ctl.ok("put", at + letter, letter, f"--lease={lease}")
    said = ctl.ok("lease", "timetolive", lease, "--keys")
    check(set(re.search(r"attached keys\(\[(.*)\]\)", said).group(1).split()), {at + "a", at + "b"}, "timetolive --keys")
    listed = ctl.lines("lease", "list")
    check(re.fullmatch(r"found \d+ leases", listed[0]) is not None and {lease, other} <= set(listed[1:]), True, "lease list")
    check(ctl.ok("lease", "revoke", lease), f"lease {lease} revoked\n", "revoke")
    check(ctl.ok("get", at, "--prefix"), "", "its entries go with it")
    check(lease in ctl.lines("lease", "list"), False, "a revoked lease is not listed")
    check_in("already expired", ctl.ok("lease", "timetolive", lease), "timetolive of what is not there")
    ctl.refused("requested lease not found", "lease", "revoke", lease)
    answer = ctl.json("lease", "timetolive", other)
    check((answer["id"], answer["granted-ttl"]), (int(other, 16), 200), "timetolive in JSON")
    for output in ("fields", "table"):
        ctl.run("-w", output, "lease", "timetolive", other)
    check_in('"GrantedTTL" : 200', ctl.ok("-w", "fields", "lease", "timetolive", other), "timetolive as fields")


@case()
def lease_keep_alive(ctl, at):
    lease = ctl.grant(60)
    check(ctl.ok("lease", "keep-alive", "--once", lease), f"lease {lease} keepalived with TTL(60)\n", "keep-alive --once")
    short = re.match(r"lease (\S+) granted", ctl.ok("lease", "grant", "2")).group(1)
    ctl.ok("put", at + "a", "x", f"--lease={short}")
    with ctl.running("lease", "keep-alive", short) as kept:
        for _ in range(5):
            check(kept.line().startswith(f"lease {short} keepalived with TTL("), True, "keep-alive")
        check(ctl.lines("get", at + "a", "--print-value-only"), ["x"], "it lives for longer than its time")
        ctl.ok("lease", "revoke", short)
        check(kept.line(), f"lease {short} expired or revoked.", "keep-alive of what was revoked")
    check_in("expired or revoked", ctl.ok("lease", "keep-alive", short), "keep-alive of what is not there")


@case()
def lease_expires(ctl, at):
    said = re.fullmatch(r"lease (\S+) granted with TTL\((\d+)s\)\n", ctl.ok("lease", "grant", "1"))
    revision = ctl.put(at + "a", "x", f"--lease={said.group(1)}")
    ctl.ok("put", at + "b", "x", f"--lease={said.group(1)}")
    with ctl.running("-w", "json", "watch", at, "--prefix", f"--rev={revision + 1}") as watch:
        events = []
        while len(events) < 3:
            events += json.loads(watch.line())["Events"]
        check([event.get("type") for event in events[1:]], [1, 1], "what hangs on it is deleted")
        check(len({event["kv"]["mod_revision"] for event in events[1:]}), 1, "in one revision")
    check(ctl.ok("get", at, "--prefix"), "", "its entries are gone")


# --- coordination ----------------------------------------------------------------------------------------------------

@case()
def lock(ctl, at):
    name = at + "lock"
    with ctl.running("lock", name) as first:
        key = first.line()
        check(re.fullmatch(re.escape(name) + "/[0-9a-f]+", key) is not None, True, f"the key {key}")
        check(ctl.lines("get", key)[0], key, "the entry of the lock")
        with ctl.running("lock", name) as second:
            eventually("the second waits", lambda: len(ctl.keys(name + "/")) == 2)
            check(second.lines.empty(), True, "the second does not have it")
            first.interrupt()
            check(second.line() in ctl.keys(name + "/"), True, "the second has it")
            second.interrupt()
    eventually("nobody has it", lambda: not ctl.keys(name + "/"))


@case()
def lock_command(ctl, at):
    name = at + "lock"
    done = ctl.run("lock", "--ttl=5", name, "--", "sh", "-c", 'echo "$ETCD_LOCK_KEY"; exit 7')
    check((done.returncode, done.stdout.startswith(name + "/")), (7 if ctl.new else 1, True), "the program's answer")
    counter = tempfile.NamedTemporaryFile("w+")
    counter.write("0\n")
    counter.flush()
    add = f'n=$(cat {counter.name}); sleep 0.05; echo $((n + 1)) >{counter.name}'
    contenders = [threading.Thread(target=ctl.run, args=("lock", name, "--", "sh", "-c", add)) for _ in range(8)]
    for each in contenders:
        each.start()
    for each in contenders:
        each.join()
    with open(counter.name) as file:
        check(file.read(), "8\n", "eight programs, one after the other")


@case()
def elect(ctl, at):
    name = at + "election"
    with ctl.running("elect", "--listen", name) as observer, ctl.running("elect", name, "alice") as alice:
        key, proposal = alice.take(2)
        check((key.startswith(name + "/"), proposal), (True, "alice"), "the first candidate")
        check(observer.take(2), [key, "alice"], "what an observer sees")
        with ctl.running("elect", name, "bob") as bob:
            eventually("bob stands, too", lambda: len(ctl.keys(name + "/")) == 2)
            check(bob.lines.empty(), True, "bob does not lead")
            alice.interrupt()
            key, proposal = bob.take(2)
            check(proposal, "bob", "the second candidate")
            check(observer.take(2), [key, "bob"], "the observer sees the change")
            bob.interrupt()


# --- the cluster -----------------------------------------------------------------------------------------------------

@case()
def member_list(ctl, at):
    members = ctl.json("member", "list")["members"]
    check(len(members), len(ctl.addresses), "members")
    check({url for member in members for url in member["clientURLs"]}, {f"http://{address}" for address in ctl.addresses},
          "where their clients connect")
    simple = ctl.lines("member", "list")
    for member in members:
        line = f"{member['ID']:x}, started, {member['name']}, {member['peerURLs'][0]}, {member['clientURLs'][0]}, false"
        check_in(line, simple, "member list")
    check(ctl.ok("-w", "table", "member", "list").count("| started |"), len(members), "as a table")
    check(ctl.ok("-w", "fields", "member", "list").count('"ClientURL" :'), len(members), "as fields")


@case()
def endpoint_status(ctl, at):
    ctl.ok("put", at + "a", "x")
    status = ctl.json("endpoint", "status")
    check([each["Endpoint"] for each in status], ctl.addresses, "one for each")
    bodies = [each["Status"] for each in status]
    check(len({body["leader"] for body in bodies}), 1, "one leader for all")
    check(bodies[0]["leader"] in {body["header"]["member_id"] for body in bodies}, True, "the leader is a member")
    numbers = all(body[name] > 0 for body in bodies for name in ("dbSize", "raftIndex", "raftTerm"))
    check(numbers and all(body["version"].startswith("3.") for body in bodies), True, f"the numbers in {bodies}")
    for output in ("simple", "table", "fields"):
        said = ctl.ok("-w", output, "endpoint", "status")
        for address in ctl.addresses:
            check_in(address, said, f"as {output}")
    cluster = ctl.json("endpoint", "status", "--cluster", at=ctl.addresses[0])
    check({each["Endpoint"] for each in cluster}, {f"http://{address}" for address in ctl.addresses}, "--cluster")


@case()
def endpoint_health(ctl, at):
    health = ctl.json("endpoint", "health")
    check({each["endpoint"]: each["health"] for each in health}, {address: True for address in ctl.addresses}, "each is healthy")
    simple = ctl.run("endpoint", "health")
    check((simple.stdout + simple.stderr).count("is healthy: successfully committed proposal"), len(ctl.addresses), "endpoint health")
    check(ctl.ok("-w", "table", "endpoint", "health").count("true"), len(ctl.addresses), "as a table")
    check(len(ctl.json("endpoint", "health", "--cluster", at=ctl.addresses[0])), len(ctl.addresses), "--cluster")
    check(ctl.run("endpoint", "health", at="127.0.0.1:1").returncode, 1, "an address where nobody is")


@case()
def endpoint_hashkv(ctl, at):
    revision = ctl.put(at + "a", "x")
    hashes = ctl.json("endpoint", "hashkv", f"--rev={revision}")
    check([each["Endpoint"] for each in hashes], ctl.addresses, "one for each")
    check(len({each["HashKV"]["hash"] for each in hashes}), 1, f"the hash is the same everywhere: {hashes}")
    revision = ctl.put(at + "a", "y")
    again = ctl.json("endpoint", "hashkv", f"--rev={revision}")
    check(again[0]["HashKV"]["hash"] != hashes[0]["HashKV"]["hash"], True, "another state has another hash")
    for output in ("simple", "table", "fields"):
        check_in(ctl.addresses[-1], ctl.ok("-w", output, "endpoint", "hashkv"), f"as {output}")


@case()
def alarm(ctl, at):
    check(ctl.ok("alarm", "list"), "", "no alarm")
    check(ctl.ok("alarm", "disarm"), "", "none to disarm")
    check(ctl.ok("-w", "fields", "alarm", "list").count("NOSPACE"), 0, "no alarm as fields")
    check(ctl.json("alarm", "list").get("alarms"), None, "no alarm in JSON")


@case()
def defrag(ctl, at):
    done = ctl.run("defrag", patience=60)
    said = done.stdout + done.stderr
    check(done.returncode, 0, said)
    for address in ctl.addresses:
        check_in(f"inished defragmenting etcd member[{address}]", said, "defrag")
    check(ctl.run("defrag", "--cluster", at=ctl.addresses[0], patience=60).returncode, 0, "defrag --cluster")


@case(members=3)
def move_leader(ctl, at):
    status = {each["Endpoint"]: each["Status"] for each in ctl.json("endpoint", "status")}
    leader = next(body["leader"] for body in status.values())
    at_leader = next(address for address, body in status.items() if body["header"]["member_id"] == leader)
    at_other, other = next((address, body["header"]["member_id"]) for address, body in status.items() if address != at_leader)
    if ctl.new:
        ctl.refused("no leader endpoint given", "move-leader", f"{other:x}", at=at_other)
    check(ctl.ok("move-leader", f"{other:x}"), f"Leadership transferred from {leader:x} to {other:x}\n", "move-leader")
    eventually("all know the new one", lambda: {each["Status"]["leader"] for each in ctl.json("endpoint", "status")} == {other})


@case()
def snapshot_save(ctl, at):
    ctl.ok("put", at + "a", "x" * 1000)
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "snapshot")
        check_in(f"Snapshot saved at {file}", ctl.ok("snapshot", "save", file, at=ctl.addresses[0], patience=60), "snapshot save")
        check(os.path.getsize(file) > 1000, True, "the file has something in it")


@case()
def member_changes(ctl, at):
    said = ctl.ok("member", "add", "absent", "--learner", "--peer-urls=http://127.0.0.1:1")
    member = re.search(r"Member\s+(\S+) added (?:as learner )?to cluster", said).group(1)
    try:
        check_in("ETCD_INITIAL_CLUSTER_STATE=\"existing\"", said, "what the new one is started with")
        check_in(f"{member}, unstarted, ", ctl.ok("member", "list"), "it is listed")
        check_in("updated in cluster", ctl.ok("member", "update", member, "--peer-urls=http://127.0.0.1:2"), "member update")
        check_in("http://127.0.0.1:2", ctl.ok("member", "list"), "its new address")
        ctl.refused("can only promote a learner member which is in sync with leader", "member", "promote", member)
    finally:
        check_in("removed from cluster", ctl.ok("member", "remove", member), "member remove")
    check(member in ctl.ok("member", "list"), False, "it is gone")
    ctl.refused("member not found", "member", "remove", member)


@case(since="3.6")
def downgrade(ctl, at):
    check_in("success", ctl.ok("downgrade", "validate", "3.5.0").lower(), "downgrade validate")


@case(since="3.6")
def check_performance(ctl, at):
    done = ctl.run("check", "perf", "--load=s", f"--prefix={at}", "--auto-compact", "--auto-defrag", patience=180)
    # Whether that is fast enough says more about the disk than about the servers.
    for part in ("writes/s", "lowest request took", "tddev"):
        check_in(part, done.stdout, "check perf")
    check("rror" in done.stdout or "ERROR" in done.stdout, False, f"errors in {done.stdout}")
    check(ctl.ok("get", at, "--prefix"), "", "what it wrote is deleted")


# --- mirrors ---------------------------------------------------------------------------------------------------------

@case()
def make_mirror(ctl, at):
    for number in range(150):
        ctl.ok("put", f"{at}from/{number:03}", str(number))
    arguments = ("make-mirror", ctl.addresses[0], f"--prefix={at}from/", f"--dest-prefix={at}to/")
    with ctl.running(*arguments):
        eventually("all is there", lambda: len(ctl.keys(at + "to/")) == 150)
        ctl.ok("put", at + "from/new", "later")
        ctl.ok("del", at + "from/000")
        eventually("what is new comes, too", lambda: ctl.lines("get", at + "to/new", "--print-value-only") == ["later"])
        eventually("what is deleted goes", lambda: not ctl.ok("get", at + "to/000"))
    wanted = [line.replace("/from/", "/to/") for line in ctl.lines("get", at + "from/", "--prefix")]
    check(ctl.lines("get", at + "to/", "--prefix"), wanted, "the mirror")


# --- users and roles -------------------------------------------------------------------------------------------------

@case()
def roles(ctl, at):
    check(ctl.ok("role", "add", "reader"), "Role reader created\n", "role add")
    try:
        ctl.refused("role name already exists", "role", "add", "reader")
        check(ctl.ok("role", "grant-permission", "reader", "read", at + "a"), "Role reader updated\n", "one key")
        ctl.ok("role", "grant-permission", "reader", "write", at + "p", "--prefix=true")
        ctl.ok("role", "grant-permission", "reader", "readwrite", at + "x", at + "z")
        said = ctl.lines("role", "get", "reader")
        found = {line.strip() for line in said}
        for line in (at + "a", f"[{at}p, {at}q) (prefix {at}p)", f"[{at}x, {at}z)", "Role reader", "KV Read:", "KV Write:"):
            check_in(line, found, "role get")
        ctl.ok("role", "revoke-permission", "reader", at + "a")
        check(f"\t{at}a" in ctl.lines("role", "get", "reader"), False, "role revoke-permission")
        check_in("reader", ctl.lines("role", "list"), "role list")
    finally:
        check(ctl.ok("role", "delete", "reader"), "Role reader deleted\n", "role delete")
    ctl.refused("role name not found", "role", "get", "reader")


@case()
def roles_of_prefixes(ctl, at):
    ctl.ok("role", "add", "reader")
    try:
        ctl.ok("role", "grant-permission", "reader", "read", at + "r", "--prefix=true")
        ctl.ok("role", "grant-permission", "reader", "readwrite", at + "p", "--prefix=true")
        found = [line.strip() for line in ctl.lines("role", "get", "reader")]
        for line, times in ((f"[{at}r, {at}s) (prefix {at}r)", 1), (f"[{at}p, {at}q) (prefix {at}p)", 2)):
            check(found.count(line), times, f"{line} in {found}")
        ctl.ok("role", "revoke-permission", "reader", at + "p", "--prefix=true")
        check(any(at + "p" in line for line in ctl.lines("role", "get", "reader")), False, "role revoke-permission")
    finally:
        ctl.ok("role", "delete", "reader")
    check("reader" in ctl.lines("role", "list"), False, "role delete")


@case()
def users_without_password(ctl, at):
    check(ctl.ok("user", "add", "carol", "--no-password"), "User carol created\n", "user add --no-password")
    ctl.ok("role", "add", "writer")
    try:
        ctl.refused("user name already exists", "user", "add", "carol", "--no-password")
        check(ctl.ok("user", "grant-role", "carol", "writer"), "Role writer is granted to user carol\n", "grant-role")
        check(ctl.lines("user", "get", "carol"), ["User: carol", "Roles: writer"], "user get")
        check(ctl.ok("user", "revoke-role", "carol", "writer"), "Role writer is revoked from user carol\n", "revoke-role")
        check_in("carol", ctl.lines("user", "list"), "user list")
    finally:
        ctl.ok("role", "delete", "writer")
        check(ctl.ok("user", "delete", "carol"), "User carol deleted\n", "user delete")
    ctl.refused("user name not found", "user", "get", "carol")


@case()
def users(ctl, at):
    check(ctl.ok("user", "add", "alice:secret"), "User alice created\n", "user add")
    ctl.ok("role", "add", "writer")
    try:
        ctl.refused("user name already exists", "user", "add", "alice:secret")
        check(ctl.ok("user", "grant-role", "alice", "writer"), "Role writer is granted to user alice\n", "grant-role")
        ctl.refused("role name not found", "user", "grant-role", "alice", "nothing")
        check(ctl.lines("user", "get", "alice"), ["User: alice", "Roles: writer"], "user get")
        check_in("Role writer", ctl.ok("user", "get", "alice", "--detail"), "user get --detail")
        check(ctl.ok("user", "passwd", "alice", "--interactive=false", stdin="other\n"), "Password updated\n", "passwd")
        check(ctl.ok("user", "revoke-role", "alice", "writer"), "Role writer is revoked from user alice\n", "revoke-role")
        check_in("alice", ctl.lines("user", "list"), "user list")
    finally:
        ctl.ok("role", "delete", "writer")
        check(ctl.ok("user", "delete", "alice"), "User alice deleted\n", "user delete")
    ctl.refused("user name not found", "user", "get", "alice")


@case()
def authentication(ctl, at):
    ctl.ok("put", at + "private/a", "x")
    try:
        with_authentication(ctl, at)
    finally:
        ctl.user = ["--user=root:top"]
        said = ctl.run("auth", "disable")
        ctl.user = []
        for user in ("root", "bob"):
            ctl.run("user", "delete", user)
        for role in ("root", "public"):
            ctl.run("role", "delete", role)
    check(said.stdout, "Authentication Disabled\n", f"auth disable: {said.stderr}")
    check(ctl.lines("get", at + "private/a", "--print-value-only"), ["x"], "without a user again")
    check(ctl.ok("user", "list") + ctl.ok("role", "list"), "", "users and roles that are left")


def with_authentication(ctl, at):
    for arguments in (("user", "add", "root:top"), ("role", "add", "root"), ("user", "grant-role", "root", "root"),
                      ("user", "add", "bob:secret"), ("role", "add", "public"), ("user", "grant-role", "bob", "public"),
                      ("role", "grant-permission", "public", "readwrite", at + "public/", "--prefix=true"),
                      ("role", "grant-permission", "public", "read", at + "private/b")):
        ctl.ok(*arguments)
    check(ctl.ok("auth", "enable"), "Authentication Enabled\n", "auth enable")
    ctl.refused("user name is empty", "get", at + "private/a")
    ctl.user = ["--user=bob:wrong"]
    ctl.refused("authentication failed, invalid user ID or password", "get", at + "public/a")
    ctl.user = ["--user=bob:secret"]
    revision = ctl.put(at + "public/a", "1")
    check(ctl.lines("get", at + "public/", "--prefix", "--print-value-only"), ["1"], "what bob may read")
    check(ctl.ok("get", at + "private/b"), "", "what bob may read that is not there")
    for arguments in (("put", at + "private/b", "x"), ("get", at + "private/a"), ("get", at, "--prefix"),
                      ("del", at + "private/a"), ("user", "list"), ("auth", "disable")):
        ctl.refused("permission denied", *arguments)
    ctl.refused("permission denied", "txn", stdin=transaction([], [f"get {at}private/a"], []))
    ctl.refused("permission denied", "txn", stdin=transaction([f'version("{at}private/a") = "0"'], [], []))
    with ctl.running("watch", at + "private/a") as watch:
        watch.until("permission denied")
    with ctl.running("watch", at + "public/a", f"--rev={revision}") as watch:
        check(watch.take(3), ["PUT", at + "public/a", "1"], "what bob may watch")
    ctl.user = ["--user=root:top"]
    if ctl.new:
        check_in("Authentication Status: true", ctl.ok("auth", "status"), "auth status")
    ctl.user = ["--user=root", "--password=top"]
    check(ctl.lines("get", at + "private/a", "--print-value-only"), ["x"], "root may all")


# --- running ---------------------------------------------------------------------------------------------------------

def expected_failures(kind):
    """What expected.txt says of Quorate: the name of a case and why it fails."""
    if kind != "quorate":
        return {}
    with open(os.path.join(os.path.dirname(__file__), "expected.txt")) as file:
        lines = [line.split(None, 1) for line in file if line.strip() and not line.startswith("#")]
    return {name: reason.strip() for name, reason in lines}


def run_case(ctl, function):
    """Why it failed, or None."""
    at = f"/{function.__name__}/"
    ctl.ok("del", at, "--prefix")
    try:
        function(ctl, at)
        return None
    except Failure as failure:
        return str(failure)
    except Exception as error:  # What the program printed is not of the shape that the case reads.
        return f"{type(error).__name__}: {error}"


def main(kind, addresses, program, *names):
    unknown = set(names) - {function.__name__ for function, _, _ in CASES}
    if unknown:
        raise SystemExit(f"there is no case {', '.join(sorted(unknown))}")
    ctl = Etcdctl(program, addresses.split(","))
    print(f"etcdctl {ctl.version}")
    expected, counts, wrong = expected_failures(kind), {"ok": 0, "expected": 0, "skipped": 0}, 0
    for function, since, members in CASES:
        name = function.__name__
        reason = expected.get(name) or expected.get(f"{name}@{ctl.version[:3]}")
        if names and name not in names:
            continue
        if ctl.version < since or ctl.members < members:
            counts["skipped"] += 1
            continue
        started = time.monotonic()
        failure = run_case(ctl, function)
        took = f"{time.monotonic() - started:5.1f} s"
        if failure is None and not reason:
            counts["ok"] += 1
            print(f"  ok        {took}  {name}")
        elif failure is not None and reason:
            counts["expected"] += 1
            print(f"  expected  {took}  {name}: {reason} ({failure.strip()[:160]})")
        else:
            wrong += 1
            print(f"  FAILED    {took}  {name}: {(failure or 'passes, though expected.txt says that it fails').strip()[:800]}")
        sys.stdout.flush()
    print(f"etcdctl {ctl.version}: {counts['ok']} ok, {counts['expected']} fail as expected, {wrong} failed, "
          f"{counts['skipped']} not for it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
