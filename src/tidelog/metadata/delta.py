"""Applies metadata records to an image: the only place where the cluster's durable state changes.

``ClusterDelta`` accepts every record type of Kafka 4.4. It records what changed, for the replica manager and the config
listeners, and copies only the dictionaries it writes to. Topics, registrations and security have deltas of their own. Records
between BeginTransaction and EndTransaction are held back until the end is read: an image never shows part of a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tidelog.metadata.image import TOPIC_RESOURCE, ClusterImage, ConfigResource, QuotaEntity, quota_entity
from tidelog.metadata.overlay import Overlay
from tidelog.metadata.records import MetadataLogError, MetadataRecord
from tidelog.metadata.registrations_delta import RegistrationsDelta
from tidelog.metadata.security_delta import SecurityDelta
from tidelog.metadata.topics_delta import TopicsDelta


class ClusterDelta:
    """Records on top of ``base``; ``apply`` builds the next image, and the delta can still be read afterwards."""

    def __init__(self, base: ClusterImage) -> None:
        self.base = base
        self.topics = TopicsDelta(base.topics)
        self.registrations = RegistrationsDelta(base.brokers, base.controllers)
        self.security = SecurityDelta(base.acls, base.scram, base.tokens)
        self.features: Overlay[str, int] = Overlay(base.features)
        self.configs: Overlay[ConfigResource, Mapping[str, str]] = Overlay(base.configs)
        self.quotas: Overlay[QuotaEntity, Mapping[str, float]] = Overlay(base.quotas)
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
            brokers=self.registrations.brokers.now,
            controllers=self.registrations.controllers.now,
            topics=self.topics.apply(),
            configs=self.configs.now,
            quotas=self.quotas.now,
            next_producer_id=self.next_producer_id,
            acls=self.security.acls.now,
            scram=self.security.scram.now,
            tokens=self.security.tokens.now,
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

    # topics

    def _remove_topic(self, record: Any) -> None:
        name = self.topics.remove(record)
        if (TOPIC_RESOURCE, name) in self.configs.now:
            self.configs.discard((TOPIC_RESOURCE, name))

    # settings, quotas, features

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

    def _ignore(self, record: Any) -> None:
        """Ignores the record: NoOp only advances the offset, and the ZooKeeper migration state has no meaning since Kafka 4.0."""


_TRANSACTION_RECORDS = frozenset({"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"})

_HANDLERS: dict[str, Callable[[ClusterDelta, Any], None]] = {
    "RegisterBrokerRecord": lambda delta, record: delta.registrations.register(record),
    "UnregisterBrokerRecord": lambda delta, record: delta.registrations.unregister(record),
    "TopicRecord": lambda delta, record: delta.topics.create(record),
    "PartitionRecord": lambda delta, record: delta.topics.set_partition(record),
    "ConfigRecord": ClusterDelta._set_config,
    "PartitionChangeRecord": lambda delta, record: delta.topics.change_partition(record),
    "FenceBrokerRecord": lambda delta, record: delta.registrations.fence(record),
    "UnfenceBrokerRecord": lambda delta, record: delta.registrations.unfence(record),
    "RemoveTopicRecord": ClusterDelta._remove_topic,
    "DelegationTokenRecord": lambda delta, record: delta.security.set_token(record),
    "UserScramCredentialRecord": lambda delta, record: delta.security.set_scram(record),
    "FeatureLevelRecord": ClusterDelta._set_feature,
    "ClientQuotaRecord": ClusterDelta._set_quota,
    "ProducerIdsRecord": ClusterDelta._set_producer_ids,
    "BrokerRegistrationChangeRecord": lambda delta, record: delta.registrations.change(record),
    "AccessControlEntryRecord": lambda delta, record: delta.security.set_acl(record),
    "RemoveAccessControlEntryRecord": lambda delta, record: delta.security.remove_acl(record),
    "NoOpRecord": ClusterDelta._ignore,
    "ZkMigrationStateRecord": ClusterDelta._ignore,
    "RemoveUserScramCredentialRecord": lambda delta, record: delta.security.remove_scram(record),
    "BeginTransactionRecord": ClusterDelta._begin_transaction,
    "EndTransactionRecord": ClusterDelta._end_transaction,
    "AbortTransactionRecord": ClusterDelta._abort_transaction,
    "RemoveDelegationTokenRecord": lambda delta, record: delta.security.remove_token(record),
    "RegisterControllerRecord": lambda delta, record: delta.registrations.register_controller(record),
    "UnregisterControllerRecord": lambda delta, record: delta.registrations.unregister_controller(record),
    "ClearElrRecord": lambda delta, record: delta.topics.clear_elr(record),
}
