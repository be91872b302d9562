"""Which partition a key belongs to, as Java's producer decides it: 32-bit MurmurHash2 with Kafka's seed, of the key's bytes."""

from __future__ import annotations

from struct import Struct

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_WORD = Struct("<I")
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash as Java has it, a signed number of 32 bits."""
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
    """The partition, of so many, of records with this key. The sign bit is dropped first, as Java's ``toPositive`` does."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
