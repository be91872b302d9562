"""What a pipeline's URLs may have in them."""

from __future__ import annotations


def has_user(url: str) -> bool:
    """Whether there is a user before its host, and a password perhaps: whoever refuses it must not tell it again."""
    return "@" in url.partition("//")[2].partition("/")[0]
