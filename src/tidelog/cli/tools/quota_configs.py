"""Quotas of users, clients and IP addresses for ``configs``.

Lines, and the format of numbers, are those of Kafka's tool (Java's). As there, a quota to be deleted must exist.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from tidelog.cli import refusal
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.config_entities import Named
from tidelog.config.quotas import CLIENT_ID, CLIENT_KEYS, IP, IP_KEYS, USER

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.columns import Row
    from tidelog.protocol.messages.describe_client_quotas import EntryData

QUOTA_TYPES = {"users": USER, "clients": CLIENT_ID, "ips": IP}
"""Entity types with quotas, and their names in the protocol."""
SCRAM = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512"})
_TITLES = {USER: "user-principal", CLIENT_ID: "client-id", IP: "ip"}
_KINDS = {wire: kind for kind, wire in QUOTA_TYPES.items()}
_EXACT, _DEFAULT, _ANY = 0, 1, 2


def alter(session: AdminSession, entities: Sequence[Named], add: dict[str, str], delete: Sequence[str]) -> None:
    """Sends one request. CommandFailed when the change is not possible, or the broker refuses."""
    from tidelog.protocol.messages.alter_client_quotas import (
        AlterClientQuotasRequest,
        OpData,
        RequestEntityData,
        RequestEntryData,
    )

    _check_names(entities, add, "added")
    _check_names(entities, delete, "deleted")
    changes = [OpData(key=key, value=_number(key, text), remove=False) for key, text in add.items()]
    changes += [OpData(key=key, remove=True) for key in delete]
    if delete:
        present = {value.key for entry in _entries(session, entities) for value in entry.values}
        missing = [key for key in delete if key not in present]
        if missing:
            raise CommandFailed(f"Invalid config(s): {','.join(missing)}")
    parts = [RequestEntityData(entity_type=QUOTA_TYPES[each.kind], entity_name=each.name or None) for each in entities]
    request = AlterClientQuotasRequest(entries=[RequestEntryData(entity=parts, ops=changes)])
    for result in session.ask(request).entries:
        refusal.check(result.error_code, result.error_message)
    first = entities[0]
    if first.name:
        print(f"Completed updating config for {first.kind.removesuffix('s')} {first.name}.")
    else:
        print(f"Completed updating default config for {first.kind} in the cluster.")


def _check_names(entities: Sequence[Named], names: Sequence[str] | dict[str, str], verb: str) -> None:
    """Validates before anything is sent: only quotas, and only those of the entity type."""
    kind = entities[0].kind
    if [each.kind for each in entities] == ["users"] and (passwords := sorted(SCRAM.intersection(names))):
        raise CommandFailed(f"SCRAM credentials are not served yet: {', '.join(passwords)} cannot be {verb} for '{kind}'.")
    known, what = (IP_KEYS, "connection quota") if kind == "ips" else (CLIENT_KEYS, "quota")
    unexpected = [name for name in names if name not in known]
    if unexpected:
        raise CommandFailed(
            f"Only {what} configs can be {verb} for '{kind}' using --bootstrap-server. "
            f"Unexpected config names: {', '.join(unexpected)}. There are {', '.join(known)}."
        )


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise CommandFailed(f"Quota {key} takes a number: {text} is none") from error


def describe(session: AdminSession, entities: Sequence[Named], *, silent: bool) -> list[Row]:
    """Prints a line for each entity of exactly these types with quotas, unless ``silent``; returns them as values."""
    found: list[Row] = []
    for entry in _entries(session, entities):
        names = sorted(entry.entity, key=lambda part: part.entity_type, reverse=True)  # the user before its client
        if not silent:
            whose = ", ".join(_title(part.entity_type, part.entity_name) for part in names)
            limits = ", ".join(f"{value.key}={as_java(value.value)}" for value in entry.values)
            print(f"Quota configs for {whose} are {limits}")
        found.append(
            {
                "entities": [
                    {"entityType": _KINDS.get(part.entity_type, part.entity_type), "entityName": part.entity_name}
                    for part in names
                ],
                "configs": [{"name": value.key, "value": value.value} for value in entry.values],
            }
        )
    return found


def _title(entity_type: str, name: str | None) -> str:
    title = _TITLES[entity_type]
    return f"the default {title}" if name is None else f"{title} '{name}'"


def _entries(session: AdminSession, entities: Sequence[Named]) -> Sequence[EntryData]:
    """The quotas of exactly these entities."""
    from tidelog.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

    components = []
    for each in entities:
        how = _ANY if each.name is None else _EXACT if each.name else _DEFAULT
        components.append(ComponentData(entity_type=QUOTA_TYPES[each.kind], match_type=how, match=each.name or None))
    response = session.ask(DescribeClientQuotasRequest(components=components, strict=True))
    refusal.check(response.error_code, response.error_message)
    return response.entries or ()


def as_java(number: float) -> str:
    """The number as Java writes a double: 100.0, 1.0E7."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    exact = Decimal(repr(number)).normalize()
    digits = "".join(map(str, exact.as_tuple().digits))
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exact.adjusted()}"
