#!/usr/bin/env python3
"""Owns which names CoreDNS has to know: writes entries over the JSON gateway and asks for them over DNS.

usage: names.py ADDRESS PORT     ADDRESS of an etcd, PORT of the CoreDNS on 127.0.0.1
"""

import base64
import json
import random
import socket
import struct
import sys
import time
import urllib.request

A, CNAME, TXT, AAAA, SRV = 1, 5, 16, 28, 33
NXDOMAIN = 3
PATIENCE = 20


class Etcd:
    def __init__(self, address):
        self.address = address

    def post(self, path, **body):
        request = urllib.request.Request(f"http://{self.address}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def put(self, key, record, lease="0"):
        self.post("kv/put", key=encoded(key), value=encoded(json.dumps(record)), lease=lease)

    def delete_prefix(self, prefix):
        self.post("kv/deleterange", key=encoded(prefix), range_end=encoded(prefix[:-1] + chr(ord(prefix[-1]) + 1)))


def encoded(text):
    return base64.b64encode(text.encode()).decode()


# --- DNS -------------------------------------------------------------------------------------------------------------

def ask(port, name, kind):
    """The code of the answer, and its records as (name, type, time to live, data)."""
    id = random.randrange(1 << 16)
    question = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0" + struct.pack(">HH", kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.settimeout(5)
        out.connect(("127.0.0.1", port))
        out.send(struct.pack(">HHHHHH", id, 0x0100, 1, 0, 0, 0) + question)
        packet = out.recv(65535)
    answered, flags, questions, answers = struct.unpack(">HHHH", packet[:8])
    if answered != id:
        raise ValueError("an answer to something else")
    at = 12
    for _ in range(questions):
        at = read_name(packet, at)[1] + 4
    records = []
    for _ in range(answers):
        owner, at = read_name(packet, at)
        kind, _, ttl, length = struct.unpack(">HHIH", packet[at:at + 10])
        at += 10
        records.append((owner, kind, ttl, read_data(packet, at, length, kind)))
        at += length
    return flags & 15, records


def read_name(packet, at):
    """The name at an offset, and where what follows it begins."""
    parts, end = [], None
    while packet[at]:
        if packet[at] >= 0xC0:
            end = end or at + 2
            at = struct.unpack(">H", packet[at:at + 2])[0] & 0x3FFF
            continue
        parts.append(packet[at + 1:at + 1 + packet[at]].decode())
        at += 1 + packet[at]
    return ".".join(parts), end or at + 1


def read_data(packet, at, length, kind):
    match kind:
        case 1 | 28:
            return socket.inet_ntop(socket.AF_INET if kind == A else socket.AF_INET6, packet[at:at + length])
        case 33:
            priority, weight, port = struct.unpack(">HHH", packet[at:at + 6])
            return priority, weight, port, read_name(packet, at + 6)[0]
        case 16:
            return packet[at + 1:at + 1 + packet[at]].decode()
        case _:
            return read_name(packet, at)[0]


# --- the cases -------------------------------------------------------------------------------------------------------

def check(found, wanted, what):
    if found != wanted:
        raise SystemExit(f"FAILED  {what}: {found} instead of {wanted}")
    print(f"  ok  {what}")


def data(port, name, kind):
    return sorted(record[3] for record in ask(port, name, kind)[1] if record[1] == kind)


def time_to_live(port, name):
    return ask(port, name, A)[1][0][2]


def main(address, port):
    etcd = Etcd(address)
    etcd.delete_prefix("/skydns/")
    check(ask(port, "nobody.quorate.test", A)[0], NXDOMAIN, "a name that nobody wrote")

    etcd.put("/skydns/test/quorate/one", {"host": "10.0.0.1"})
    check(data(port, "one.quorate.test", A), ["10.0.0.1"], "an address")
    check(time_to_live(port, "one.quorate.test"), 300, "its time to live, without a lease")
    etcd.put("/skydns/test/quorate/one", {"host": "10.0.0.9", "ttl": 60})
    check(data(port, "one.quorate.test", A), ["10.0.0.9"], "a changed address")
    check(time_to_live(port, "one.quorate.test"), 60, "its time to live, as the entry says")
    etcd.put("/skydns/test/quorate/six", {"host": "fd00::1"})
    check(data(port, "six.quorate.test", AAAA), ["fd00::1"], "an address of IPv6")
    etcd.put("/skydns/test/quorate/alias", {"host": "one.quorate.test"})
    check((data(port, "alias.quorate.test", CNAME), data(port, "alias.quorate.test", A)), (["one.quorate.test"], ["10.0.0.9"]), "an alias")
    etcd.put("/skydns/test/quorate/words", {"text": "said"})
    check(data(port, "words.quorate.test", TXT), ["said"], "a text")

    for number in range(1, 4):
        etcd.put(f"/skydns/test/quorate/web/x{number}", {"host": f"10.0.1.{number}", "port": 8000 + number, "priority": 10})
    check(data(port, "web.quorate.test", A), ["10.0.1.1", "10.0.1.2", "10.0.1.3"], "all below a name")
    check([(record[2], record[3]) for record in data(port, "web.quorate.test", SRV)],
          [(8001, "x1.web.quorate.test"), (8002, "x2.web.quorate.test"), (8003, "x3.web.quorate.test")], "their ports")

    lease = etcd.post("lease/grant", TTL="3")["ID"]
    etcd.put("/skydns/test/quorate/short", {"host": "10.0.0.2"}, lease=lease)
    check(data(port, "short.quorate.test", A), ["10.0.0.2"], "a name with a lease")
    check(time_to_live(port, "short.quorate.test") <= 3, True, "its time to live is that of the lease")
    deadline = time.monotonic() + PATIENCE
    while ask(port, "short.quorate.test", A)[0] != NXDOMAIN:
        if time.monotonic() > deadline:
            raise SystemExit("FAILED  a name outlives its lease")
        time.sleep(0.1)
    check(ask(port, "short.quorate.test", A)[0], NXDOMAIN, "it ends with its lease")
    etcd.delete_prefix("/skydns/")
    check(ask(port, "one.quorate.test", A)[0], NXDOMAIN, "a deleted name")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(sys.argv[1], int(sys.argv[2]))
