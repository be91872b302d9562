"""Which partition of an internal topic a group or a transactional id lives on: Java's ``hashCode`` modulo partitions."""

from __future__ import annotations


def java_string_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 units, h = 31 h + unit in signed 32 bits."""
    value = 0
    raw = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(raw), 2):
        value = (31 * value + (raw[index] << 8 | raw[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_of(key: str, partitions: int) -> int:
    """The partition; Java's abs() of the smallest int counts as 0."""
    value = java_string_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % partitions
