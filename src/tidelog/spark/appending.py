"""Send record batches to the leaders of their partitions, one per partition at a time, to all leaders in parallel, until
acknowledged.

After an error that passes, the same bytes are sent again: within a transaction their sequence numbers make that one append.
Memory is bounded by what the caller hands over, and by ``WINDOW_BYTES`` where batches come as a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.client.net.blocking import BrokerSocket
from tidelog.client.producing import (
    Appended,
    Transaction,
    Verdict,
    highest_version,
    joins_by_writing,
    judge,
    produce_request,
    read_produced,
)
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.model.ids import TopicPartition
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.produce import ProduceRequest
from tidelog.spark.cluster import Cluster

WINDOW_BYTES = 8 << 20
"""Bytes of a stream of batches that are looked at to find partitions that can be written at the same time."""
Batch = tuple[TopicPartition, bytearray]


class WriteFailed(Exception):
    """Rows cannot be written; the text says why and what to do. Nothing of the batch is visible."""


class Fenced(WriteFailed):
    """Another run of the same query took over, or the transaction timed out."""


def rounds(batches: Iterable[Batch], max_bytes: int) -> Iterator[dict[TopicPartition, bytearray]]:
    """The batches in groups, each with one batch per partition and ``max_bytes`` at most (or one batch); partitions keep their
    order."""
    waiting: dict[TopicPartition, list[bytearray]] = {}
    held = 0
    for at, batch in batches:
        waiting.setdefault(at, []).append(batch)
        held += len(batch)
        while held >= WINDOW_BYTES:
            taken = _round(waiting, max_bytes)
            held -= sum(map(len, taken.values()))
            yield taken
    while waiting:
        yield _round(waiting, max_bytes)


def _round(waiting: dict[TopicPartition, list[bytearray]], max_bytes: int) -> dict[TopicPartition, bytearray]:
    taken: dict[TopicPartition, bytearray] = {}
    room = max_bytes
    # The partition with the longest queue goes first, so that the end is not one long queue of one partition.
    for at in sorted(waiting, key=lambda found: -len(waiting[found])):
        batch = waiting[at][0]
        if taken and len(batch) > room:
            continue
        taken[at] = batch
        room -= len(batch)
        waiting[at].pop(0)
        if not waiting[at]:
            del waiting[at]
    return taken


class Appender:
    """Appends batches, in a transaction or without one."""

    def __init__(
        self, cluster: Cluster, timeout_ms: int, request_timeout_ms: int, transaction: Transaction | None = None
    ) -> None:
        self._cluster = cluster
        self._timeout_ms = timeout_ms
        self._request_timeout_ms = request_timeout_ms
        self._transaction = transaction

    def append(self, batches: dict[TopicPartition, bytearray]) -> dict[TopicPartition, int]:
        """Append all batches, acknowledged by all in-sync replicas; the base offset of each. WriteFailed says which could not
        be written."""
        waiting = dict(batches)
        offsets: dict[TopicPartition, int] = {}
        problem = ""
        for _ in self._cluster.pauses(self._timeout_ms):
            try:
                for at, found in self._sent(waiting).items():
                    if self._done(at, found):
                        offsets[at] = found.base_offset
                        del waiting[at]
                    else:
                        problem = f"{at}: {found.error.name}"
            except NoConnection as error:
                problem = str(error)
            if not waiting:
                return offsets
        self._failed()
        raise WriteFailed(
            f"{len(waiting)} batches, the first for {next(iter(waiting))}, were not acknowledged within {self._timeout_ms} ms "
            f"(kafka.delivery.timeout.ms). Last problem: {problem}."
        )

    def _sent(self, waiting: dict[TopicPartition, bytearray]) -> dict[TopicPartition, Appended]:
        by_leader: dict[BrokerSocket, list[TopicPartition]] = {}
        for at in waiting:
            connection, _ = self._cluster.leader_socket(at, self._cluster.hint(at))
            by_leader.setdefault(connection, []).append(at)
        sent: list[tuple[BrokerSocket, list[TopicPartition]]] = []
        found: dict[TopicPartition, Appended] = {}
        problem: NoConnection | None = None
        # All sessions are renewed before anything is sent: a refusal must leave no connection with an answer that nothing reads.
        for connection in list(by_leader):
            failed = self._try(connection, connection.renew)
            if failed is not None:
                del by_leader[connection]
            problem = failed or problem
        for connection, partitions in by_leader.items():
            request = self._request({at: waiting[at] for at in partitions})
            highest = highest_version(ApiKey.PRODUCE, self._implicit(connection))
            failed = self._try(connection, partial(connection.send, request, highest))
            if failed is None:
                sent.append((connection, partitions))
            problem = failed or problem
        for connection, partitions in sent:
            problem = self._try(connection, partial(self._receive, connection, partitions, found)) or problem
        if problem is not None and not found:
            raise problem
        return found

    @staticmethod
    def _receive(connection: BrokerSocket, asked: list[TopicPartition], found: dict[TopicPartition, Appended]) -> None:
        found.update(read_produced(connection.receive(), asked))

    def _try(self, connection: BrokerSocket, step: Callable[[], None]) -> NoConnection | None:
        try:
            step()
        except NoConnection as error:
            self._cluster.forget(connection)
            self._cluster.unknown_leaders()
            return error
        except NotAuthenticated:
            self._cluster.forget(connection)
            self._failed()
            raise
        except (ProtocolViolation, UnsupportedByBroker) as error:
            self._cluster.forget(connection)
            self._failed()
            raise WriteFailed(f"{connection.address} cannot be written to: {error}.") from error
        return None

    def _request(self, batches: dict[TopicPartition, bytearray]) -> ProduceRequest:
        if self._transaction is None:
            return produce_request(batches, None, self._request_timeout_ms)
        return self._transaction.produce_request(batches, self._request_timeout_ms)

    def _implicit(self, connection: BrokerSocket) -> bool:
        return joins_by_writing(connection.features) if self._transaction is None else self._transaction.implicit

    def _done(self, at: TopicPartition, found: Appended) -> bool:
        verdict = judge(found.error)
        if self._transaction is not None:
            self._transaction.produced(found)
        if verdict is Verdict.DONE:
            return True
        if verdict is Verdict.REFRESH:
            self._cluster.unknown_leaders()
        elif verdict is not Verdict.RETRY:
            raise refused(f"a batch for {at}", found.error, found.message)
        return False

    def _failed(self) -> None:
        if self._transaction is not None:
            self._transaction.failed()


_WHAT_TO_DO = {
    ErrorCode.MESSAGE_TOO_LARGE: "Say a smaller kafka.batch.size, or raise the topic's max.message.bytes",
    ErrorCode.RECORD_LIST_TOO_LARGE: "Say a smaller kafka.batch.size, or raise the topic's max.message.bytes",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "It must not exceed the brokers' transaction.max.timeout.ms",
    ErrorCode.INVALID_RECORD: "A compacted topic takes only rows that have a key",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "Raise the brokers' offset.metadata.max.bytes",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Too few replicas of the partition are in sync (min.insync.replicas)",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "The client needs ACLs: Write on the topic, Read and Write on the staging topic",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "The client needs an ACL: Write on the transactional ids with the prefix tidelog-sink-"
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "The client needs an ACL: Read on the groups with the prefix tidelog-sink-",
}


def refused(what: str, error: ErrorCode, message: str | None = None) -> WriteFailed:
    """The exception for an error that a retry does not change."""
    if judge(error) is Verdict.FENCED:
        return Fenced(
            f"{what[:1].upper()}{what[1:]} was refused ({error.name}): another run of this query has taken over, or the "
            "transaction took longer than kafka.transaction.timeout.ms. If the batch is not written yet, it is when the query "
            "runs it again."
        )
    hint = f" {_WHAT_TO_DO[error]}." if error in _WHAT_TO_DO else ""
    return WriteFailed(f"{what[:1].upper()}{what[1:]} was refused: {error.name}, {message or error.text}{hint}")
