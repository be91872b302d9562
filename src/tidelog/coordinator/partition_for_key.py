"""Which partition of an internal topic a group or a transactional id lives on: Java's ``hashCode`` modulo partitions."""

from __future__ import annotations

from collections.abc import Iterable

_FIBONACCI = -7046029254386353131
"""Knuth's multiplier, by which Kafka's table spreads hash codes."""


def java_string_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 units, h = 31 h + unit in signed 32 bits."""
    value = 0
    raw = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(raw), 2):
        value = (31 * value + (raw[index] << 8 | raw[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def table_order(names: Iterable[str]) -> list[str]:
    """Names in the order of Kafka's hash table (TimelineHashMap): its lists of groups and members are in that order."""
    known = list(names)
    slots = 2
    while len(known) > slots * 3 // 4:
        slots *= 2
    shift = 65 - slots.bit_length()
    return sorted(known, key=lambda name: (java_string_hash(name) * _FIBONACCI & 0xFFFF_FFFF_FFFF_FFFF) >> shift)


def map_order(names: Iterable[str]) -> list[str]:
    """Distinct names, put into a ``java.util.HashMap`` one after another, in the order in which it iterates over them."""
    known = list(names)
    slots = 16
    while len(known) > slots * 3 // 4:
        slots *= 2

    def slot(name: str) -> int:
        value = java_string_hash(name) & 0xFFFF_FFFF
        return (value ^ value >> 16) & (slots - 1)

    return sorted(known, key=slot)


def partition_of(key: str, partitions: int) -> int:
    """The partition; Java's abs() of the smallest int counts as 0."""
    value = java_string_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % partitions
