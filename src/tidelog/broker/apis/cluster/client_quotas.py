"""Client quotas: described from the metadata image, changed by the controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from tidelog.broker.node import BrokerContext
from tidelog.config.quota_entities import ENTITY_TYPES, IP, PRODUCER_BYTE_RATE, no_such_type
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.image import QuotaEntity
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from tidelog.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


class Match(IntEnum):
    """Which entity names of its type a filter component matches."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


INVALID_FILTER_COMBINATION = "Invalid entity filter component combination"
"""The wording of Apache Kafka, which its ClientQuotasRequestTest expects."""

Filter = Mapping[str, tuple[Match, str | None]]
"""By entity type."""


async def alter_client_quotas(ctx: BrokerContext, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Sent by admin clients and kafka-configs (KIP-546): sets and removes limits of users, client ids and IP addresses.

    Errors per entity: see ``controller.client_quotas``.
    """
    response: AlterClientQuotasResponse = await ctx.submit(QuorumController.alter_client_quotas, request)
    return response


def describe_client_quotas(ctx: BrokerContext, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    """Sent by admin clients and kafka-configs (KIP-546): the quotas of the entities that match the filter; an empty filter
    matches all.

    An entity must have every type in the filter and, if the filter is strict, no other. Errors: INVALID_REQUEST (a type twice or
    empty, an invalid match, IP addresses together with other types), UNSUPPORTED_VERSION for an unknown type.
    """
    wanted = _filter(request.components)
    quotas = ctx.image.quotas
    found = sorted((entity for entity in quotas if _takes(wanted, entity, strict=request.strict)), key=_order)
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=limit) for key, limit in sorted(quotas[entity].items(), key=_key_order)],
            )
            for entity in found
        ]
    )


def _filter(components: Sequence[ComponentData]) -> Filter:
    """KafkaError for an invalid filter."""
    wanted: dict[str, tuple[Match, str | None]] = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A component of the filter names no entity type.")
        if kind in wanted:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The filter names the entity type {kind} more than once.")
        if kind not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, no_such_type(kind))
        wanted[kind] = _match(component), component.match
    if IP in wanted and len(wanted) > 1:
        message = "IP addresses have quotas of their own: a filter cannot name them together with users or client ids."
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{INVALID_FILTER_COMBINATION}: {message}")
    return wanted


def _match(component: ComponentData) -> Match:
    try:
        match = Match(component.match_type)
    except ValueError as error:
        message = f"There is no match type {component.match_type} for the entity type {component.entity_type}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message) from error
    if (component.match is not None) != (match is Match.EXACT):
        needs = "a name" if match is Match.EXACT else "no name"
        message = f"Match type {match} ({match.name}) of the entity type {component.entity_type} goes with {needs}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    return match


def _takes(wanted: Filter, entity: QuotaEntity, *, strict: bool) -> bool:
    names = dict(entity)
    if strict and len(names) != len(wanted):
        return False
    return all(
        kind in names and (match is Match.ANY or names[kind] == name)  # the default's name is None, in filter and entity
        for kind, (match, name) in wanted.items()
    )


def _order(entity: QuotaEntity) -> tuple[int, list[tuple[str, str]]]:
    """A wider entity before those within it, defaults before names: the order of an answer is stable."""
    return len(entity), [(kind, name or "") for kind, name in entity]


def _key_order(limit: tuple[str, float]) -> tuple[bool, str]:
    """By name, but the producer limit last: Apache Kafka's order of the three limits that clients set."""
    key, _ = limit
    return key == PRODUCER_BYTE_RATE.name, key
