"""When a backup is whole."""

from __future__ import annotations

import pytest
import xxhash

from quorate import _backup
from quorate._backup import CHECKSUM_BYTES, END_MAGIC, Tail


def whole(rows: bytes) -> bytes:
    numbers = b"".join(number.to_bytes(8, "little") for number in (3, 4, 5, 42, 0, 0))
    covered = rows + END_MAGIC + numbers
    return covered + xxhash.xxh3_128(covered).intdigest().to_bytes(CHECKSUM_BYTES, "little")


def taken(data: bytes, piece: int) -> Tail:
    tail = Tail()
    for at in range(0, len(data), piece):
        tail.take(data[at : at + piece])
    return tail


@pytest.mark.parametrize("piece", [1, 7, 71, 72, 73, 1_000])
def test_the_end_is_found_however_the_pieces_come_and_anything_less_is_refused(piece: int) -> None:
    data = whole(bytes(200))
    tail = taken(data, piece)
    assert (tail.end(), tail.bytes, tail.is_checked) == ((3, 42), len(data), True)
    for cut in (1, 72, 200, len(data)):
        with pytest.raises(ValueError, match="cut short"):
            taken(data[:-cut], piece).end()
    for flipped in (0, 100, 210, len(data) - 1):
        with pytest.raises(ValueError, match="checksum"):
            taken(data[:flipped] + bytes([data[flipped] ^ 1]) + data[flipped + 1 :], piece).end()


def test_without_the_extra_the_end_alone_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_backup, "xxhash", None)
    data = whole(b"rows")
    tail = taken(b"R" + data[1:], 10)
    assert (tail.end(), tail.is_checked) == ((3, 42), False)
