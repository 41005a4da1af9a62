"""Fixtures of pytest with real nodes, which pytest finds by itself. See `quorate.testing`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from quorate import AsyncClient, Client
    from quorate.testing import TestCluster


@pytest.fixture(scope="session")
def quorate_node() -> Iterator[TestCluster]:
    """A cluster of one node, for the whole session of tests: let each test have keys of its own."""
    from quorate.testing import TestCluster

    with TestCluster() as cluster:
        yield cluster


@pytest.fixture
def quorate_client(quorate_node: TestCluster) -> Iterator[Client]:
    """A blocking client of `quorate_node`."""
    with quorate_node.client() as client:
        yield client


@pytest.fixture
def quorate_async_client(quorate_node: TestCluster) -> Iterator[AsyncClient]:
    """A client for asyncio of `quorate_node`; it connects in the event loop in which it is used first."""
    client = quorate_node.async_client()
    yield client
    client.close()


@pytest.fixture
def quorate_cluster() -> Iterator[TestCluster]:
    """A cluster of three nodes of its own for a test, which may kill one."""
    from quorate.testing import TestCluster

    with TestCluster(3) as cluster:
        yield cluster
