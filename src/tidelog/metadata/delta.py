"""Applies metadata records to an image: the only place where the cluster's durable state changes.

``ClusterDelta`` accepts every record type of Kafka 4.3. It records what changed, for the replica manager and the config
listeners, and copies only the dictionaries it writes to. Records between BeginTransaction and EndTransaction are held back until
the end is read: an image never shows part of a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from tidelog.metadata.image import (
    TOPIC_RESOURCE,
    BrokerImage,
    ClusterImage,
    ConfigResource,
    ControllerImage,
    DelegationToken,
    Endpoint,
    QuotaEntity,
    ScramCredential,
    quota_entity,
)
from tidelog.metadata.records import MetadataLogError, MetadataRecord
from tidelog.metadata.topics_delta import TopicsDelta
from tidelog.model.acl import AccessControlEntry
from tidelog.model.ids import Uuid

K = TypeVar("K")
V = TypeVar("V")


class Overlay(Generic[K, V]):
    """A dictionary of the image, copied on the first write."""

    __slots__ = ("_base", "_copy", "touched")

    def __init__(self, base: Mapping[K, V]) -> None:
        self._base = base
        self._copy: dict[K, V] | None = None
        self.touched: dict[K, None] = {}
        """Keys written or removed, in order."""

    def get(self, key: K) -> V | None:
        return self.now.get(key)

    def put(self, key: K, value: V) -> None:
        self._writable()[key] = value
        self.touched[key] = None

    def discard(self, key: K) -> None:
        self._writable().pop(key, None)
        self.touched[key] = None

    @property
    def now(self) -> Mapping[K, V]:
        """The dictionary with all writes so far."""
        return self._base if self._copy is None else self._copy

    def _writable(self) -> dict[K, V]:
        if self._copy is None:
            self._copy = dict(self._base)
        return self._copy


class ClusterDelta:
    """Records on top of ``base``; ``apply`` builds the next image, and the delta can still be read afterwards."""

    def __init__(self, base: ClusterImage) -> None:
        self.base = base
        self.topics = TopicsDelta(base.topics)
        self.features: Overlay[str, int] = Overlay(base.features)
        self.brokers: Overlay[int, BrokerImage] = Overlay(base.brokers)
        self.controllers: Overlay[int, ControllerImage] = Overlay(base.controllers)
        self.configs: Overlay[ConfigResource, Mapping[str, str]] = Overlay(base.configs)
        self.quotas: Overlay[QuotaEntity, Mapping[str, float]] = Overlay(base.quotas)
        self.acls: Overlay[Uuid, AccessControlEntry] = Overlay(base.acls)
        self.scram: Overlay[tuple[str, int], ScramCredential] = Overlay(base.scram)
        self.tokens: Overlay[str, DelegationToken] = Overlay(base.tokens)
        self.next_producer_id = base.next_producer_id
        self._held: list[MetadataRecord] | None = None

    @property
    def transaction_open(self) -> bool:
        """Whether a BeginTransaction has no end yet."""
        return self._held is not None

    def replay(self, record: MetadataRecord) -> None:
        """Replays one record, in log order. MetadataLogError when it cannot be applied; the node must then stop."""
        name = record.NAME
        if self._held is not None and name not in _TRANSACTION_RECORDS:
            self._held.append(record)
            return
        handler = _HANDLERS.get(name)
        if handler is None:
            raise MetadataLogError(f"{name} is no record of a metadata log")
        handler(self, record)

    def apply(self, offset: int, epoch: int, timestamp_ms: int) -> ClusterImage:
        """The image up to ``offset`` (inclusive); ``epoch`` and ``timestamp_ms`` are the leader epoch and append time of its
        last batch."""
        return replace(
            self.base,
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            features=self.features.now,
            brokers=self.brokers.now,
            controllers=self.controllers.now,
            topics=self.topics.apply(),
            configs=self.configs.now,
            quotas=self.quotas.now,
            next_producer_id=self.next_producer_id,
            acls=self.acls.now,
            scram=self.scram.now,
            tokens=self.tokens.now,
        )

    def after(self, image: ClusterImage) -> ClusterDelta:
        """The delta that follows ``image``, the result of this one; an open transaction continues."""
        following = ClusterDelta(image)
        following._held = self._held
        return following

    def config_changes(self) -> dict[ConfigResource, Mapping[str, str]]:
        """Resources whose settings changed, with all their current settings (empty when there are none)."""
        return {resource: self.configs.now.get(resource, {}) for resource in self.configs.touched}

    # transactions (KIP-868)

    def _begin_transaction(self, record: Any) -> None:
        if self._held is not None:
            raise MetadataLogError("BeginTransactionRecord inside a transaction")
        self._held = []

    def _end_transaction(self, record: Any) -> None:
        if self._held is None:
            raise MetadataLogError("EndTransactionRecord outside a transaction")
        held, self._held = self._held, None
        for each in held:
            self.replay(each)

    def _abort_transaction(self, record: Any) -> None:
        if self._held is None:
            raise MetadataLogError("AbortTransactionRecord outside a transaction")
        self._held = None

    # brokers and controllers

    def _register_broker(self, record: Any) -> None:
        cordoned = record.cordoned_log_dirs
        self.brokers.put(
            record.broker_id,
            BrokerImage(
                id=record.broker_id,
                epoch=record.broker_epoch,
                incarnation_id=Uuid(record.incarnation_id),
                endpoints=_endpoints(record.end_points),
                features=_features(record.features),
                rack=record.rack,
                fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                directories=tuple(Uuid(each) for each in record.log_dirs),
                cordoned_directories=None if cordoned is None else tuple(Uuid(each) for each in cordoned),
                is_migrating_zk_broker=record.is_migrating_zk_broker,
            ),
        )

    def _known_broker(self, broker_id: int, epoch: int, what: str) -> BrokerImage:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise MetadataLogError(f"{what} for broker {broker_id}, which is not registered")
        if broker.epoch != epoch:
            raise MetadataLogError(f"{what} for broker {broker_id} at epoch {epoch}, which is registered at epoch {broker.epoch}")
        return broker

    def _unregister_broker(self, record: Any) -> None:
        self._known_broker(record.broker_id, record.broker_epoch, record.NAME)
        self.brokers.discard(record.broker_id)

    def _change_broker(self, record: Any) -> None:
        broker = self._known_broker(record.broker_id, record.broker_epoch, record.NAME)
        cordoned = record.cordoned_log_dirs
        self.brokers.put(
            broker.id,
            replace(
                broker,
                fenced=broker.fenced if record.fenced == 0 else record.fenced > 0,
                in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown > 0,
                directories=tuple(Uuid(each) for each in record.log_dirs) if record.log_dirs else broker.directories,
                cordoned_directories=broker.cordoned_directories if cordoned is None else tuple(Uuid(each) for each in cordoned),
            ),
        )

    def _fence_broker(self, record: Any) -> None:
        broker = self._known_broker(record.id, record.epoch, record.NAME)
        self.brokers.put(broker.id, replace(broker, fenced=True))

    def _unfence_broker(self, record: Any) -> None:
        broker = self._known_broker(record.id, record.epoch, record.NAME)
        self.brokers.put(broker.id, replace(broker, fenced=False))

    def _register_controller(self, record: Any) -> None:
        self.controllers.put(
            record.controller_id,
            ControllerImage(
                id=record.controller_id,
                incarnation_id=Uuid(record.incarnation_id),
                endpoints=_endpoints(record.end_points),
                features=_features(record.features),
                zk_migration_ready=record.zk_migration_ready,
            ),
        )

    # topics

    def _create_topic(self, record: Any) -> None:
        self.topics.create(record)

    def _remove_topic(self, record: Any) -> None:
        name = self.topics.remove(record)
        if (TOPIC_RESOURCE, name) in self.configs.now:
            self.configs.discard((TOPIC_RESOURCE, name))

    def _set_partition(self, record: Any) -> None:
        self.topics.set_partition(record)

    def _change_partition(self, record: Any) -> None:
        self.topics.change_partition(record)

    def _clear_elr(self, record: Any) -> None:
        self.topics.clear_elr(record)

    # everything else

    def _set_config(self, record: Any) -> None:
        resource = (record.resource_type, record.resource_name)
        settings = dict(self.configs.now.get(resource, {}))
        if record.value is None:
            settings.pop(record.name, None)
        else:
            settings[record.name] = record.value
        if settings:
            self.configs.put(resource, settings)
        else:
            self.configs.discard(resource)

    def _set_feature(self, record: Any) -> None:
        if record.feature_level == 0:
            self.features.discard(record.name)
        else:
            self.features.put(record.name, record.feature_level)

    def _set_quota(self, record: Any) -> None:
        entity = quota_entity((each.entity_type, each.entity_name) for each in record.entity)
        limits = dict(self.quotas.now.get(entity, {}))
        if record.remove:
            limits.pop(record.key, None)
        else:
            limits[record.key] = record.value
        if limits:
            self.quotas.put(entity, limits)
        else:
            self.quotas.discard(entity)

    def _set_producer_ids(self, record: Any) -> None:
        self.next_producer_id = record.next_producer_id

    def _set_acl(self, record: Any) -> None:
        entry = AccessControlEntry(
            resource_type=record.resource_type,
            resource_name=record.resource_name,
            pattern_type=record.pattern_type,
            principal=record.principal,
            host=record.host,
            operation=record.operation,
            permission_type=record.permission_type,
        )
        self.acls.put(Uuid(record.id), entry)

    def _remove_acl(self, record: Any) -> None:
        if Uuid(record.id) not in self.acls.now:
            raise MetadataLogError("RemoveAccessControlEntryRecord for an id that does not exist")
        self.acls.discard(Uuid(record.id))

    def _set_scram(self, record: Any) -> None:
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        self.scram.put((record.name, record.mechanism), credential)

    def _remove_scram(self, record: Any) -> None:
        self.scram.discard((record.name, record.mechanism))

    def _set_token(self, record: Any) -> None:
        token = DelegationToken(
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issue_timestamp=record.issue_timestamp,
            max_timestamp=record.max_timestamp,
            expiration_timestamp=record.expiration_timestamp,
        )
        self.tokens.put(record.token_id, token)

    def _remove_token(self, record: Any) -> None:
        self.tokens.discard(record.token_id)

    def _ignore(self, record: Any) -> None:
        """Ignores the record: NoOp only advances the offset, and the ZooKeeper migration state has no meaning since Kafka 4.0."""


def _endpoints(listeners: list[Any]) -> dict[str, Endpoint]:
    return {each.name: Endpoint(each.name, each.host, each.port, each.security_protocol) for each in listeners}


def _features(features: list[Any]) -> dict[str, tuple[int, int]]:
    return {each.name: (each.min_supported_version, each.max_supported_version) for each in features}


_TRANSACTION_RECORDS = frozenset({"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"})

_HANDLERS: dict[str, Callable[[ClusterDelta, Any], None]] = {
    "RegisterBrokerRecord": ClusterDelta._register_broker,
    "UnregisterBrokerRecord": ClusterDelta._unregister_broker,
    "TopicRecord": ClusterDelta._create_topic,
    "PartitionRecord": ClusterDelta._set_partition,
    "ConfigRecord": ClusterDelta._set_config,
    "PartitionChangeRecord": ClusterDelta._change_partition,
    "FenceBrokerRecord": ClusterDelta._fence_broker,
    "UnfenceBrokerRecord": ClusterDelta._unfence_broker,
    "RemoveTopicRecord": ClusterDelta._remove_topic,
    "DelegationTokenRecord": ClusterDelta._set_token,
    "UserScramCredentialRecord": ClusterDelta._set_scram,
    "FeatureLevelRecord": ClusterDelta._set_feature,
    "ClientQuotaRecord": ClusterDelta._set_quota,
    "ProducerIdsRecord": ClusterDelta._set_producer_ids,
    "BrokerRegistrationChangeRecord": ClusterDelta._change_broker,
    "AccessControlEntryRecord": ClusterDelta._set_acl,
    "RemoveAccessControlEntryRecord": ClusterDelta._remove_acl,
    "NoOpRecord": ClusterDelta._ignore,
    "ZkMigrationStateRecord": ClusterDelta._ignore,
    "RemoveUserScramCredentialRecord": ClusterDelta._remove_scram,
    "BeginTransactionRecord": ClusterDelta._begin_transaction,
    "EndTransactionRecord": ClusterDelta._end_transaction,
    "AbortTransactionRecord": ClusterDelta._abort_transaction,
    "RemoveDelegationTokenRecord": ClusterDelta._remove_token,
    "RegisterControllerRecord": ClusterDelta._register_controller,
    "ClearElrRecord": ClusterDelta._clear_elr,
}
