"""A client that is forked, against a real node."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

from quorate.testing import TestCluster
from tests.unit.test_fork import run

pytestmark = [pytest.mark.node, pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")]


def test_a_client_goes_on_in_a_parent_and_two_children(quorate_node: TestCluster, tmp_path: Path) -> None:
    p = uuid.uuid4().hex
    program = f"""
client = quorate.Client(ADDRESS)
client.insert("{p}/taken", "parent")
session = client.session(ttl=30)
lock = session.lock("{p}")

def work(name):
    own = wrong = refused = 0
    for n in range(150):
        own += client.insert(f"{p}/{{name}}/{{n}}", name).version == 1
        wrong += client.get(f"{p}/{{name}}/{{n}}").value != name
        try:
            client.insert("{p}/taken", name)
        except quorate.AlreadyExistsError as error:
            refused += error.current.value == "parent"
    if name == "parent":
        client.put("{p}/guarded", lock.token, guard=lock)
    yield f"{{name}}: {{own}} own, {{wrong}} wrong, {{refused}} refused, {{session.state}}"

at_once(work)
lock.release()
session.end()
"""
    said = run(program, quorate_node.endpoints, tmp_path)
    each = "150 own, 0 wrong, 150 refused"
    assert said == [f"first: {each}, lost", f"parent: {each}, alive", f"second: {each}, lost"]
    with quorate_node.client() as client:
        assert sum(1 for _ in client.scan(f"{p}/", keys_only=True)) == 452
