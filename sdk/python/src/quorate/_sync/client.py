# Written by scripts/generate_sync.py out of quorate._async; do not edit.
"""The client: one object with all parts of the API.

Owns how it is made and closed. What it does is its parts'.
"""

from __future__ import annotations

from os import PathLike

from quorate._requests import Seconds
from quorate._retry import RetryPolicy
from quorate._settings import ATTEMPT_TIMEOUT_DEFAULT, TIMEOUT_DEFAULT, Reads, from_environment, settings
from quorate._sync._cluster import Cluster
from quorate._sync._core import Core, known_endpoints
from quorate._sync._documents import Documents
from quorate._sync._entries import Entries
from quorate._sync._mirror import Mirrors
from quorate._sync._queue import Queues
from quorate._sync._renewals import Renewals
from quorate._sync._session import Sessions
from quorate._sync._streams import Streams
from quorate._sync._tasks import Tasks
from quorate._sync._watch import Watches


class Client(Entries, Documents, Streams, Watches, Mirrors, Sessions, Queues, Tasks, Cluster):
    """A client of one cluster.

        with Client("10.0.0.1:7100,10.0.0.2:7100,10.0.0.3:7100") as client:
            client.put("greeting", "hello")

    Every write carries a request id, so it is repeated at another node until it is decided, and applied at most once.

    Args:
        endpoints: The nodes: `host:port`, separated by commas or as a list; one is enough, all of them are better. `https://` may stand
            before each, or `http://`; without either it is TLS where a CA is named, else plain. `unix:/path` is the Unix socket of a
            node on this machine, beside others or alone. `None`: the local cluster; an empty text or list is refused.
        timeout: Deadline of each call in seconds, retries included. A write is tried for 5 minutes at most, whatever this says: nodes
            remember its request id for 15.
        attempt_timeout: How long one node may take before another is asked, within the deadline.
        retry: When to try again.
        reads: Where linearizable reads go: to all nodes in turn (`spread`), or to the `leader`, which saves a hop.
        discover_members: Whether members that no endpoint names are found out, and asked while an endpoint does not answer. A token is
            never sent in clear to an address that was not given.
        ca_file: PEM file with the CAs whose certificates of nodes are believed; there are no others. Files are read again, within a
            second, when they change.
        cert_file: PEM file with the certificate that nodes are shown: who this is.
        key_file: PEM file with its private key.
        ca_pem: The same as text; so are `cert_pem` and `key_pem`.
        cert_pem: See there.
        key_pem: See there.
        token: The token that says who asks, where nodes want to know.
        token_file: File with that token, in one line.
    """

    def __init__(
        self,
        endpoints: str | list[str] | None = None,
        *,
        timeout: Seconds = TIMEOUT_DEFAULT,
        attempt_timeout: Seconds = ATTEMPT_TIMEOUT_DEFAULT,
        retry: RetryPolicy | None = None,
        reads: Reads = "spread",
        discover_members: bool = True,
        ca_file: str | PathLike[str] | None = None,
        cert_file: str | PathLike[str] | None = None,
        key_file: str | PathLike[str] | None = None,
        ca_pem: str | None = None,
        cert_pem: str | None = None,
        key_pem: str | None = None,
        token: str | None = None,
        token_file: str | PathLike[str] | None = None,
    ) -> None:
        self._core = Core(
            settings(
                endpoints,
                timeout=timeout,
                attempt_timeout=attempt_timeout,
                retry=retry,
                reads=reads,
                discover_members=discover_members,
                ca_file=ca_file,
                cert_file=cert_file,
                key_file=key_file,
                ca_pem=ca_pem,
                cert_pem=cert_pem,
                key_pem=key_pem,
                token=token,
                token_file=token_file,
            )
        )
        self._renewals = Renewals(self._core)

    @classmethod
    def from_env(cls) -> Client:
        """A client of the nodes in `QUORATE_ENDPOINTS`; of the local cluster where that is not set, not where it is empty.

        Over TLS where `QUORATE_CA` names a CA, with the certificate in `QUORATE_CERT` and its key in `QUORATE_KEY`, and the token of
        `QUORATE_TOKEN` or in the file `QUORATE_TOKEN_FILE`, where they are there.
        """
        return cls(**from_environment())

    @property
    def endpoints(self) -> list[str]:
        """The nodes that were given, `host:port` or `unix:/path`."""
        return [endpoint.address for endpoint in self._core.given]

    @property
    def known_endpoints(self) -> list[str]:
        """All nodes that calls may go to: those given, and members that were discovered."""
        return [endpoint.address for endpoint in known_endpoints(self._core)]

    def close(self) -> None:
        """Closes all connections. Sessions that were not ended are not renewed any more."""
        self._renewals.close()
        self._core.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
