"""AlterClientQuotas: validates quotas of users, client ids and IP addresses and makes their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tidelog.config.quota_entities import CLIENT_KEYS, ENTITY_TYPES, IP, IP_KEYS, QuotaKey, no_such_type
from tidelog.controller.result import MAX_RECORDS_PER_REQUEST, ControllerResult, Decision
from tidelog.controller.topics import Refused
from tidelog.metadata.image import QuotaEntity, quota_entity
from tidelog.model.addresses import ip_address
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntityData,
    RequestEntryData,
    ResponseEntityData,
    ResponseEntryData,
)
from tidelog.protocol.messages.client_quota_record import ClientQuotaRecord, EntityData

INVALID_COMBINATION = "Invalid quota entity combination"
"""Apache Kafka's words, which its ClientQuotasRequestTest looks for."""


def alter_client_quotas(decision: Decision, request: AlterClientQuotasRequest) -> ControllerResult:
    """Applies each entity by itself, all of its changes or none.

    Error per entity: INVALID_REQUEST (an unknown or missing type, an empty name, an IP address combined with others or not an
    address, a key that does not fit the entity, a limit that does not fit the key, an entity or a key twice). Apache Kafka
    refuses the second of two entries for an entity and keeps the first; here both are refused, as the answer says. KafkaError
    POLICY_VIOLATION for too many changes in one request.
    """
    named = Counter(_entity(entry.entity) for entry in request.entries)
    results: list[ResponseEntryData] = []
    records: list[ClientQuotaRecord] = []
    for entry in request.entries:
        code, message = ErrorCode.NONE, None
        try:
            if named[_entity(entry.entity)] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "The request names this entity more than once.")
            records += _changes(decision, entry)
        except Refused as refused:
            code, message = refused.code, refused.message
        results.append(answer_to(entry, code, message))
    if len(records) > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"The request makes {len(records)} changes to quotas; {MAX_RECORDS_PER_REQUEST} are the most at once.",
        )
    response = AlterClientQuotasResponse(entries=results)
    return ControllerResult(response) if request.validate_only else ControllerResult.of(response, records)


def answer_to(entry: RequestEntryData, code: int, message: str | None) -> ResponseEntryData:
    """The result for one entity. Its parts are in the order of DescribeClientQuotas, as in Apache Kafka."""
    parts = sorted(entry.entity, key=lambda each: each.entity_type)
    entity = [ResponseEntityData(entity_type=each.entity_type, entity_name=each.entity_name) for each in parts]
    return ResponseEntryData(error_code=code, error_message=message, entity=entity)


def _entity(parts: Sequence[RequestEntityData]) -> QuotaEntity:
    """The entity as the image names it."""
    return quota_entity((each.entity_type, each.entity_name) for each in parts)


def _changes(decision: Decision, entry: RequestEntryData) -> list[ClientQuotaRecord]:
    """The records of the changes; unchanged values are not written. An unknown key may be removed, because an old record may
    hold it."""
    entity = _entity(entry.entity)
    keys = _keys_of(entity)
    present = decision.image.quotas.get(entity, {})
    changed: dict[str, OpData] = {}
    for change in entry.ops:
        if change.key in changed:
            raise Refused(ErrorCode.INVALID_REQUEST, f"The key {change.key} is named more than once.")
        if not change.remove:
            _check_limit(keys, change)
        changed[change.key] = change
    return [
        ClientQuotaRecord(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            key=change.key,
            value=0.0 if change.remove else change.value,
            remove=change.remove,
        )
        for change in changed.values()
        if (change.key in present if change.remove else present.get(change.key) != change.value)
    ]


def _keys_of(entity: QuotaEntity) -> Mapping[str, QuotaKey]:
    """The quota keys that fit such an entity. Refused when none do."""
    if not entity:
        raise Refused(ErrorCode.INVALID_REQUEST, "A quota is of a user, a client id, both or an IP address; none is named.")
    types = [kind for kind, _ in entity]
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            raise Refused(ErrorCode.INVALID_REQUEST, no_such_type(kind))
        if types.count(kind) > 1:
            raise Refused(ErrorCode.INVALID_REQUEST, f"The entity type {kind} is named more than once.")
        if name == "":
            message = f"The entity type {kind} has an empty name; null is the name of the default for all without their own."
            raise Refused(ErrorCode.INVALID_REQUEST, message)
    if IP not in types:
        return CLIENT_KEYS
    if len(entity) > 1:
        message = "an IP address has quotas of its own, not together with a user or client id."
        raise Refused(ErrorCode.INVALID_REQUEST, f"{INVALID_COMBINATION}: {message}")
    _check_address(entity[0][1])
    return IP_KEYS


def _check_address(name: str | None) -> None:
    """Apache Kafka also takes host names and resolves them on the controller and once on each broker, so the limit may apply
    to another address later. Here the value must be an address."""
    try:
        if name is not None:
            ip_address(name)
    except ValueError as error:
        message = f"'{name}' is not a valid IP address; names of hosts are not resolved."
        raise Refused(ErrorCode.INVALID_REQUEST, message) from error


def _check_limit(keys: Mapping[str, QuotaKey], change: OpData) -> None:
    key = keys.get(change.key)
    if key is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f"The key {change.key} is none of this entity's, which are {', '.join(keys)}.")
    problem = key.problem(change.value)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_REQUEST, problem)
