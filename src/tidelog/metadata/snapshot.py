"""Converts an image into the records of a metadata snapshot.

Order: feature levels with ``metadata.version`` first (it decides how the rest is read), brokers, controllers, topics each with
its partitions, configs, quotas, producer ids, ACLs, SCRAM credentials, delegation tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.metadata.image import (
    BrokerImage,
    ClusterImage,
    ControllerImage,
    DelegationToken,
    PartitionImage,
    ScramCredential,
    TopicImage,
)
from tidelog.metadata.records import MetadataRecord
from tidelog.metadata.supported_features import (
    CONTROLLER_REGISTRATION_MV,
    CORDONED_DIRS_MV,
    DIRECTORIES_MV,
    ELR_MV,
    METADATA_VERSION,
)
from tidelog.model.acl import AccessControlEntry
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.access_control_entry_record import AccessControlEntryRecord
from tidelog.protocol.messages.client_quota_record import ClientQuotaRecord, EntityData
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.protocol.messages.delegation_token_record import DelegationTokenRecord
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.protocol.messages.partition_record import PartitionRecord
from tidelog.protocol.messages.producer_ids_record import ProducerIdsRecord
from tidelog.protocol.messages.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from tidelog.protocol.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from tidelog.protocol.messages.topic_record import TopicRecord
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord


def snapshot_records(image: ClusterImage) -> Iterator[MetadataRecord]:
    """All records of the snapshot, in order; applied to an empty image they give this one."""
    yield from _feature_records(image)
    for broker in image.brokers.values():
        yield register_broker_record(broker, image.metadata_version)
    if image.metadata_version >= CONTROLLER_REGISTRATION_MV:
        for controller in image.controllers.values():
            yield register_controller_record(controller)
    for topic in image.topics.by_id.values():
        yield from _topic_records(topic, image.metadata_version)
    for (resource_type, resource_name), settings in image.configs.items():
        for name, value in settings.items():
            yield ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
    for entity, limits in image.quotas.items():
        parts = [EntityData(entity_type=entity_type, entity_name=entity_name) for entity_type, entity_name in entity]
        for key, limit in limits.items():
            yield ClientQuotaRecord(entity=parts, key=key, value=limit, remove=False)
    if image.next_producer_id >= 0:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from _security_records(image)


def _feature_records(image: ClusterImage) -> Iterator[MetadataRecord]:
    if METADATA_VERSION in image.features:
        yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=image.metadata_version)
    for name, level in sorted(image.features.items()):
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=level)


def _topic_records(topic: TopicImage, metadata_version: int) -> Iterator[MetadataRecord]:
    yield TopicRecord(name=topic.name, topic_id=topic.id)
    for number, partition in enumerate(topic.partitions):
        yield partition_record(topic.id, number, partition, metadata_version)


def _security_records(image: ClusterImage) -> Iterator[MetadataRecord]:
    for acl_id, acl in image.acls.items():
        yield acl_record(acl_id, acl)
    for (user, mechanism), credential in image.scram.items():
        yield scram_record(user, mechanism, credential)
    for token_id, token in image.tokens.items():
        yield token_record(token_id, token)


def acl_record(acl_id: Uuid, acl: AccessControlEntry) -> AccessControlEntryRecord:
    """An ACL and the id under which it is removed."""
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def token_record(token_id: str, token: DelegationToken) -> DelegationTokenRecord:
    """A delegation token; its secret is in no record."""
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=token.expiration_timestamp,
        token_id=token_id,
    )


def scram_record(user: str, mechanism: int, credential: ScramCredential) -> UserScramCredentialRecord:
    """A user's credential; ``mechanism`` 1 SHA-256, 2 SHA-512."""
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def partition_record(topic_id: bytes, number: int, partition: PartitionImage, metadata_version: int) -> PartitionRecord:
    """The whole partition, without fields that ``metadata_version`` does not know."""
    with_elr = metadata_version >= ELR_MV
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories) if metadata_version >= DIRECTORIES_MV else [],
        eligible_leader_replicas=list(partition.elr) if with_elr and partition.elr else None,
        last_known_elr=list(partition.last_known_elr) if with_elr and partition.last_known_elr else None,
    )


def register_broker_record(broker: BrokerImage, metadata_version: int) -> RegisterBrokerRecord:
    """The broker's registration, without fields that ``metadata_version`` does not know."""
    cordoned = broker.cordoned_directories if metadata_version >= CORDONED_DIRS_MV else None
    return RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            BrokerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in broker.endpoints.values()
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories) if metadata_version >= DIRECTORIES_MV else [],
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def register_controller_record(controller: ControllerImage) -> RegisterControllerRecord:
    """The controller's registration."""
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[
            ControllerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in controller.endpoints.values()
        ],
        features=[
            ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in controller.features.items()
        ],
    )
