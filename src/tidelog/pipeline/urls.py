"""What a pipeline's URLs may have in them."""

from __future__ import annotations


def has_user(url: str) -> bool:
    """Whether a user, and perhaps a password, precedes the host. An error about such a URL must not repeat it."""
    return "@" in url.partition("//")[2].partition("/")[0]
