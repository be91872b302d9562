"""What the controller promises, looked at after each group of records. A broken promise is a ``Violation``.

Replicas and epochs: the ISR is part of the replicas and empty only with ELR; ISR and ELR have nobody in common; a leader is in
the ISR and in service; leader and partition epoch never go back, and the partition epoch counts every change. Memory: records
replayed on an empty image make the same image, and the index by broker is that of the image. Data: who is elected without
recovering holds every acknowledged record.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sim.raft_checkers import Violation
from tidelog.controller.partition_index import PartitionIndex
from tidelog.controller.partition_rules import elr_enabled
from tidelog.metadata.image import RECOVERING, ClusterImage, PartitionImage, TopicImage

if TYPE_CHECKING:
    from sim.controller_brokers import Entry, PartitionId, SimBroker


def require(condition: object, what: str) -> None:
    if not condition:
        raise Violation(what)


def check_partition(image: ClusterImage, where: PartitionId, partition: PartitionImage, before: PartitionImage | None) -> None:
    """One partition after a group of records; ``before`` is None when it is new."""
    name = f"{image.topics.by_id[where[0]].name}-{where[1]}: {partition}"
    isr, elr, replicas = set(partition.isr), set(partition.elr), set(partition.replicas)
    require(replicas and len(replicas) == len(partition.replicas), f"replicas twice: {name}")
    require(isr <= replicas and len(isr) == len(partition.isr), f"an ISR that is no part of the replicas: {name}")
    require(not isr & elr, f"in sync and eligible at once: {name}")
    require(elr_enabled(image) or not elr, f"eligible leaders without the feature: {name}")
    require(isr or elr_enabled(image), f"nobody in sync: {name}")
    require({*partition.adding_replicas, *partition.removing_replicas} <= replicas, f"moving what is not there: {name}")
    require(len(partition.directories) == len(partition.replicas), f"directories: {name}")
    if partition.has_leader:
        require(partition.leader in isr, f"a leader that is not in sync: {name}")
        broker = image.brokers[partition.leader]
        require(not broker.fenced and not broker.in_controlled_shutdown, f"a leader out of service: {name}")
        require(partition.leader_recovery_state != RECOVERING or len(isr) == 1, f"others in sync with one that recovers: {name}")
        for member in partition.isr:
            known = image.brokers.get(member)
            old = before is not None and member in before.isr
            in_service = known is not None and not known.fenced and not known.in_controlled_shutdown
            require(old or in_service, f"{member} joined the ISR out of service: {name}")
    if before is not None:
        cleared = replace(before, elr=(), last_known_elr=())  # ClearElrRecord moves no epoch.
        require(
            partition.partition_epoch > before.partition_epoch or partition == cleared,
            f"a change without a partition epoch: {name}, was {before}",
        )
        require(partition.leader_epoch >= before.leader_epoch, f"leader epoch went back: {name}, was {before}")
        same_leader = partition.leader == before.leader and set(before.replicas) <= replicas
        require(same_leader or partition.leader_epoch > before.leader_epoch, f"a leader without an epoch: {name}, was {before}")


def least_in_sync(image: ClusterImage, topic: TopicImage, partition: PartitionImage, default: int) -> int:
    """How many have to be in sync before the partition's leader acknowledges. It goes by its own replicas; the controller, as
    Kafka's, by those of the topic's first partition."""
    text = image.topic_configs(topic.name).get("min.insync.replicas") or image.cluster_configs.get("min.insync.replicas")
    return min(default if text is None else int(text), len(partition.replicas))


def check_eligible(image: ClusterImage, default_minimum: int) -> None:
    """Where enough are in sync to acknowledge, nobody else may be eligible to lead."""
    for topic in image.topics.by_id.values():
        for number, partition in enumerate(topic.partitions):
            enough = len(partition.isr) >= least_in_sync(image, topic, partition, default_minimum)
            eligible = partition.has_leader and partition.elr
            require(not (enough and eligible), f"eligible beside an ISR that acknowledges: {topic.name}-{number}: {partition}")


def check_memory(image: ClusterImage, replayed: ClusterImage, index: PartitionIndex) -> None:
    """What a new controller would make of the log is what this one has."""
    for name in ("features", "brokers", "topics", "configs", "next_producer_id", "acls", "scram"):
        require(getattr(image, name) == getattr(replayed, name), f"{name} replayed are not {name}")
    fresh = PartitionIndex(image.topics)
    for name in ("without_leader", "without_preferred_leader", "reassigning"):
        require(sorted(getattr(index, name)) == sorted(getattr(fresh, name)), f"the index of partitions {name} is wrong")
    for broker_id in image.brokers:
        require(sorted(index.with_in_isr(broker_id)) == sorted(fresh.with_in_isr(broker_id)), f"ISR index of {broker_id}")
        require(sorted(index.with_in_elr(broker_id)) == sorted(fresh.with_in_elr(broker_id)), f"ELR index of {broker_id}")
        require(index.leads(broker_id) == fresh.leads(broker_id), f"count of partitions that {broker_id} leads")


@dataclass(slots=True)
class Acknowledged:
    """The records that clients were told are safe, by partition, in order; and whether losing them was agreed to."""

    records: dict[PartitionId, list[Entry]] = field(default_factory=dict)
    lost_by_agreement: int = 0
    agreed: dict[PartitionId, int] = field(default_factory=dict)
    """The leader epoch of the last unclean election: what older leaders still acknowledge is lost by agreement, too."""

    def add(self, where: PartitionId, entries: list[Entry], leader_epoch: int) -> int:
        """A leader acknowledges the beginning of its log; how much is new."""
        if leader_epoch < self.agreed.get(where, 0):
            return 0
        known = self.records.setdefault(where, [])
        both = min(len(known), len(entries))
        require(
            known[:both] == entries[:both], f"{where} acknowledges {entries[:both]} where {known[:both]} was acknowledged before"
        )
        new = entries[len(known) :]
        known += new
        return len(new)

    def elected(self, where: PartitionId, partition: PartitionImage, leader: SimBroker, *, clean: bool) -> None:
        """Somebody leads: without recovering only who has everything."""
        if not clean:
            self.agreed[where] = partition.leader_epoch
        known, log = self.records.get(where, []), leader.logs.get(where, [])
        if log[: len(known)] == known:
            return
        require(not clean, f"{where}: {leader.id} leads with {log[-3:]}, acknowledged were {known[-3:]}: {partition}")
        self.lost_by_agreement += 1
        kept = 0
        while kept < min(len(known), len(log)) and known[kept] == log[kept]:
            kept += 1
        del known[kept:]
