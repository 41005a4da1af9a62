# Written by scripts/generate_sync.py out of quorate._async; do not edit.
"""What the parts of a client are made on."""

from __future__ import annotations

from quorate._sync._core import Core
from quorate._sync._renewals import Renewals


class Base:
    """A part of a client."""

    _core: Core
    _renewals: Renewals
