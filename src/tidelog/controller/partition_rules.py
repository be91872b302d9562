"""The controller's knowledge about partitions: eligible leaders, log dirs of new replicas, effective settings."""

from __future__ import annotations

from tidelog.controller.leader_election import Acceptable
from tidelog.controller.partition_change import ChangeRules
from tidelog.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from tidelog.metadata.supported_features import DIRECTORIES_MV, ELR_VERSION
from tidelog.model.ids import LOST_DIR, NO_BROKER, RESERVED_UUIDS, UNASSIGNED_DIR, ZERO_UUID, Uuid


def online_leader_check(
    image: ClusterImage, partition: PartitionImage, *, without: int = NO_BROKER, plus: int = NO_BROKER
) -> Acceptable:
    """A check whether a replica may lead: its broker is active (or ``plus``, and not ``without``) and has the replica's
    directory."""

    def acceptable(replica: int) -> bool:
        if replica == without or replica not in partition.replicas:
            return False
        broker = image.brokers.get(replica)
        if broker is None or not (replica == plus or broker.active):
            return False
        return has_online_dir(broker, partition.directory(replica))

    return acceptable


def has_online_dir(broker: BrokerImage, directory: Uuid) -> bool:
    """Whether the directory is registered by the broker, or is yet to be chosen by it."""
    if directory == LOST_DIR:
        return False
    return directory in RESERVED_UUIDS or not broker.directories or directory in broker.directories


def default_directory(image: ClusterImage, broker_id: int) -> Uuid:
    """The directory of a new replica: the broker's only one; UNASSIGNED when the broker has several and chooses itself;
    MIGRATING when it registered none."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        return UNASSIGNED_DIR
    if not broker.directories:
        return ZERO_UUID
    return broker.directories[0] if len(broker.directories) == 1 else UNASSIGNED_DIR


def default_directories(image: ClusterImage, replicas: tuple[int, ...]) -> tuple[Uuid, ...]:
    """One per replica; none while ``metadata.version`` does not have directories."""
    if image.metadata_version < DIRECTORIES_MV:
        return ()
    return tuple(default_directory(image, replica) for replica in replicas)


def unclean_allowed(image: ClusterImage, topic: str, default: bool) -> bool:
    """The effective ``unclean.leader.election.enable`` of the topic."""
    name = "unclean.leader.election.enable"
    for settings in (image.topic_configs(topic), image.cluster_configs):
        if name in settings:
            return settings[name].lower() == "true"
    return default


def min_in_sync(image: ClusterImage, topic: TopicImage, default: int) -> int:
    """The effective ``min.insync.replicas`` of the topic, at most its number of replicas."""
    name = "min.insync.replicas"
    text = image.topic_configs(topic.name).get(name) or image.cluster_configs.get(name)
    return min(default if text is None else int(text), len(topic.partitions[0].replicas))


def elr_enabled(image: ClusterImage) -> bool:
    """Whether ``eligible.leader.replicas.version`` is finalized."""
    return image.features.get(ELR_VERSION, 0) >= 1


def change_rules(image: ClusterImage, topic: TopicImage, default_min_isr: int) -> ChangeRules:
    """What changes of the topic's partitions depend on."""
    return ChangeRules(
        metadata_version=image.metadata_version,
        elr_enabled=elr_enabled(image),
        min_isr=min_in_sync(image, topic, default_min_isr),
        default_directory=lambda broker_id: default_directory(image, broker_id),
    )
