#!/usr/bin/env python3
"""The servers of a suite over the JSON gateway: what is stored, and turning authentication on. Shared by suites of clients.

usage: gateway.py authenticate DIRECTORY     turns authentication on at the servers that servers.py keeps in DIRECTORY; prints the
                                             passwords of `root` and of `client`, who may read and write what begins with /service/
"""

import base64
import json
import os
import secrets
import signal
import sys
import time
import urllib.error
import urllib.request

from servers import PATIENCE, Servers, alive

# All that the user `client` may touch.
PREFIX = "/service/"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def decoded(text):
    return base64.b64decode(text).decode()


class Gateway:
    """Calls the first server that can answer."""

    def __init__(self, addresses):
        self.addresses = addresses
        self.root_password = None
        self.token = None

    def call(self, path, body, address=None):
        problem = None
        for each in [address] if address else self.addresses:
            try:
                return self.ask(each, path, body)
            except urllib.error.HTTPError as error:
                said = error.read().decode()
                problem = RuntimeError(f"{path} answered {error.code}: {said}")
                # An etcd that was restarted does not know the tokens it gave.
                if error.code == 401 and self.root_password is not None:
                    self.token = None
                    self.token = self.ask(each, "/v3/auth/authenticate", {"name": "root", "password": self.root_password})["token"]
                    return self.ask(each, path, body)
                if error.code < 500 and error.code != 408:
                    raise problem from error
            except OSError as error:
                problem = error
        raise problem

    def ask(self, address, path, body):
        headers = {"Content-Type": "application/json"}
        if self.token:
            # Quorate's own interface takes it with the scheme, etcd's without.
            headers["Authorization"] = f"Bearer {self.token}" if path.startswith("/v1/") else self.token
        request = urllib.request.Request(f"http://{address}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.load(answer)

    def keys(self):
        """All keys."""
        answer = self.call("/v3/kv/range", {"key": encoded("\0"), "range_end": encoded("\0"), "keys_only": True})
        return {decoded(each["key"]) for each in answer.get("kvs", [])}

    def get(self, key):
        """The value of a key, None where it is not there."""
        entries = self.call("/v3/kv/range", {"key": encoded(key)}).get("kvs")
        return decoded(entries[0].get("value", "")) if entries else None

    def log_in(self, root_password):
        self.root_password = root_password
        self.token = self.call("/v3/auth/authenticate", {"name": "root", "password": root_password})["token"]


class Ours(Servers):
    """Servers of a suite, which may be stopped, too, and may ask who calls."""

    def __init__(self, directory):
        super().__init__(directory)
        self.gateway = Gateway(self.addresses())

    def serves(self, number):
        try:
            self.gateway.call("/v3/kv/range", {"key": encoded("health")}, self.nodes[number - 1]["client"])
            return True
        except (OSError, RuntimeError):
            return False

    def stop(self, number):
        """As an operator does."""
        node = self.nodes[number - 1]
        os.kill(node["pid"], signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while alive(node["pid"]):
            if time.monotonic() > deadline:
                raise RuntimeError(f"node {number} does not end")
            time.sleep(0.02)
        node["pid"] = None
        self._save()

    def start_all(self, numbers):
        """Together, since one alone may have no quorum."""
        for number in numbers:
            self._spawn(number)
        for number in numbers:
            self.wait(number)

    def leader(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for number, node in enumerate(self.nodes, 1):
                try:
                    status = self.gateway.call("/v3/maintenance/status", {}, node["client"])
                except (OSError, RuntimeError):
                    continue
                if status.get("leader", "0") == status["header"]["member_id"]:
                    return number
            time.sleep(0.05)
        raise RuntimeError("no node leads")

    def authenticate(self):
        """Turns authentication on. Returns the passwords of root and of client; in Quorate these are tokens."""
        call = self.gateway.call
        quorate = self.kind == "quorate"
        passwords = [secrets.token_hex(32), secrets.token_hex(32)]
        if not quorate:
            call("/v3/auth/user/add", {"name": "root", "password": passwords[0]})
            call("/v3/auth/role/add", {"name": "root"})
            call("/v3/auth/user/grant", {"user": "root", "role": "root"})
        user = {"options": {"no_password": True}} if quorate else {"password": passwords[1]}
        call("/v3/auth/user/add", {"name": "client", **user})
        call("/v3/auth/role/add", {"name": "clients"})
        end = PREFIX[:-1] + chr(ord(PREFIX[-1]) + 1)
        permission = {"permType": "READWRITE", "key": encoded(PREFIX), "range_end": encoded(end)}
        call("/v3/auth/role/grant", {"name": "clients", "perm": permission})
        call("/v3/auth/user/grant", {"user": "client", "role": "clients"})
        if quorate:
            passwords[1] = call("/v1/access/tokens", {"user": "client"})["token"]
            self.require_authentication(passwords[0])
        else:
            call("/v3/auth/enable", {})
        self.gateway.log_in(passwords[0])
        return passwords

    def require_authentication(self, root_token):
        """It is a setting of each node of Quorate, so all are started anew."""
        file = os.path.join(self.directory, "root-token")
        with open(file, "w", encoding="ascii") as token:
            token.write(root_token + "\n")
        os.chmod(file, 0o600)
        numbers = range(1, len(self.nodes) + 1)
        for number in numbers:
            self.kill(number)
            self.nodes[number - 1]["command"] += ["--auth", "required", "--root-token-file", file]
        # With what is a token already, no call has to wait for a quorum first.
        self.gateway.token = root_token
        self.start_all(numbers)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["authenticate", directory]:
            print(*Ours(directory).authenticate())
        case _:
            raise SystemExit(__doc__)
