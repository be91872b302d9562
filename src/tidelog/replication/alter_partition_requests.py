"""ISR changes sent to the controller: many partitions in one AlterPartition, one request at a time (KIP-497).

Decided here: what each answer means for the partition. A change in force applies at once, before the metadata carries it. A
change that names a replica which may not join is dropped; that replica's next fetch asks again. If the controller is ahead of
this leader, the leader waits for its metadata. Anything else is retried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from tidelog.metadata.image import RECOVERED
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)

if TYPE_CHECKING:
    from tidelog.replication.partition import Partition

_WAIT_FOR_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
_GIVE_UP = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})


class _Asked(NamedTuple):
    partition: Partition
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


class IsrChanges:
    """The wanted ISR changes of this broker's partitions. ``expansions`` and ``shrinks`` count those in force."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._wanted: dict[Partition, None] = {}
        self._asked: dict[tuple[bytes, int], _Asked] | None = None
        self.on_wanted: Callable[[], None] | None = None
        """Called when a change is wanted."""
        self.expansions = 0
        self.shrinks = 0
        self.failures = 0

    @property
    def ready(self) -> bool:
        """Whether a change is wanted and no request is in flight."""
        return bool(self._wanted) and self._asked is None

    def want(self, partition: Partition) -> None:
        """Ask for the partition's ``leadership.pending`` with the next request."""
        self._wanted[partition] = None
        if self.on_wanted is not None:
            self.on_wanted()

    def next_request(self, broker_epoch: int) -> AlterPartitionRequest | None:
        """The next request; None when nothing is wanted or a request is in flight. ``answered`` or ``failed`` must follow."""
        if not self.ready:
            return None
        asked: dict[tuple[bytes, int], _Asked] = {}
        topics: dict[bytes, RequestTopicData] = {}
        wanted, self._wanted = self._wanted, {}
        for partition in wanted:
            leadership = partition.leadership
            if leadership is None or leadership.pending is None:
                continue
            asked[partition.topic_id, partition.index] = _Asked(
                partition, partition.leader_epoch, partition.partition_epoch, leadership.pending
            )
            topic = topics.setdefault(partition.topic_id, RequestTopicData(topic_id=partition.topic_id))
            topic.partitions.append(_request_partition(partition, leadership.pending, self._broker_id, broker_epoch))
        if not asked:
            return None
        self._asked = asked
        return AlterPartitionRequest(broker_id=self._broker_id, broker_epoch=broker_epoch, topics=list(topics.values()))

    def failed(self) -> None:
        """No usable answer arrived: retry all of it."""
        asked, self._asked = self._asked, None
        for each in (asked or {}).values():
            if _is_current(each):
                self._wanted[each.partition] = None

    def answered(self, response: AlterPartitionResponse, even_ms: int) -> bool:
        """Apply the controller's answer. False: it refused the whole request or left partitions unanswered; retry after a
        back-off."""
        if response.error_code:
            self.failures += 1
            self.failed()
            return False
        asked, self._asked = self._asked or {}, None
        for topic in response.topics:
            for answer in topic.partitions:
                each = asked.pop((bytes(topic.topic_id), answer.partition_index), None)
                if each is not None and _is_current(each):
                    self._settle(each, answer, even_ms)
        again = [each for each in asked.values() if _is_current(each)]
        self._wanted.update((each.partition, None) for each in again)
        return not again

    def _settle(self, asked: _Asked, answer: ResponsePartitionData, even_ms: int) -> None:
        partition, leadership = asked.partition, asked.partition.leadership
        assert leadership is not None
        if answer.error_code == ErrorCode.NONE:
            if answer.leader_epoch == partition.leader_epoch and answer.partition_epoch >= partition.partition_epoch:
                self._count(partition.isr, answer.isr)
                partition.take_over_isr(tuple(answer.isr), answer.partition_epoch, even_ms)
            return
        self.failures += 1
        if answer.error_code in _GIVE_UP:
            leadership.settle(partition.isr)
            partition.expose(even_ms)
        elif answer.error_code not in _WAIT_FOR_METADATA:
            self._wanted[partition] = None

    def _count(self, before: Iterable[int], after: Iterable[int]) -> None:
        self.expansions += bool(set(after) - set(before))
        self.shrinks += bool(set(before) - set(after))


def _is_current(asked: _Asked) -> bool:
    """Whether the partition still wants this change; newer metadata settles it otherwise."""
    partition, leadership = asked.partition, asked.partition.leadership
    return (
        leadership is not None
        and leadership.pending is asked.isr
        and partition.leader_epoch == asked.leader_epoch
        and partition.partition_epoch == asked.partition_epoch
    )


def _request_partition(partition: Partition, isr: tuple[int, ...], broker_id: int, broker_epoch: int) -> RequestPartitionData:
    leadership = partition.leadership
    assert leadership is not None
    members = [BrokerState(each, broker_epoch if each == broker_id else leadership.replicas[each].broker_epoch) for each in isr]
    return RequestPartitionData(
        partition_index=partition.index,
        leader_epoch=partition.leader_epoch,
        new_isr_with_epochs=members,
        # After an unclean election a leader only has its own log to recover, and that is done.
        leader_recovery_state=RECOVERED,
        partition_epoch=partition.partition_epoch,
    )
