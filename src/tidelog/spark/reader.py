"""One task: the records of a range of one partition, fetched, decoded, and returned as Arrow record batches.

While a response is decoded, the next is already requested. Errors that pass (a leader that moved, a broker that restarts) are
retried. Lost records (retention deleted them, the topic is another one now) are reported by name and number: they end the query,
or are logged if the user accepts the loss (``failOnDataLoss``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection
from tidelog.client.fetching import Fetched, Verdict, fetch_request, judge, read_fetch
from tidelog.client.metadata import Leader
from tidelog.client.net.blocking import BrokerSocket
from tidelog.client.settings import READ_COMMITTED, ClientSettings
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ZERO_UUID, TopicPartition, uuid_to_text
from tidelog.spark.arrow import record_batch, wanted_columns
from tidelog.spark.cluster import Cluster, ClusterUnavailable, TopicMissing
from tidelog.spark.columns import columns
from tidelog.spark.decoding import BatchDecoder
from tidelog.spark.rights import READ, acl_needed

ROWS_PER_BATCH = 1 << 16
BYTES_PER_BATCH = 8 << 20
"""An Arrow batch is returned when it has this many rows, or bytes of records."""
_GUESSED_RECORD_BYTES = 1024
_LEAST_FETCH_BYTES = 1 << 16
log = logging.getLogger("tidelog.spark")


class DataLost(Exception):
    """Records that the query should have read are gone. The text says which, and how to continue."""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """What one task reads. ``hint``: the leader when the batch was planned, with its address."""

    at: TopicPartition
    start: int
    end: int
    topic_id: bytes
    hint: tuple[Leader, str, int] | None


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How tasks read. Sent to the executors."""

    client: ClientSettings
    names: tuple[str, ...]
    fail_on_data_loss: bool
    poll_timeout_ms: int
    max_batch_bytes: int


def report_loss(sentences: Sequence[str], fail: bool) -> None:
    """Raise DataLost for the first loss, or log all of them if the user accepts losses."""
    for sentence in sentences:
        if fail:
            raise DataLost(
                f"{sentence}. To continue without these records set failOnDataLoss=false; to start over use another checkpoint."
            )
        log.warning("failOnDataLoss=false: %s", sentence)


_clusters: dict[ClientSettings, Cluster] = {}


def cluster_of(settings: ClientSettings) -> Cluster:
    """This process's connections for these settings: Spark's Python workers run one task after another."""
    found = _clusters.get(settings)
    if found is None:
        found = _clusters[settings] = Cluster(settings)
    return found


