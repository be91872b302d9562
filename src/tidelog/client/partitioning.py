"""The partition of a key, the same as with Java's producer: 32-bit MurmurHash2 with Kafka's seed over the key's bytes."""

from __future__ import annotations

from struct import Struct

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_WORD = Struct("<I")
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash as in Java, a signed 32-bit number."""
    size = len(data)
    hashed = (_SEED ^ size) & _MASK
    whole = size & ~3
    for (word,) in _WORD.iter_unpack(data[:whole] if whole != size else data):
        word = word * _MULTIPLIER & _MASK
        word ^= word >> 24
        hashed = (hashed * _MULTIPLIER & _MASK) ^ (word * _MULTIPLIER & _MASK)
    if whole != size:
        hashed ^= int.from_bytes(data[whole:], "little")
        hashed = hashed * _MULTIPLIER & _MASK
    hashed ^= hashed >> 13
    hashed = hashed * _MULTIPLIER & _MASK
    hashed ^= hashed >> 15
    return hashed - (1 << 32) if hashed & 0x80000000 else hashed


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of this key, below ``partitions``. The sign bit is cleared first, as Java's ``toPositive`` does."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
