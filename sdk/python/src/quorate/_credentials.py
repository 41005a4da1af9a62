"""What this client shows to nodes and what it believes of them: the token, its certificate, the CAs.

Owns when files are read again. Never lets go of what it has for something that cannot be read: a file may be half written. The
token is shown nowhere: not by `repr`, and in no error.
"""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from quorate._fork import tell_in_child
from quorate.errors import InvalidRequestError

# How often files are looked at, at most.
LOOK_EVERY = 1.0
log = logging.getLogger("quorate")


@dataclass(frozen=True, slots=True, repr=False)
class Sources:
    """Where credentials come from: files, or text."""

    ca_file: Path | None = None
    ca_pem: str | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    cert_pem: str | None = None
    key_pem: str | None = None
    token: str | None = None
    token_file: Path | None = None

    def check(self) -> None:
        """Refuses what does not go together."""
        if (self.cert_file is None) != (self.key_file is None) or (self.cert_pem is None) != (self.key_pem is None):
            raise InvalidRequestError("a certificate and its private key belong together; give both or none")

    @property
    def has_ca(self) -> bool:
        """Whether a CA is named."""
        return self.ca_file is not None or self.ca_pem is not None

    def files(self) -> list[Path]:
        """Those that are read."""
        named = (self.ca_file, self.cert_file, self.key_file, self.token_file)
        return [file for file in named if file is not None]


@dataclass(frozen=True, slots=True, repr=False)
class Shown:
    """What is shown and believed from one look to the next."""

    # Greater than that of what was shown before.
    generation: int
    # What `Authorization` says.
    authorization: str | None
    # How to shake hands, where a CA is named.
    tls: ssl.SSLContext | None


# What changes when a file does: it is written, or another one takes its place.
Stamp = tuple[int, int, int] | None


class Credentials:
    """The credentials of a client."""

    def __init__(self, sources: Sources) -> None:
        sources.check()
        self._sources = sources
        self._lock = threading.Lock()
        self._look_at = time.monotonic() + LOOK_EVERY
        self._stamps = stamps(sources)
        self._shown = show(sources, 0)
        tell_in_child(self, Credentials._forked)

    def _forked(self) -> None:
        """In a forked child: a thread that is not here may hold the lock."""
        self._lock = threading.Lock()

    @property
    def has_token(self) -> bool:
        """Whether nodes are told who asks by a token."""
        return self._sources.token is not None or self._sources.token_file is not None

    def shown(self) -> Shown:
        """What to show now."""
        now = time.monotonic()
        if self._stamps and now >= self._look_at:
            self._look_at = now + LOOK_EVERY
            self._look()
        return self._shown

    def is_newer_than(self, generation: int) -> bool:
        """Looks at once, since a node did not like what it was shown; whether there is something newer than that."""
        self._look()
        return self._shown.generation > generation

    def _look(self) -> None:
        # Before they are read: what is written meanwhile is seen the next time.
        seen = stamps(self._sources)
        with self._lock:
            if seen == self._stamps:
                return
            try:
                self._shown = show(self._sources, self._shown.generation + 1)
            except (InvalidRequestError, OSError) as error:
                log.warning("credentials cannot be read again; the former ones stay in use: %s", error)
                return
            self._stamps = seen


def stamps(sources: Sources) -> list[Stamp]:
    """The state of all files."""
    return [stamp(file) for file in sources.files()]


def stamp(file: Path) -> Stamp:
    try:
        data = file.stat()
    except OSError:
        return None
    return (data.st_mtime_ns, data.st_size, data.st_ino)


def show(sources: Sources, generation: int) -> Shown:
    """Reads everything."""
    return Shown(generation, authorization(sources), tls_context(sources))


def authorization(sources: Sources) -> str | None:
    """What says who asks; `None` without a token."""
    token, where = sources.token, "the token"
    if sources.token_file is not None:
        where = str(sources.token_file)
        try:
            token = sources.token_file.read_text(encoding="ascii", errors="replace")
        except OSError as error:
            raise InvalidRequestError(f"{where}: {error.strerror}") from error
    if token is None:
        return None
    token = token.rstrip("\r\n")
    if not token or not all("!" <= letter <= "~" for letter in token):
        raise InvalidRequestError(f"{where}: not one line of printable ASCII")
    return f"Bearer {token}"


def tls_context(sources: Sources) -> ssl.SSLContext | None:
    """How to shake hands; `None` where no CA is named. No other CA is believed."""
    if not sources.has_ca:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cafile=sources.ca_file, cadata=sources.ca_pem)
        if sources.cert_file is not None and sources.key_file is not None:
            context.load_cert_chain(sources.cert_file, sources.key_file)
        elif sources.cert_pem is not None and sources.key_pem is not None:
            load_chain_text(context, sources.cert_pem, sources.key_pem)
    except (OSError, ValueError) as error:
        raise InvalidRequestError(f"the certificates cannot be used: {error}") from error
    return context


def load_chain_text(context: ssl.SSLContext, cert: str, key: str) -> None:
    """OpenSSL takes a private key by the name of a file only: one that nobody else may read, for a moment."""
    handle, name = tempfile.mkstemp()
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{key}\n{cert}\n")
        context.load_cert_chain(name)
    finally:
        Path(name).unlink()
