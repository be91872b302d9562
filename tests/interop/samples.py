"""Records with everything a record can have, and the one form in which all clients' records are compared."""

from __future__ import annotations

import random
from dataclasses import dataclass

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BIG_BYTES = 900_000
BASE_TIMESTAMP = 1_700_000_000_000

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """A record to write. ``timestamp`` in ms since 1970."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int

    def at(self, offset: int) -> Read:
        """What a consumer should get for it."""
        return Read(self.partition, offset, self.timestamp, self.key, self.value, self.headers)


@dataclass(frozen=True, slots=True)
class Read:
    """A record as a consumer got it."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    def __str__(self) -> str:
        def short(data: bytes | None) -> str:
            return repr(data if data is None or len(data) < 40 else data[:30] + b"...") + (
                "" if data is None else f"[{len(data)}]"
            )

        return f"{self.partition}@{self.offset} t={self.timestamp} {short(self.key)}={short(self.value)} {self.headers}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A way to ask for acknowledgement."""

    acks: str
    idempotent: bool

    def __str__(self) -> str:
        return f"acks={self.acks}{' idempotent' if self.idempotent else ''}"


# acks=0 comes last: the broker may hear of a new topic a little after its creator, and nobody would repeat what it refuses then
DELIVERIES = (Delivery("1", False), Delivery("all", False), Delivery("all", True), Delivery("0", False))


def some_of_everything(partition: int, seed: str) -> list[Sample]:
    """About forty records: null, empty, text and binary keys and values; headers; times that go back; one of 900 KB."""
    rng = random.Random(seed)
    at = BASE_TIMESTAMP
    odd: list[tuple[bytes | None, bytes | None, Headers]] = [
        (None, None, ()),
        (None, b"", ()),
        (b"", None, ()),
        (b"", b"", (("", b""),)),
        (b"k", b"v", (("a", b"1"), ("a", b"2"), ("b", b"\x00\xff"), ("a", b"3"))),
        ("schlüssel-鍵".encode(), "wert-値".encode(), (("kopf-頭", "ü".encode()),)),
        (b"null header", b"v", (("nothing", None),)),
        (rng.randbytes(300), rng.randbytes(3000), tuple((f"h{i}", rng.randbytes(i)) for i in range(20))),
    ]
    samples = [Sample(partition, *one, at + i) for i, one in enumerate(odd)]
    samples += [Sample(partition, f"k{i}".encode(), b"text " * i, (), at + 1000 - i * 7) for i in range(30)]
    samples.append(Sample(partition, b"big", rng.randbytes(BIG_BYTES), (("size", str(BIG_BYTES).encode()),), at + 2000))
    samples.append(Sample(partition, b"last", b"record", (), at + 1))
    return samples


def differences(expected: list[Read], found: list[Read]) -> str:
    """Empty when equal; otherwise the first few differences in words."""
    expected, found = (sorted(side, key=lambda read: (read.partition, read.offset)) for side in (expected, found))
    if expected == found:
        return ""
    lines = [f"{len(expected)} records expected, {len(found)} found"]
    here = {(read.partition, read.offset): read for read in found}
    for want in expected:
        got = here.pop((want.partition, want.offset), None)
        if got != want:
            lines.append(f"expected {want}\n   found {got}")
    lines += [f"unexpected {extra}" for extra in here.values()]
    return "\n".join(lines[:8])
