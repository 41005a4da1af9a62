"""What the parts of a client are made on."""

from __future__ import annotations

from quorate._async._core import AsyncCore
from quorate._async._renewals import AsyncRenewals


class AsyncBase:
    """A part of a client."""

    _core: AsyncCore
    _renewals: AsyncRenewals
