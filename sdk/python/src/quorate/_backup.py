"""The end of a backup, which says that it is whole.

Owns what of its layout a client needs. The checksum of the whole is compared where the package `xxhash` is there, which the extra
`quorate[xxhash]` brings; what is in a backup is checked by `quorate-node backup verify`.
"""

from __future__ import annotations

from typing import Any

try:
    import xxhash
except ImportError:  # It is an extra.
    xxhash = None

# What the last bytes begin with, how many those are, and how many of them are the checksum of all before.
END_MAGIC = b"\x89QRBEND\n"
END_BYTES = 72
CHECKSUM_BYTES = 16


class Tail:
    """What is known of a backup from the pieces that came."""

    def __init__(self) -> None:
        self.bytes = 0
        self._last = b""
        self._sum: Any = None if xxhash is None else xxhash.xxh3_128()

    @property
    def is_checked(self) -> bool:
        """Whether the checksum is compared."""
        return self._sum is not None

    def take(self, piece: bytes) -> None:
        """The next piece came."""
        self.bytes += len(piece)
        both = self._last + piece
        if self._sum is not None:
            self._sum.update(both[:-END_BYTES])
        self._last = both[-END_BYTES:]

    def end(self) -> tuple[int, int]:
        """The rows in it, and the revision that it is of.

        Raises:
            ValueError: It is not whole.
        """
        last = self._last
        if len(last) < END_BYTES or not last.startswith(END_MAGIC):
            raise ValueError("it is cut short")
        if self._sum is not None:
            self._sum.update(last[:-CHECKSUM_BYTES])
            if self._sum.intdigest() != int.from_bytes(last[-CHECKSUM_BYTES:], "little"):
                raise ValueError("its checksum is wrong")
        rows, revision = (int.from_bytes(last[at : at + 8], "little") for at in (8, 32))
        return rows, revision
