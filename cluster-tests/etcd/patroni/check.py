"""Three members of PostgreSQL under Patroni, hurt in turn with the servers that Patroni keeps its state in.

Owns the members, a writer and an observer of theirs, and the order of what is done to them.
"""

import argparse
import contextlib
import json
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from importlib.metadata import version

import psycopg2
import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from gateway import Gateway, Ours  # noqa: E402
from servers import Ports  # noqa: E402

SCOPE = "conformance"
NAMES = ("one", "two", "three")
# The smallest that Patroni takes; the others leave it room to ask twice before its lease ends.
TTL, LOOP_WAIT, RETRY = 20, 3, 5
# What a failover may take beyond the lease: the expiry is found out, the replica notices, PostgreSQL promotes.
SLACK = 10


class Failed(Exception):
    """What was expected did not come about."""


def until(what, seconds, condition):
    """Waits until `condition` gives something, and returns it."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.1)


def expect(condition, what):
    if not condition:
        raise Failed(what)


def unprivileged():
    """What a command is put behind so that PostgreSQL takes it: root becomes the user postgres, and stays the owner of its files."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam("postgres")
    return ["unshare", "--user", f"--map-user={user.pw_uid}", f"--map-group={user.pw_gid}"]


class Member:
    """One PostgreSQL and the Patroni that runs it."""

    def __init__(self, name, args, credentials):
        self.name = name
        # No other test has these, even while the member is down.
        self.ports = Ports(2)
        self.port, self.rest_port = self.ports.numbers
        self.dir = os.path.join(args.dir, name)
        self.data = os.path.join(self.dir, "data")
        self.config = os.path.join(self.dir, "patroni.yml")
        self.log = os.path.join(self.dir, "log")
        self.process = None
        os.makedirs(self.dir)
        with open(self.config, "w", encoding="utf-8") as file:
            yaml.safe_dump(self.settings(args, credentials), file)

    def settings(self, args, credentials):
        local = "127.0.0.1"
        return {
            "scope": SCOPE,
            "name": self.name,
            "restapi": {"listen": f"{local}:{self.rest_port}", "connect_address": f"{local}:{self.rest_port}"},
            "etcd3": {"hosts": args.endpoints.split(","), **credentials},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL,
                    "loop_wait": LOOP_WAIT,
                    "retry_timeout": RETRY,
                    # So that a confirmed row is on the one that takes over.
                    "synchronous_mode": True,
                    "postgresql": {
                        "use_pg_rewind": True,
                        "use_slots": True,
                        "parameters": {
                            "shared_buffers": "16MB", "max_connections": 40,
                            "wal_keep_size": "64MB", "min_wal_size": "32MB", "max_wal_size": "64MB",
                        },
                        "pg_hba": [
                            "local all all trust",
                            f"host all all {local}/32 trust",
                            f"host replication all {local}/32 trust",
                        ],
                    },
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"],
            },
            "postgresql": {
                "listen": f"{local}:{self.port}",
                "connect_address": f"{local}:{self.port}",
                "data_dir": self.data,
                "bin_dir": args.postgres,
                "pgpass": os.path.join(self.dir, "pgpass"),
                "authentication": {
                    "superuser": {"username": "postgres", "password": "postgres"},
                    "replication": {"username": "replicator", "password": "replicator"},
                    "rewind": {"username": "rewinder", "password": "rewinder"},
                },
                "parameters": {"unix_socket_directories": self.dir},
            },
        }

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*unprivileged(), os.path.join(os.path.dirname(sys.executable), "patroni"), self.config],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )

    def stop(self):
        """As a supervisor does: PostgreSQL is stopped, too, unless Patroni is paused."""
        self.process.terminate()
        self.process.wait(60)
        self.process = None

    def kill_patroni(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def kill_postgres(self):
        pid = self.postmaster()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def postmaster(self):
        """Its process, None where it does not run. One that was killed leaves its file, and its number may be another's later."""
        try:
            with open(os.path.join(self.data, "postmaster.pid"), encoding="utf-8") as file:
                pid = int(file.readline())
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                return pid if file.read().strip() == "postgres" else None
        except (FileNotFoundError, ValueError):
            return None

    def rest(self, path, method="GET", body=None):
        """Status and body of Patroni's own interface; 0 where it does not answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.rest_port}{path}", data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def connect(self, **options):
        return psycopg2.connect(host="127.0.0.1", port=self.port, user="postgres", dbname="postgres", connect_timeout=2, **options)

    def ask(self, query):
        """The first row, or None where PostgreSQL does not answer."""
        try:
            with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
                cursor.execute(query)
                return cursor.fetchone()
        except psycopg2.Error:
            return None


class Writer(threading.Thread):
    """Inserts one row after the other through whichever member is primary, and remembers what was confirmed, and when."""

    def __init__(self, members):
        super().__init__(daemon=True)
        self.target = {
            "host": ",".join("127.0.0.1" for _ in members),
            "port": ",".join(str(each.port) for each in members),
            "user": "postgres", "dbname": "postgres", "connect_timeout": 2, "target_session_attrs": "read-write",
        }
        self.confirmed = []
        self.ending = threading.Event()

    def run(self):
        row = 0
        connection = None
        while not self.ending.wait(0.02):
            row += 1
            try:
                if connection is None:
                    connection = psycopg2.connect(**self.target)
                    connection.autocommit = True
                with connection.cursor() as cursor:
                    cursor.execute("insert into written values (%s)", (row,))
                self.confirmed.append((row, time.monotonic()))
            except psycopg2.Error:
                # Not confirmed; whether it was written does not matter, since the next one has another number.
                if connection is not None:
                    connection.close()
                connection = None

    def first_after(self, moment, seconds):
        """When the first row was confirmed after `moment`."""
        return until("a row is confirmed", seconds,
                     lambda: next((at for _, at in reversed(self.confirmed) if at > moment), None)
                     and next(at for _, at in self.confirmed if at > moment))

    def longest_gap(self, since):
        """The longest time between two confirmed rows, until now."""
        times = [since] + [at for _, at in self.confirmed if at > since] + [time.monotonic()]
        return max(after - before for before, after in zip(times, times[1:]))


class Observer(threading.Thread):
    """Looks all the time which members take writes. Two at once are what Patroni must never let happen."""

    def __init__(self, members):
        super().__init__(daemon=True)
        self.members = members
        self.twice = []
        self.looks = 0
        self.ending = threading.Event()

    def run(self):
        while not self.ending.wait(0.2):
            primaries = self.primaries()
            self.looks += 1
            # One after the other is no proof: the first may have stopped while the second was asked.
            if len(primaries) > 1 and len(self.primaries()) > 1:
                self.twice.append((time.monotonic(), primaries))

    def primaries(self):
        return [each.name for each in self.members if each.ask("select 1 where not pg_is_in_recovery()")]


class Check:
    """What is done, in order, and what is seen."""

    def __init__(self, args):
        # Not to be hurt where they are not ours.
        self.servers = Ours(args.servers) if args.servers else None
        self.gateway = self.servers.gateway if self.servers else Gateway(args.endpoints.split(","))
        credentials = {}
        if args.auth:
            _, password = self.servers.authenticate()
            credentials = {"username": "client", "password": password}
        self.members = [Member(name, args, credentials) for name in NAMES]
        self.writer = Writer(self.members)
        self.observer = Observer(self.members)
        self.times = []
        self.began = time.monotonic()

    # --- what the cluster says of itself

    def leader(self):
        """The member that takes writes and says so, or None."""
        for each in self.members:
            if each.rest("/primary")[0] == 200:
                return each
        return None

    def settled(self, replicas=2):
        """The leader, where all replicas stream from it and what is stored says the same as PostgreSQL of the synchronous one.

        Patroni's list of members is not asked: what they say of themselves may be as old as their last loop.
        """
        leader = self.leader()
        if leader is None or leader.ask("select count(*) from pg_stat_replication where state = 'streaming'") != (replicas,):
            return None
        synchronous = self.synchronous(leader)
        stored = json.loads(self.gateway.get(f"/service/{SCOPE}/sync") or "{}")
        return leader if synchronous and (stored.get("leader"), stored.get("sync_standby")) == (leader.name, synchronous) else None

    def synchronous(self, leader):
        """The replica without which no row is confirmed."""
        row = leader.ask("select application_name from pg_stat_replication where sync_state in ('sync', 'quorum')")
        return row and row[0]

    def wait_settled(self, seconds=90, replicas=2):
        return until(f"a leader and {replicas} replicas that stream", seconds, lambda: self.settled(replicas))

    def timeline(self, member):
        row = member.ask("select timeline_id from pg_control_checkpoint()")
        return row and row[0]

    def patronictl(self, *words, answers=""):
        program = os.path.join(os.path.dirname(sys.executable), "patronictl")
        done = subprocess.run([program, "-c", self.members[0].config, *words], input=answers, text=True, capture_output=True, timeout=120)
        expect(done.returncode == 0, f"patronictl {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def measured(self, what, since, until_when):
        seconds = until_when - since
        self.times.append((what, seconds))
        return seconds

    # --- the steps

    def bootstrap(self):
        began = time.monotonic()
        for each in self.members:
            each.start()
        leader = self.wait_settled(180)
        self.measured("bootstrap: one leader, two replicas stream", began, time.monotonic())
        with contextlib.closing(leader.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("create table written (row bigint primary key)")
            connection.commit()
        self.writer.start()
        self.observer.start()
        self.writer.first_after(time.monotonic(), 10)

    def primary_dies(self):
        old = self.wait_settled()
        killed = time.monotonic()
        old.kill_patroni()
        old.kill_postgres()
        new = until("another leads", TTL + SLACK, lambda: (found := self.leader()) and found is not old and found)
        self.measured("primary and its Patroni killed: another leads", killed, time.monotonic())
        self.measured("primary and its Patroni killed: next row confirmed", killed, self.writer.first_after(killed, TTL + SLACK))
        began = time.monotonic()
        old.start()
        expect(self.wait_settled() is new, "the old primary came back as a leader")
        self.measured("the old primary streams again", began, time.monotonic())

    def postgres_dies(self):
        """Patroni stays: it starts PostgreSQL again, or another takes over."""
        primary = self.wait_settled()
        before = primary.postmaster()
        killed = time.monotonic()
        primary.kill_postgres()
        until("a primary is back", TTL + SLACK,
              lambda: self.leader() not in (None, primary) or primary.postmaster() not in (None, before))
        self.writer.first_after(time.monotonic(), TTL + SLACK)
        self.measured("PostgreSQL of the primary killed: no row confirmed for", 0, self.writer.longest_gap(killed))
        self.wait_settled()

    def leader_of_servers_dies(self):
        primary = self.wait_settled()
        timeline = self.timeline(primary)
        server = self.servers.leader()
        killed = time.monotonic()
        self.servers.kill(server)
        self.stays_primary(primary, timeline, killed, TTL + LOOP_WAIT)
        self.servers.start(server)

    def servers_roll(self):
        primary = self.wait_settled()
        timeline = self.timeline(primary)
        began = time.monotonic()
        for server in range(1, len(self.servers.nodes) + 1):
            self.servers.stop(server)
            self.servers.start(server)
        self.stays_primary(primary, timeline, began, TTL)

    def stays_primary(self, primary, timeline, since, seconds):
        """Long enough that the lease would have ended, had it not been renewed."""
        while time.monotonic() < since + seconds:
            expect(primary.rest("/primary")[0] == 200, f"{primary.name} is no longer primary, {time.monotonic() - since:.1f} s after")
            time.sleep(0.2)
        expect(self.timeline(primary) == timeline, "there was a failover")
        gap = self.writer.longest_gap(since)
        expect(gap < 2, f"no row was confirmed for {gap:.1f} s")

    def quorum_is_lost(self):
        """Without servers nobody may lead: the primary gives up before its lease could be another's."""
        self.wait_settled()
        lost = time.monotonic()
        down = [1, 2]
        for server in down:
            self.servers.kill(server)
        until("nobody takes writes", TTL + SLACK, lambda: not self.observer.primaries())
        self.measured("quorum of the servers lost: the primary gave up", lost, time.monotonic())
        back = time.monotonic()
        self.servers.start_all(down)
        until("somebody leads", TTL + SLACK + 20, self.leader)
        self.measured("quorum is back: next row confirmed", back, self.writer.first_after(back, TTL + SLACK))
        self.wait_settled()

    def failsafe(self):
        """With failsafe mode the primary goes on without servers as long as all members answer it."""
        self.patronictl("edit-config", "--force", "--set", "failsafe_mode=true")
        primary = self.wait_settled()
        until("all know of failsafe mode", 30,
              lambda: all(json.loads(each.rest("/config")[1] or "{}").get("failsafe_mode") for each in self.members))
        until("who may vouch for the primary is stored", 30, lambda: f"/service/{SCOPE}/failsafe" in self.gateway.keys())
        timeline = self.timeline(primary)
        lost = time.monotonic()
        down = [2, 3]
        for server in down:
            self.servers.kill(server)
        self.stays_primary(primary, timeline, lost, TTL + SLACK)
        self.servers.start_all(down)
        expect(self.wait_settled() is primary, "another leads after the servers came back")
        self.patronictl("edit-config", "--force", "--set", "failsafe_mode=false")

    def edit_config(self):
        self.wait_settled()
        self.patronictl("edit-config", "--force", "--set", "maximum_lag_on_failover=2097152", "--pg", "work_mem=8MB")
        expect("work_mem: 8MB" in self.patronictl("show-config"), "patronictl show-config does not show the change")
        until("all members took the change", 30, lambda: all(each.ask("show work_mem") == ("8MB",) for each in self.members))

    def edits_race(self):
        """Each change replaces the config that it has read, so the ones that were taken are all there in the end."""
        taken, refused = [], []

        def edit(member, number):
            status, _ = member.rest("/config", "PATCH", {"tags_of_the_race": {f"{member.name}-{number}": number}})
            (taken if status == 200 else refused).append(f"{member.name}-{number}")

        threads = [threading.Thread(target=edit, args=(each, number)) for number in range(5) for each in self.members]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        stored = json.loads(self.gateway.get(f"/service/{SCOPE}/config")).get("tags_of_the_race", {})
        expect(taken, "no change was taken")
        expect(sorted(stored) == sorted(taken), f"taken were {sorted(taken)}, stored are {sorted(stored)}")
        self.patronictl("edit-config", "--force", "--set", "tags_of_the_race=null")
        return f"{len(taken)} taken, {len(refused)} refused"

    def switchover(self):
        old = self.wait_settled()
        candidate = self.synchronous(old)
        began = time.monotonic()
        self.patronictl("switchover", SCOPE, "--leader", old.name, "--candidate", candidate, "--force")
        new = self.wait_settled()
        expect(new.name == candidate, f"{new.name} leads instead of {candidate}")
        self.measured("switchover: no row confirmed for", 0, self.writer.longest_gap(began))
        expect(candidate in self.patronictl("list"), "patronictl list does not show the members")
        expect(candidate in self.patronictl("history"), "patronictl history does not show the switchover")

    def pause(self):
        primary = self.wait_settled()
        timeline = self.timeline(primary)
        self.patronictl("pause", "--wait")
        killed = time.monotonic()
        primary.kill_patroni()
        until("the leader's key has ended", TTL + SLACK, lambda: f"/service/{SCOPE}/leader" not in self.gateway.keys())
        # Unless paused, the others would take over in their next loop.
        time.sleep(LOOP_WAIT + 1)
        expect(self.observer.primaries() == [primary.name], "the paused cluster has another primary")
        primary.start()
        until("the leader is back", 60, lambda: self.leader() is primary)
        self.patronictl("resume", "--wait")
        expect(self.wait_settled() is primary and self.timeline(primary) == timeline, "there was a failover")
        expect(self.writer.longest_gap(killed) < 2, "no rows were confirmed while Patroni was down")

    def replica_stops(self):
        leader = self.wait_settled()
        replica = next(each for each in self.members if each is not leader)
        key = f"/service/{SCOPE}/members/{replica.name}"
        expect(key in self.gateway.keys(), f"there is no {key}")
        stopped = time.monotonic()
        replica.stop()
        until(f"{key} is gone", TTL + SLACK, lambda: key not in self.gateway.keys())
        self.measured("a replica stopped: its member key is gone", stopped, time.monotonic())
        expect(self.wait_settled(replicas=1) is leader, "another leads")
        replica.start()
        expect(self.wait_settled() is leader, "another leads")

    def reinit_and_restart(self):
        leader = self.wait_settled()
        replica = next(each for each in self.members if each is not leader)
        self.patronictl("reinit", SCOPE, replica.name, "--force", "--wait")
        leader = self.wait_settled()
        self.patronictl("restart", SCOPE, leader.name, "--force")
        # Only one that is synchronous has all rows: Patroni takes any where it is told to.
        candidate = self.synchronous(self.wait_settled())
        self.patronictl("failover", SCOPE, "--candidate", candidate, "--force")
        leader = self.wait_settled()
        expect(leader.name == candidate, f"{leader.name} leads instead of {candidate}")

    def rows_are_there(self):
        leader = self.wait_settled()
        self.writer.ending.set()
        self.writer.join()
        self.observer.ending.set()
        self.observer.join()
        confirmed = dict(self.writer.confirmed)
        (end,) = leader.ask("select pg_current_wal_lsn()")
        for each in self.members:
            if each is not leader:
                replayed = f"select 1 where pg_last_wal_replay_lsn() >= '{end}'"
                until(f"{each.name} has all of the log", 30, lambda each=each, replayed=replayed: each.ask(replayed))
        lost = {}
        for each in self.members:
            with contextlib.closing(each.connect()) as connection, connection.cursor() as cursor:
                cursor.execute("select row from written")
                missing = sorted(confirmed.keys() - {row for (row,) in cursor.fetchall()})
            if missing:
                when = confirmed[missing[0]] - self.began
                lost[each.name] = f"{len(missing)} from {missing[0]} on, confirmed {when:.1f} s after the start"
        expect(not lost, f"confirmed rows are missing, {leader.name} leads: {lost}")
        return f"{len(confirmed)} rows on all three"

    def never_two_primaries(self):
        expect(not self.observer.twice, f"two primaries: {self.observer.twice[:3]}")
        return f"{self.observer.looks} looks"

    def remove(self):
        for each in self.members:
            each.stop()
        until("the members' keys are gone", TTL + SLACK,
              lambda: not any(key.startswith(f"/service/{SCOPE}/members/") for key in self.gateway.keys()))
        self.patronictl("remove", SCOPE, answers=f"{SCOPE}\nYes I am aware\n")
        left = [key for key in self.gateway.keys() if key.startswith(f"/service/{SCOPE}/")]
        expect(not left, f"left after patronictl remove: {left}")

    def steps(self):
        yield "bootstrap", self.bootstrap
        yield "the primary and its Patroni are killed", self.primary_dies
        yield "the primary's PostgreSQL is killed", self.postgres_dies
        yield "patronictl edit-config", self.edit_config
        yield "changes of the config race", self.edits_race
        yield "patronictl switchover, list, history", self.switchover
        if self.servers:
            yield "the servers' leader is killed", self.leader_of_servers_dies
            yield "the servers are restarted in turn", self.servers_roll
            yield "the servers lose their quorum", self.quorum_is_lost
            yield "the same with failsafe mode", self.failsafe
        yield "patronictl pause, resume", self.pause
        yield "a replica is stopped", self.replica_stops
        yield "patronictl reinit, restart, failover", self.reinit_and_restart
        yield "confirmed rows are there", self.rows_are_there
        yield "never two primaries", self.never_two_primaries
        yield "patronictl remove", self.remove

    def run(self):
        for what, step in self.steps():
            began = time.monotonic()
            try:
                note = step()
            except Exception as error:  # Each ends the run, with what it says.
                print(f"FAILED  {what}: {type(error).__name__}: {error}", flush=True)
                self.show_logs()
                return False
            note = f"  ({note})" if isinstance(note, str) else ""
            print(f"ok  {time.monotonic() - began:6.1f} s  {what}{note}", flush=True)
        print("\nMeasured, in seconds:")
        for what, seconds in self.times:
            print(f"  {seconds:6.1f}  {what}")
        return True

    def show_logs(self):
        for each in self.members:
            print(f"--- the end of the log of {each.name}")
            with contextlib.suppress(FileNotFoundError), open(each.log, encoding="utf-8", errors="replace") as file:
                print("".join(file.readlines()[-25:]))

    def end(self):
        for each in self.members:
            if each.process is not None:
                each.kill_patroni()
            each.kill_postgres()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoints", required=True)
    parser.add_argument("--servers", default="")
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--auth", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.dir)
    # Ended from outside: what was started is still to be stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    postgres = subprocess.run([os.path.join(args.postgres, "postgres"), "--version"], text=True, capture_output=True, check=True)
    print(f"Patroni {version('patroni')}, {postgres.stdout.strip()}; ttl {TTL} s, loop_wait {LOOP_WAIT} s, retry_timeout {RETRY} s")
    check = Check(args)
    try:
        passed = check.run()
    finally:
        check.end()
    sys.exit(0 if passed else 1)


main()
