"""Reads transaction state from coordinators and from partitions, and finds mismatches.

A transaction hangs when it is open in a partition and no coordinator knows it: nothing will ever end it, and read_committed
consumers stop there. KIP-664.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from tidelog.cli.admin_session import TRANSACTION, AdminSession, NodeConnection, Partition
from tidelog.cli.refusal import CommandFailed, check, error_text
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse, TopicRequest
from tidelog.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest
from tidelog.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tidelog.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

NONE = -1
"""Value in responses for a missing offset, time or epoch."""
DURATION_FROM, PATTERN_FROM = 1, 2
PARTITIONS_IN_REQUEST = 1000


@dataclass(frozen=True, slots=True)
class Listed:
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class Described:
    """A transactional id in full. ``start_time_ms`` is None when no transaction is open."""

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_time_ms: int | None
    partitions: tuple[Partition, ...]


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
) -> list[Listed]:
    """Lists all coordinators, broker by broker. CommandFailed when a broker is too old for a filter."""
    found: list[Listed] = []
    request = ListTransactionsRequest(
        producer_id_filters=list(producer_ids), duration_filter=duration_ms, transactional_id_pattern=pattern
    )
    for broker_id in session.brokers():
        connection = session.connection(broker_id)
        version = connection.version_of(ListTransactionsRequest.API_KEY)
        for given, needed, name in ((duration_ms >= 0, DURATION_FROM, "duration"), (pattern, PATTERN_FROM, "pattern")):
            if given and version < needed:
                raise CommandFailed(
                    f"Broker {broker_id} serves ListTransactions v{version}; a filter by {name} needs v{needed}. Leave it out."
                )
        response = session.until_settled(partial(_listed, connection, request), attrgetter("error_code"))
        check(response.error_code)
        found += [
            Listed(each.transactional_id, broker_id, each.producer_id, each.transaction_state)
            for each in response.transaction_states
        ]
    return found


def _listed(connection: NodeConnection, request: ListTransactionsRequest) -> ListTransactionsResponse:
    response: ListTransactionsResponse = connection.ask(request)
    return response


def describe(session: AdminSession, transactional_id: str) -> Described:
    """Describes a transactional id. CommandFailed when its coordinator does not know it."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    response = session.ask_coordinator(
        transactional_id, request, lambda answer: answer.transaction_states[0].error_code, TRANSACTION
    )
    (found,) = response.transaction_states
    if found.error_code:
        raise CommandFailed(f"Transactional id {transactional_id}: {error_text(found.error_code)}")
    started = found.transaction_start_time_ms
    return Described(
        transactional_id,
        session.coordinator(transactional_id, TRANSACTION)[0],
        found.producer_id,
        found.producer_epoch,
        found.transaction_state,
        found.transaction_timeout_ms,
        None if started == NONE else started,
        tuple(sorted((topic.topic, index) for topic in found.topics for index in topic.partitions)),
    )


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
    describe(session, transactional_id)  # the request would create an unknown one
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=session.timeout_ms)
    transient = {ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    response = session.ask_coordinator(
        transactional_id, request, lambda answer: transient.get(ErrorCode(answer.error_code), answer.error_code), TRANSACTION
    )
    if response.error_code != ErrorCode.NONE:
        raise CommandFailed(f"Transactional id {transactional_id}: {error_text(response.error_code)}")
