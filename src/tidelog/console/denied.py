"""G9: the authorizer denies what the group's consumers ask for."""

from __future__ import annotations

from typing import Final

from tidelog.console.audit_events import Denial
from tidelog.console.group_facts import GroupFacts
from tidelog.console.quoting import word
from tidelog.console.verdict import Finding
from tidelog.console.wording import SHOWN

FLAGS: Final = {"TOPIC": "--topic", "GROUP": "--group"}


def denied(facts: GroupFacts) -> Finding | None:
    """Denials about the group, or about its topics for a client of its members, where there are records to read or no members."""
    last = facts.last
    clients = {member.client_id for member in last.members}
    behind = any(part.lag for part in last.partitions.values())
    found: dict[tuple[str, str, str, str], Denial] = {}
    for each in last.denials:
        if each.kind == "GROUP" or (behind and each.client_id in clients):
            found[each.principal, each.operation, each.kind, each.name] = each
    if not found:
        return None
    rows = list(found.values())
    first = rows[-1]
    return Finding(
        "G9",
        "the authorizer denies what the group's consumers ask for",
        tuple(
            f"{each.principal}, client {each.client_id} at {each.host}: {each.operation} on {each.kind.lower()} {each.name}"
            for each in rows[-SHOWN:]
        ),
        "Allow it, if it should be: the command is for the last denial. Consumers need READ on the group and on its topics.",
        f"tidelog acls --add --allow-principal {word(first.principal)} --operation {first.operation.title()} "
        f"{FLAGS.get(first.kind, '--topic')} {word(first.name)}",
    )
