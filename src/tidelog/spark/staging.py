"""Batches that tasks have made wait in a topic of the same cluster until the driver's transaction takes them.

A staged batch is the value of a record, identified by offset and checksum. Records that no task reports are ignored, so staging
needs no transaction, fencing or order: a task that dies or is repeated leaves records behind that retention deletes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection
from tidelog.client.fetching import error_of
from tidelog.client.producer_settings import ProducerSettings
from tidelog.client.settings import ClientSettings
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tidelog.records.batch import CorruptBatch, crc_is_valid, read_header
from tidelog.records.builder import RecordData, build_batch
from tidelog.spark.appending import Appender, Batch, WriteFailed
from tidelog.spark.cluster import Cluster, TopicMissing
from tidelog.spark.reader import DataLost, PartitionReader, ReadSettings, ReadTask

PARTITIONS = 8
CONFIG = {"cleanup.policy": "delete", "retention.ms": str(24 * 3_600_000), "max.message.bytes": str(2 << 20)}
"""A day is longer than any batch takes from its tasks to its commit; otherwise the batch would fail and run again."""
_ROOM_PER_RECORD = 128
_READ_LIMIT = 1 << 30


@dataclass(frozen=True, slots=True)
class Staged:
    """Where a batch of this many rows for ``at`` is staged, and its checksum."""

    at: TopicPartition
    rows: int
    source: TopicPartition
    topic_id: bytes
    offset: int
    crc: int


def ensure_topic(cluster: Cluster, name: str) -> None:
    """Create the staging topic if it is missing. WriteFailed says how to create it when the client may not."""
    try:
        cluster.topics((name,))
    except TopicMissing:
        _create(cluster, name)
        # Other brokers have it a moment later.
        for _ in cluster.pauses(10_000):
            try:
                cluster.topics((name,))
            except TopicMissing:
                continue
            return


def _create(cluster: Cluster, name: str) -> None:
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in CONFIG.items()]
    topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=-1, configs=configs)
    for _ in cluster.pauses(10_000):
        try:
            response = cluster.ask(cluster.any_socket(), CreateTopicsRequest(topics=[topic]))
        except NoConnection:
            continue
        except (ProtocolViolation, UnsupportedByBroker, ValueError) as wrong:
            raise WriteFailed(_by_hand(name, str(wrong))) from wrong
        error = error_of(response.topics[0].error_code) if response.topics else ErrorCode.UNKNOWN_SERVER_ERROR
        if error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return
        if not error.retriable:
            raise WriteFailed(_by_hand(name, response.topics[0].error_message or error.name))
    raise WriteFailed(_by_hand(name, "no broker has done it in ten seconds"))


def _by_hand(name: str, why: str) -> str:
    settings = ", ".join(f"{key}={value}" for key, value in CONFIG.items())
    return (
        f"The topic {name}, in which batches wait for their commit, is missing and cannot be created: {why}. "
        f"Create it ({PARTITIONS} partitions, {settings}), or name another one by the option stagingTopic."
    )


class Stager:
    """Stages the batches of one task. The partition is chosen only to spread the load."""

    def __init__(
        self, cluster: Cluster, settings: ProducerSettings, request_timeout_ms: int, name: str, spread: int, now_ms: int
    ) -> None:
        self._settings = settings
        self._now_ms = now_ms
        self._appender = Appender(cluster, settings.delivery_timeout_ms, request_timeout_ms)
        ensure_topic(cluster, name)
        topic = cluster.topics((name,))[name]
        self._topic_id = topic.topic_id
        self._source = TopicPartition(name, sorted(topic.leaders)[spread % len(topic.leaders)])

    def stage(self, batches: Sequence[tuple[TopicPartition, int, bytearray]]) -> list[Staged]:
        """Stage (partition, rows, batch); the place of each."""
        staged: list[Staged] = []
        together: list[tuple[TopicPartition, int, bytearray]] = []
        size = 0
        for item in batches:
            needed = len(item[2]) + _ROOM_PER_RECORD
            if together and size + needed > self._settings.max_request_size:
                staged += self._append(together)
                together, size = [], 0
            together.append(item)
            size += needed
        return staged + (self._append(together) if together else [])

    def _append(self, together: list[tuple[TopicPartition, int, bytearray]]) -> list[Staged]:
        records = [RecordData(None, bytes(batch), self._now_ms) for _, _, batch in together]
        base = self._appender.append({self._source: build_batch(records)})[self._source]
        return [
            Staged(at, rows, self._source, self._topic_id, base + index, read_header(batch).crc)
            for index, (at, rows, batch) in enumerate(together)
        ]


def staged_batches(cluster: Cluster, client: ClientSettings, staged: Sequence[Staged]) -> Iterator[Batch]:
    """The batches, in that order. WriteFailed when one is gone or has changed.

    Fetches are sent ahead, so these must not be the connections on which the caller writes meanwhile.
    """
    for (source, topic_id), group in groupby(staged, key=lambda s: (s.source, s.topic_id)):
        yield from _from_one(cluster, client, source, topic_id, list(group))


def _from_one(
    cluster: Cluster, client: ClientSettings, source: TopicPartition, topic_id: bytes, staged: list[Staged]
) -> Iterator[Batch]:
    settings = ReadSettings(client, ("offset", "value"), True, client.api_timeout_ms, _READ_LIMIT)
    first, end = min(s.offset for s in staged), max(s.offset for s in staged) + 1
    wanted = {s.offset: s for s in staged}
    task = ReadTask(source, first, end, topic_id, cluster.hint(source))
    try:
        for rows in PartitionReader(cluster, settings, task).batches():
            offsets, values = rows.column(0), rows.column(1)
            for index, offset in enumerate(offsets.to_pylist()):
                found = wanted.pop(offset, None)
                if found is not None:
                    yield found.at, _checked(values[index].as_buffer(), found)
    except DataLost as lost:
        raise WriteFailed(f"Batches that tasks have staged are gone: {lost}") from lost
    if wanted:
        raise WriteFailed(f"Batches that tasks have staged are gone: {source} has nothing at offset {min(wanted)}.")


def _checked(value: object, staged: Staged) -> bytearray:
    batch = bytearray(memoryview(value))  # type: ignore[arg-type]
    try:
        header = read_header(batch)
        if header.size == len(batch) and header.crc == staged.crc and crc_is_valid(batch, header):
            return batch
    except CorruptBatch:
        pass
    raise WriteFailed(
        f"The record at offset {staged.offset} of {staged.source} is not what a task has staged: the staging topic was deleted "
        "and created again, or another client writes to it. The batch runs again."
    )
