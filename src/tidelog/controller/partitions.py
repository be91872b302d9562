"""Who leads a partition, and the record that says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidelog.metadata.features import DIRECTORIES_MV
from tidelog.metadata.image import RECOVERING, TOPIC_RESOURCE, BrokerImage, ClusterImage, PartitionImage
from tidelog.model.ids import LOST_DIR, NO_BROKER, RESERVED_UUIDS, UNASSIGNED_DIR, Uuid
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord

Acceptable = Callable[[int], bool]
"""May this replica lead?"""


@dataclass(frozen=True, slots=True)
class Election:
    """Who should lead; ``unclean`` when records may be lost by it."""

    leader: int
    unclean: bool = False


def elect(partition: PartitionImage, isr: tuple[int, ...], acceptable: Acceptable, *, unclean_allowed: bool) -> Election:
    """The leader to have while ``isr`` is in sync: the present one if it may stay, else the first replica in assignment order.

    With an empty ISR an eligible leader replica may lead (KIP-966); without any, an unclean election if it is allowed.
    """

    def valid(replica: int) -> bool:
        return (replica in isr or (not isr and replica in partition.elr)) and acceptable(replica)

    if partition.leader != NO_BROKER and valid(partition.leader):
        return Election(partition.leader)
    for replica in partition.replicas:
        if valid(replica):
            return Election(replica)
    if unclean_allowed:
        for replica in partition.replicas:
            if acceptable(replica):
                return Election(replica, unclean=True)
    return Election(NO_BROKER)


def change_for(
    topic_id: Uuid,
    number: int,
    partition: PartitionImage,
    *,
    isr: tuple[int, ...],
    acceptable: Acceptable,
    unclean_allowed: bool,
) -> PartitionChangeRecord | None:
    """The change that makes ``isr`` the in-sync set and elects if need be; None when nothing changes.

    The ISR is never made empty: its last members stay in it without a leader, and one of them must come back to lead.
    """
    election = elect(partition, isr, acceptable, unclean_allowed=unclean_allowed)
    record = PartitionChangeRecord(partition_id=number, topic_id=topic_id)
    changed = False
    if election.leader != partition.leader:
        record.leader = election.leader
        changed = True
        if election.unclean:
            record.isr = [election.leader]
            if partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING
        elif election.leader in partition.elr and not isr:
            record.isr = [election.leader]
    if record.isr is None and isr and isr != partition.isr:
        record.isr = list(isr)
        changed = True
    return record if changed else None


def online_leader_check(
    image: ClusterImage, partition: PartitionImage, *, without: int = NO_BROKER, plus: int = NO_BROKER
) -> Acceptable:
    """May a replica lead: its broker is active (or ``plus``, not ``without``) and has the directory the replica is in."""

    def acceptable(replica: int) -> bool:
        if replica == without:
            return False
        broker = image.brokers.get(replica)
        if broker is None or not (replica == plus or broker.active):
            return False
        return has_online_dir(broker, partition.directory(replica))

    return acceptable


def has_online_dir(broker: BrokerImage, directory: Uuid) -> bool:
    """Is the directory one the broker registered, or one it has still to choose?"""
    if directory == LOST_DIR:
        return False
    return directory in RESERVED_UUIDS or not broker.directories or directory in broker.directories


def default_directory(image: ClusterImage, broker_id: int) -> Uuid:
    """Where a new replica goes: the broker's only directory; UNASSIGNED when it has several and will choose itself."""
    broker = image.brokers.get(broker_id)
    if broker is not None and len(broker.directories) == 1:
        return broker.directories[0]
    return UNASSIGNED_DIR


def default_directories(image: ClusterImage, replicas: tuple[int, ...]) -> tuple[Uuid, ...]:
    """One per replica; none while ``metadata.version`` does not know directories."""
    if image.metadata_version < DIRECTORIES_MV:
        return ()
    return tuple(default_directory(image, replica) for replica in replicas)


def unclean_allowed(image: ClusterImage, topic: str, default: bool) -> bool:
    """``unclean.leader.election.enable`` as it stands for the topic."""
    name = "unclean.leader.election.enable"
    for settings in (image.configs.get((TOPIC_RESOURCE, topic), {}), image.cluster_configs):
        if name in settings:
            return settings[name].lower() == "true"
    return default


def leader_changes(
    image: ClusterImage,
    *,
    without: int = NO_BROKER,
    plus: int = NO_BROKER,
    unclean_default: bool = False,
) -> Iterator[PartitionChangeRecord]:
    """Every partition change that follows when broker ``without`` goes or broker ``plus`` comes.

    Going: it leaves the ISR wherever others are in it, and its leaderships move or end. Coming: partitions without a leader
    get one. One of the two is given.
    """
    assert (without == NO_BROKER) != (plus == NO_BROKER), (without, plus)
    for topic in image.topics.by_id.values():
        allowed = unclean_allowed(image, topic.name, unclean_default)
        for number, partition in enumerate(topic.partitions):
            if plus != NO_BROKER:
                concerned = not partition.has_leader and plus in partition.replicas
            else:
                concerned = partition.leader == without or without in partition.isr
            if not concerned:
                continue
            isr = tuple(member for member in partition.isr if member != without)
            change = change_for(
                topic.id,
                number,
                partition,
                isr=isr,
                acceptable=online_leader_check(image, partition, without=without, plus=plus),
                unclean_allowed=allowed,
            )
            if change is not None:
                yield change
