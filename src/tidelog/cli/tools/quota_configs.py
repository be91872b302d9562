"""Quotas of users, clients and IP addresses for ``configs``.

Lines, and the format of numbers, are those of Kafka's tool (Java's). As there, a quota to be deleted must exist;
controllers, which do not show quotas, are not asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.config_entities import Named
from tidelog.config.quota_entities import CLIENT_ID, CLIENT_KEYS, IP, IP_KEYS, USER

if TYPE_CHECKING:
    from tidelog.cli.broker_connection import Session
    from tidelog.cli.columns import Row
    from tidelog.client.admin.results import Quota

QUOTA_TYPES = {"users": USER, "clients": CLIENT_ID, "ips": IP}
"""Entity types with quotas, and their names in the protocol."""
_TITLES = {USER: "user-principal", CLIENT_ID: "client-id", IP: "ip"}
_KINDS = {wire: kind for kind, wire in QUOTA_TYPES.items()}


def alter(session: Session, entities: Sequence[Named], add: dict[str, str], delete: Sequence[str]) -> None:
    """Sends one request. CommandFailed when the change is not possible, or the broker refuses."""
    from tidelog.client.admin import quotas

    _check_names(entities, add, "added")
    _check_names(entities, delete, "deleted")
    change = {key: _number(key, text) for key, text in add.items()}
    if delete and _shows_quotas(session):
        present = {name for each in _quotas(session, entities) for name in each.limits}
        missing = [key for key in delete if key not in present]
        if missing:
            raise CommandFailed(f"Invalid config(s): {','.join(missing)}")
    session.run(quotas.alter({QUOTA_TYPES[each.kind]: each.name or None for each in entities}, change, delete))
    first = entities[0]
    if first.name:
        print(f"Completed updating config for {first.kind.removesuffix('s')} {first.name}.")
    else:
        print(f"Completed updating default config for {first.kind} in the cluster.")


def _shows_quotas(session: Session) -> bool:
    from tidelog.cli.admin_session import AdminSession

    return isinstance(session, AdminSession)


def _check_names(entities: Sequence[Named], names: Sequence[str] | dict[str, str], verb: str) -> None:
    """Validates before anything is sent: only quotas, and only those of the entity type."""
    kind = entities[0].kind
    known, what = (IP_KEYS, "connection quota") if kind == "ips" else (CLIENT_KEYS, "quota")
    unexpected = [name for name in names if name not in known]
    if unexpected:
        passwords = ", and for passwords SCRAM-SHA-256 and SCRAM-SHA-512" if kind == "users" else ""
        raise CommandFailed(
            f"Only {what} configs can be {verb} for '{kind}' using --bootstrap-server. "
            f"Unexpected config names: {', '.join(unexpected)}. There are {', '.join(known)}{passwords}."
        )


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise CommandFailed(f"Quota {key} takes a number: {text} is none") from error


def describe(session: Session, entities: Sequence[Named], *, silent: bool) -> list[Row]:
    """Prints a line for each entity of exactly these types with quotas, unless ``silent``; returns them as values."""
    found: list[Row] = []
    for quota in _quotas(session, entities):
        names = sorted(quota.entity.items(), key=lambda part: part[0], reverse=True)  # the user before its client
        if not silent:
            whose = ", ".join(_title(kind, name) for kind, name in names)
            limits = ", ".join(f"{name}={as_java(value)}" for name, value in quota.limits.items())
            print(f"Quota configs for {whose} are {limits}")
        found.append(
            {
                "entities": [{"entityType": _KINDS.get(kind, kind), "entityName": name} for kind, name in names],
                "configs": [{"name": name, "value": value} for name, value in quota.limits.items()],
            }
        )
    return found


def _title(entity_type: str, name: str | None) -> str:
    title = _TITLES[entity_type]
    return f"the default {title}" if name is None else f"{title} '{name}'"


def _quotas(session: Session, entities: Sequence[Named]) -> list[Quota]:
    """The quotas of exactly these entities."""
    from tidelog.client.admin import quotas

    named = {QUOTA_TYPES[each.kind]: each.name or None for each in entities if each.name is not None}
    return session.run(quotas.describe(named, types=[QUOTA_TYPES[each.kind] for each in entities if each.name is None]))


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