class PartitionReader:
    """Reads one task to its end."""

    def __init__(self, cluster: Cluster, settings: ReadSettings, task: ReadTask) -> None:
        self._cluster = cluster
        self._settings = settings
        self._client = settings.client
        self._task = task
        self._columns = columns(wanted_columns(settings.names))
        self._decoder = BatchDecoder(
            task.at,
            task.start,
            task.end,
            self._columns,
            check_crcs=settings.client.check_crcs,
            max_batch_bytes=settings.max_batch_bytes,
        )
        self._socket: BrokerSocket | None = None
        self._leader = Leader(-1, -1)
        self._asked = False
        self._hint = task.hint
        self._max_bytes = settings.client.partition_max_bytes
        self._record_bytes = _GUESSED_RECORD_BYTES
        self._row_bytes = 0
        """Of the last rows that were taken, decompressed."""
        self._quiet_since = time.monotonic()
        self._decoding: Iterator[None] = iter(())
        """What is not decoded yet of the last response."""
        self._problem = "nothing came"

    def batches(self) -> Iterator[Any]:
        """pyarrow.RecordBatches, in order. DataLost, UnreadableBatch, ClusterUnavailable and others say what is wrong."""
        try:
            pauses = self._cluster.pauses(self._settings.poll_timeout_ms)
            while not self._decoder.done:
                if not self._step():
                    if self._waited_ms() > self._settings.poll_timeout_ms or next(pauses, None) is None:
                        raise self._silence()
                    continue
                pauses = self._cluster.pauses(self._settings.poll_timeout_ms)
                for _ in self._decoding:
                    if self._columns.rows >= ROWS_PER_BATCH or self._columns.nbytes >= BYTES_PER_BATCH:
                        yield self._take()
                self._quiet_since = time.monotonic()
            if self._columns.rows:
                yield self._take()
        finally:
            self._hang_up()

    def _take(self) -> Any:
        types = self._decoder.timestamp_types.take()
        self._row_bytes = self._columns.nbytes // self._columns.rows
        return record_batch(self._settings.names, self._task.at, self._columns.take(), types)

    def _waited_ms(self) -> float:
        return (time.monotonic() - self._quiet_since) * 1000

    def _silence(self) -> ClusterUnavailable:
        decoder = self._decoder
        return ClusterUnavailable(
            f"{self._task.at}: offsets {decoder.position} to {decoder.end - 1} did not arrive within "
            f"{self._settings.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs). Last problem: {self._problem}."
        )

    def _hang_up(self) -> None:
        """Drop a connection with a response under way: the next task cannot use it."""
        if self._asked and self._socket is not None:
            self._cluster.forget(self._socket)
        self._socket = None
        self._asked = False

    def _step(self) -> bool:
        """Handle one response. Returns whether the task advanced; if not, a pause follows."""
        try:
            if self._socket is None:
                self._socket, self._leader = self._cluster.leader_socket(self._task.at, self._hint)
                self._hint = None
            if not self._asked:
                self._socket.renew()
                self._ask(self._socket, self._decoder.position)
            response = self._socket.receive()
            self._asked = False
            fetched = read_fetch(response, self._task.at, self._task.topic_id)
        except (NoConnection, ProtocolViolation) as error:
            self._problem = str(error)
            if self._socket is not None:
                self._cluster.forget(self._socket)
            self._socket, self._asked = None, False
            return False
        except UnsupportedByBroker as error:
            raise ClusterUnavailable(f"{self._task.at} cannot be read: {error}; Kafka 0.11 and later can.") from error
        if fetched.error:
            return self._failed(fetched)
        if fetched.preferred_replica >= 0 and not len(fetched.records):
            return self._go_to_replica(fetched.preferred_replica)
        return self._use(fetched)

    def _ask(self, connection: BrokerSocket, offset: int) -> None:
        left = self._decoder.end - offset
        size = min(self._max_bytes, _LEAST_FETCH_BYTES + left * self._record_bytes)
        connection.send(fetch_request(self._client, self._task.at, self._task.topic_id, offset, self._leader.epoch, size))
        self._asked = True

    def _use(self, fetched: Fetched) -> bool:
        decoder = self._decoder
        batches = decoder.headers(fetched.records)
        if not batches.found:
            self._problem = f"the partition ends at {fetched.high_watermark}, committed records at {fetched.last_stable_offset}"
            if len(fetched.records):
                # A broker that cuts a batch at the limit, as those before KIP-74 did: ask for more of it.
                self._max_bytes = self._client.fetch_max_bytes
                self._record_bytes = self._max_bytes
                self._problem = f"no whole batch came in {len(fetched.records)} bytes (kafka.max.partition.fetch.bytes)"
            return False
        following = batches.next_offset
        self._record_bytes = max(64, batches.size // max(1, following - decoder.position) + 1)
        # Not ahead of a login: its messages would overwrite the records.
        if following < decoder.end and self._socket is not None and not self._socket.session_ends:
            try:
                self._ask(self._socket, following)
            except NoConnection:
                self._socket, self._asked = None, False  # The next step asks again.
        aborted = fetched.aborted if self._client.isolation_level == READ_COMMITTED else ()
        self._decoding = decoder.steps(fetched.records, batches, aborted)
        rows = min(decoder.end - decoder.position, ROWS_PER_BATCH)
        size = min(rows * max(self._record_bytes, self._row_bytes), BYTES_PER_BATCH)
        # Records of one response too many for an Arrow batch end up in it all the same.
        self._columns.expect(rows + rows // 8, size + size // 8)
        return True

    def _go_to_replica(self, broker: int) -> bool:
        """The leader names a closer replica (KIP-392)."""
        try:
            self._socket = self._cluster.broker_socket(broker)
        except NoConnection as error:
            self._problem = str(error)
            return False
        return True

    def _failed(self, fetched: Fetched) -> bool:
        verdict = judge(fetched.error)
        at = self._task.at
        self._problem = f"{fetched.error.name}: {fetched.error.text}"
        if fetched.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise TopicMissing(f"{at} cannot be read: {fetched.error.name}. {acl_needed(self._client, READ, at.topic)}")
        if verdict is Verdict.FAIL:
            raise ClusterUnavailable(f"{at} cannot be read: {self._problem}")
        if verdict is Verdict.OUT_OF_RANGE:
            return self._out_of_range()
        if verdict is Verdict.GONE:
            self._check_topic()
        elif fetched.new_leader is not None and self._cluster.metadata.moved(
            at.topic, at.partition, fetched.new_leader, fetched.endpoints
        ):
            self._hint = self._cluster.hint(at)
        if verdict is not Verdict.RETRY:
            self._socket = None
        return self._hint is not None

    def _check_topic(self) -> None:
        """The broker does not know the topic: it restarts, or the topic was created again under that name, or deleted."""
        topic, task = self._cluster.topic_now(self._task.at.topic), self._task
        if topic is not None and ZERO_UUID not in (task.topic_id, topic.topic_id) and topic.topic_id != task.topic_id:
            report_loss(
                [
                    f"topic {task.at.topic} was deleted and created again while it was read: its id was "
                    f"{uuid_to_text(task.topic_id)} and is {uuid_to_text(topic.topic_id)}. "
                    f"Offsets {self._decoder.position} to {task.end - 1} of {task.at} are gone"
                ],
                self._settings.fail_on_data_loss,
            )
            self._decoder.skip_to(task.end)

    def _out_of_range(self) -> bool:
        at, decoder = self._task.at, self._decoder
        earliest = self._cluster.offsets({at: EARLIEST_TIMESTAMP})[at]
        latest = self._cluster.offsets({at: LATEST_TIMESTAMP})[at]
        if earliest <= decoder.position <= latest:
            self._problem = f"a replica has offsets {earliest} to {latest} only"
            self._socket = None
            return False
        if decoder.position < earliest:
            last = min(earliest, decoder.end) - 1
            lost = f"{at}: offsets {decoder.position} to {last} were deleted before they were read (retention or DeleteRecords)"
        else:
            lost = f"{at} ends at offset {latest}: the cluster lost offsets {decoder.position} to {decoder.end - 1}"
        report_loss([lost], self._settings.fail_on_data_loss)
        decoder.skip_to(earliest if decoder.position < earliest else decoder.end)
        return True
