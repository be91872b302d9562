"""Quotas of users, client ids and IP addresses (KIP-546)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.client.admin.results import Quota
from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call

_EXACT, _DEFAULT, _ANY = 0, 1, 2


def describe(entity: Mapping[str, str | None] | None = None, *, types: Iterable[str] = ()) -> Call[list[Quota]]:
    """The quotas of exactly this entity (name by type: user, client-id, ip; None: the default), or of all entities.

    ``types``: entities of these types with any name. KafkaError.
    """
    from tidelog.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

    parts = [
        ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
        for kind, name in (entity or {}).items()
    ]
    parts += [ComponentData(entity_type=kind, match_type=_ANY, match=None) for kind in types]
    response = yield Ask(DescribeClientQuotasRequest(components=parts, strict=bool(parts)))
    check(response.error_code, response.error_message)
    return [
        Quota({part.entity_type: part.entity_name for part in entry.entity}, {value.key: value.value for value in entry.values})
        for entry in response.entries or ()
    ]


def alter(entity: Mapping[str, str | None], change: Mapping[str, float] | None = None, remove: Iterable[str] = ()) -> Call[None]:
    """Set some quotas of an entity and remove others. Rates are bytes or operations a second. KafkaError (INVALID_REQUEST)."""
    from tidelog.protocol.messages.alter_client_quotas import (
        AlterClientQuotasRequest,
        OpData,
        RequestEntityData,
        RequestEntryData,
    )

    changes = [OpData(key=key, value=value, remove=False) for key, value in (change or {}).items()]
    changes += [OpData(key=key, remove=True) for key in remove]
    parts = [RequestEntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    response = yield Ask(AlterClientQuotasRequest(entries=[RequestEntryData(entity=parts, ops=changes)]))
    for result in response.entries:
        check(result.error_code, result.error_message)
