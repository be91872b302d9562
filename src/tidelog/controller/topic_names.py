"""Valid topic names."""

from __future__ import annotations

from collections.abc import Iterable

MAX_NAME_LENGTH = 249
"""The partition directory, with partition number and deletion suffix, has to stay below 255 bytes."""
LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def name_problem(name: str) -> str | None:
    """Why a topic name is invalid; None when it is valid."""
    if not name:
        return "Topic name is invalid: it is empty"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not LEGAL.issuperset(name):
        return f"Topic name is invalid: '{name}' may only have ASCII letters and digits, '.', '_' and '-'"
    return None


def collision_key(name: str) -> str:
    """Names with the same key would share metric names."""
    return name.replace(".", "_")


def collides_with(name: str, existing: Iterable[str]) -> str | None:
    """The existing topic whose name differs only in '.' and '_'; None when there is none."""
    if "." not in name and "_" not in name:
        return None
    key = collision_key(name)
    for other in existing:
        if other != name and ("." in other or "_" in other) and collision_key(other) == key:
            return other
    return None
