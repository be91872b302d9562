"""The ACL that a client lacks, as the command that adds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.client.settings import ClientSettings


READ, WRITE = "Read", "Write"


def acl_needed(settings: ClientSettings, operation: str, topic: str) -> str:
    """The sentence for a client that may not do this on a topic."""
    return f"Add an ACL: kafka-acls --add --allow-principal {_principal(settings)} --operation {operation} --topic {topic}"


def _principal(settings: ClientSettings) -> str:
    """The user, where the settings show it: tokens, tickets and certificates do not."""
    sasl = settings.sasl
    shown = sasl is not None and sasl.username and not sasl.token and sasl.kerberos is None
    return f"User:{sasl.username}" if sasl is not None and shown else "User:NAME"
