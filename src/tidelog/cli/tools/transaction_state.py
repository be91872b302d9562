"""Reads transaction state from coordinators and from partitions, and finds mismatches.

A transaction hangs when it is open in a partition and no coordinator knows it: nothing will ever end it, and read_committed
consumers stop there. KIP-664.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidelog.cli.admin_session import AdminSession, NodeConnection, Partition
from tidelog.cli.refusal import CommandFailed, error_text
from tidelog.client.admin import transactions
from tidelog.client.admin.results import TransactionDescription, TransactionListing
from tidelog.client.calls import Call
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse, TopicRequest
from tidelog.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

T = TypeVar("T")
NONE = -1
"""Value in responses for a missing offset, time or epoch."""
PARTITIONS_IN_REQUEST = 1000


@dataclass(frozen=True, slots=True)
class Producer:
    """A producer's state in a partition. ``start_offset``: of its open transaction there, or None."""

    partition: Partition
    producer_id: int
    epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    start_offset: int | None


def list_transactions(
    session: AdminSession, *, duration_ms: int = NONE, pattern: str | None = None, producer_ids: Sequence[int] = ()
) -> list[TransactionListing]:
    """Lists all coordinators, broker by broker. UnsupportedByBroker when a broker is too old for a filter."""
    return session.run(transactions.list_all(duration_ms=duration_ms, pattern=pattern, producer_ids=producer_ids))


def describe(session: AdminSession, transactional_id: str) -> TransactionDescription:
    """Describes a transactional id. CommandFailed when its coordinator does not know it."""
    return _of_id(session, transactional_id, transactions.describe(transactional_id))


def _of_id(session: AdminSession, transactional_id: str, call: Call[T]) -> T:
    try:
        return session.run(call)
    except CommandFailed as error:
        raise CommandFailed(f"Transactional id {transactional_id}: {error}") from error


def producers(session: AdminSession, partitions: Iterable[Partition], broker_id: int | None = None) -> list[Producer]:
    """The producers known to the partitions' leaders, or to that broker's replicas. CommandFailed for the first error."""
    wanted = sorted(partitions)
    if broker_id is not None:
        by_broker = {broker_id: wanted}
    else:
        leaders = session.leaders(topic for topic, _ in wanted)
        by_broker = {}
        for partition in wanted:
            if partition not in leaders:
                raise CommandFailed(f"{partition[0]}-{partition[1]} has no leader now, or is not there.")
            by_broker.setdefault(leaders[partition], []).append(partition)
    found: list[Producer] = []
    for broker, chosen in by_broker.items():
        for first in range(0, len(chosen), PARTITIONS_IN_REQUEST):
            found += _producers_of(session.connection(broker), chosen[first : first + PARTITIONS_IN_REQUEST])
    return found


def _producers_of(connection: NodeConnection, partitions: Sequence[Partition]) -> list[Producer]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    asked = [TopicRequest(name=topic, partition_indexes=indexes) for topic, indexes in by_topic.items()]
    response: DescribeProducersResponse = connection.ask(DescribeProducersRequest(topics=asked))
    found: list[Producer] = []
    for answered in response.topics:
        for part in answered.partitions:
            if part.error_code:
                raise CommandFailed(
                    f"Partition {answered.name}-{part.partition_index}: {error_text(part.error_code, part.error_message)}"
                )
            found += [
                Producer(
                    (answered.name, part.partition_index),
                    each.producer_id,
                    each.producer_epoch,
                    each.coordinator_epoch,
                    each.last_sequence,
                    each.last_timestamp,
                    None if each.current_txn_start_offset == NONE else each.current_txn_start_offset,
                )
                for each in part.active_producers
            ]
    return found


def hanging(session: AdminSession, open_ones: Sequence[Producer]) -> list[Producer]:
    """Those of these open transactions whose partition no coordinator includes in a transaction."""
    if not open_ones:
        return []
    ids = sorted({each.producer_id for each in open_ones})
    names = {each.producer_id: each.transactional_id for each in list_transactions(session, producer_ids=ids)}
    known: dict[int, tuple[Partition, ...]] = {}
    for producer_id, transactional_id in names.items():
        try:
            known[producer_id] = describe(session, transactional_id).partitions
        except CommandFailed:
            continue  # it expired after it was listed
    return [each for each in open_ones if each.partition not in known.get(each.producer_id, ())]


def abort(session: AdminSession, producer: Producer) -> None:
    """Writes an abort marker into the partition, whatever the coordinator's state. CommandFailed when it is refused."""
    topic, index = producer.partition
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[index])],
        # As in Kafka's tool, 0 when no coordinator has written a marker yet.
        coordinator_epoch=max(0, producer.coordinator_epoch),
    )
    leader = session.leaders([topic]).get(producer.partition)
    if leader is None:
        raise CommandFailed(f"{topic}-{index} has no leader now, or is not there.")
    response = session.connection(leader).ask(WriteTxnMarkersRequest(markers=[marker]))
    code = response.markers[0].topics[0].partitions[0].error_code
    if code != ErrorCode.NONE:
        raise CommandFailed(f"{topic}-{index} refused the marker: {error_text(code)}")


def force_terminate(session: AdminSession, transactional_id: str) -> None:
    """Fences the producer, which aborts its open transaction. CommandFailed when it is refused."""
    _of_id(session, transactional_id, transactions.force_terminate(transactional_id, timeout_ms=session.timeout_ms))
