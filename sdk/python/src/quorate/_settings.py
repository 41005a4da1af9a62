"""What a client is told when it is made, and what the environment says.

Owns the names of the environment variables; they are those of the other clients and the command line.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from quorate._credentials import Sources
from quorate._requests import Seconds, seconds
from quorate._retry import RetryPolicy
from quorate.errors import InvalidRequestError

# The nodes of the local cluster that `scripts/cluster up` starts.
DEFAULT_ENDPOINTS = "127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103"
# Deadline of a call that sets none.
TIMEOUT_DEFAULT = 10.0
# How long one node may take before another is asked: some elections, but a good part of the deadline is left.
ATTEMPT_TIMEOUT_DEFAULT = 3.0

Reads = Literal["spread", "leader"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a client."""

    endpoints: str | list[str] = DEFAULT_ENDPOINTS
    timeout: float = TIMEOUT_DEFAULT
    attempt_timeout: float = ATTEMPT_TIMEOUT_DEFAULT
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    reads: Reads = "spread"
    discover_members: bool = True
    sources: Sources = field(default_factory=Sources)


def settings(
    endpoints: str | list[str] | None,
    *,
    timeout: Seconds,
    attempt_timeout: Seconds,
    retry: RetryPolicy | None,
    reads: Reads,
    discover_members: bool,
    **sources: Any,
) -> Settings:
    """The settings of the arguments of a client."""
    paths: dict[str, Any] = {name: Path(value) for name, value in sources.items() if name.endswith("_file") and value is not None}
    return Settings(
        endpoints=DEFAULT_ENDPOINTS if endpoints is None else endpoints,
        timeout=seconds(timeout, "timeout"),
        attempt_timeout=seconds(attempt_timeout, "attempt_timeout"),
        retry=retry or RetryPolicy(),
        reads=reads,
        discover_members=discover_members,
        sources=Sources(**{**sources, **paths}),
    )


def from_environment() -> dict[str, Any]:
    """The arguments that the environment gives."""
    files = {"QUORATE_CA": "ca_file", "QUORATE_CERT": "cert_file", "QUORATE_KEY": "key_file"}
    arguments: dict[str, Any] = {name: os.environ[key] for key, name in files.items() if key in os.environ}
    if ("cert_file" in arguments) != ("key_file" in arguments):
        raise InvalidRequestError("QUORATE_CERT and QUORATE_KEY belong together; give both or none")
    if "QUORATE_TOKEN_FILE" in os.environ:
        arguments["token_file"] = os.environ["QUORATE_TOKEN_FILE"]
    elif "QUORATE_TOKEN" in os.environ:
        arguments["token"] = os.environ["QUORATE_TOKEN"]
    if "QUORATE_ENDPOINTS" in os.environ:
        arguments["endpoints"] = os.environ["QUORATE_ENDPOINTS"]
    return arguments
