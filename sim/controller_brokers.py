"""Brokers for the simulated controller: what they know of the metadata, which records they hold, what they ask for.

A broker is a disk (the logs of its replicas, which outlive the process) and a process that may be dead, cut off from the
controller, or behind in the metadata. Logs are lists of (leader epoch, record). Followers copy from whom they take for the
leader, if both see the same leader epoch; a leader acknowledges a record once its whole maximal ISR has it, and never below
the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidelog.metadata.image import RECOVERING, ClusterImage, PartitionImage
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.alter_partition import AlterPartitionRequest, BrokerState, RequestPartitionData, RequestTopicData

PartitionId = tuple[Uuid, int]
Entry = tuple[int, int]
"""(leader epoch, record)."""


@dataclass(slots=True)
class Wish:
    """An ISR that a leader has asked for and not heard of: it counts on all of both, the old one and this one."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


@dataclass(slots=True)
class SimBroker:
    """See the module."""

    id: int
    rack: str
    alive: bool = False
    cut: bool = False
    """It and the controller do not hear each other."""
    incarnation: int = 0
    epoch: int = -1
    previous_epoch: int = -1
    """What its clean-shutdown file says."""
    view: ClusterImage = field(default_factory=ClusterImage)
    fenced: bool = True
    leaving: bool = False
    next_heartbeat_ms: int = 0
    logs: dict[PartitionId, list[Entry]] = field(default_factory=dict)
    synced: dict[PartitionId, int] = field(default_factory=dict)
    """How many records of each log a power failure leaves."""
    wishes: dict[PartitionId, Wish] = field(default_factory=dict)
    seen: dict[PartitionId, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """Of the partitions it leads: each follower's broker epoch, and the leader epoch in which it fetched last."""

    def start(self) -> None:
        """A new process on the same disk."""
        self.alive, self.leaving, self.fenced, self.epoch = True, False, True, -1
        self.incarnation += 1
        self.wishes.clear()
        self.seen.clear()
        self.next_heartbeat_ms = 0

    def stop(self, *, clean: bool, power_lost: bool = False) -> None:
        self.alive = False
        self.previous_epoch = self.epoch if clean else -1
        if power_lost:
            for partition, log in self.logs.items():
                del log[self.synced.get(partition, 0) :]
        elif clean:
            self.sync()

    def sync(self) -> None:
        """What was written reaches the disk."""
        self.synced = {partition: len(log) for partition, log in self.logs.items()}

    def partition(self, where: PartitionId) -> PartitionImage | None:
        """As this broker sees it."""
        topic = self.view.topics.by_id.get(where[0])
        return topic.partitions[where[1]] if topic is not None and where[1] < len(topic.partitions) else None

    def leads(self, where: PartitionId) -> PartitionImage | None:
        """The partition, if this process takes itself for its leader."""
        partition = self.partition(where)
        registered = self.view.brokers.get(self.id)
        if partition is None or registered is None or registered.epoch != self.epoch or not self.alive:
            return None
        return partition if partition.leader == self.id else None

    def maximal_isr(self, where: PartitionId, partition: PartitionImage) -> set[int]:
        """Everybody who may be in the ISR by now."""
        wish = self.wishes.get(where)
        if wish is not None and (wish.leader_epoch, wish.partition_epoch) != (partition.leader_epoch, partition.partition_epoch):
            del self.wishes[where]
            wish = None
        return {*partition.isr, *(() if wish is None else wish.isr)}

    def fetch_from(self, leader: SimBroker, where: PartitionId, partition: PartitionImage, most: int) -> int:
        """This follower fetches: its log becomes a prefix of the leader's. How many entries it had to cut off."""
        log, theirs = self.logs.setdefault(where, []), leader.logs.setdefault(where, [])
        same = 0
        while same < min(len(log), len(theirs)) and log[same] == theirs[same]:
            same += 1
        cut = len(log) - same
        del log[same:]
        log += theirs[same : same + most]
        self.synced[where] = min(self.synced.get(where, 0), same)
        leader.seen.setdefault(where, {})[self.id] = (self.epoch, partition.leader_epoch)
        return cut

    def acknowledged(self, where: PartitionId, brokers: dict[int, SimBroker], min_isr: int) -> list[Entry]:
        """What a leader may acknowledge: on each member of the maximal ISR, as far as they are known to hold it."""
        partition = self.leads(where)
        if partition is None or len(partition.isr) < min_isr:
            return []
        log = self.logs.setdefault(where, [])
        end = len(log)
        for member in sorted(self.maximal_isr(where, partition)):
            if member == self.id:
                continue
            fetched = self.seen.get(where, {}).get(member)
            if fetched is None or fetched[1] != partition.leader_epoch:
                return []
            end = min(end, common_prefix(log, brokers[member].logs.get(where, [])))
        return log[:end]

    def wish_for(self, where: PartitionId, isr: list[int]) -> AlterPartitionRequest | None:
        """Ask the controller for an ISR; None while an answer is due."""
        partition = self.leads(where)
        if partition is None:
            return None
        self.maximal_isr(where, partition)
        if where in self.wishes:
            return None
        if tuple(isr) == partition.isr and partition.leader_recovery_state != RECOVERING:
            return None
        self.wishes[where] = Wish(tuple(isr), partition.leader_epoch, partition.partition_epoch)
        seen = self.seen.get(where, {})
        states = [BrokerState(each, self.epoch if each == self.id else seen.get(each, (-1, 0))[0]) for each in isr]
        data = RequestPartitionData(
            partition_index=where[1],
            leader_epoch=partition.leader_epoch,
            new_isr_with_epochs=states,
            leader_recovery_state=0,
            partition_epoch=partition.partition_epoch,
        )
        return AlterPartitionRequest(
            broker_id=self.id, broker_epoch=self.epoch, topics=[RequestTopicData(topic_id=where[0], partitions=[data])]
        )

    def refused(self, request: AlterPartitionRequest) -> None:
        """The controller did not take what was asked: the ISR is what the metadata says."""
        (topic,) = request.topics
        (asked,) = topic.partitions
        where = (Uuid(topic.topic_id), asked.partition_index)
        wish = self.wishes.get(where)
        if wish is not None and (wish.leader_epoch, wish.partition_epoch) == (asked.leader_epoch, asked.partition_epoch):
            del self.wishes[where]


def common_prefix(one: list[Entry], other: list[Entry]) -> int:
    """How far two logs are the same."""
    for number, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return number
    return min(len(one), len(other))
