"""Who a client is: what authentication finds out, and what quotas and ACLs go by."""

from __future__ import annotations

from typing import NamedTuple

USER = "User"


class KafkaPrincipal(NamedTuple):
    """Kafka's principal: a type, nearly always ``User``, and a name."""

    type: str
    name: str

    def __str__(self) -> str:
        """As ACLs and super.users name it."""
        return f"{self.type}:{self.name}"


ANONYMOUS = KafkaPrincipal(USER, "ANONYMOUS")
"""A client that has not authenticated."""
