"""The topic ``_schemas`` as calls of tidelog's client: made, checked, read and appended to. Works with any Kafka cluster.

Appends are idempotent and acknowledged by all in-sync replicas; the records of one append are one batch, so that all are there
or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.client.admin import configs, topics
from tidelog.client.admin.results import ResourceType
from tidelog.client.calls import Ask, Call, Node
from tidelog.client.fetching import error_of, fetch_request, read_fetch
from tidelog.client.producing import highest_version, produce_request, read_produced
from tidelog.client.settings import ClientSettings
from tidelog.model.errors import ConfigError, ErrorCode, KafkaError
from tidelog.model.ids import NO_BROKER, ZERO_UUID, TopicPartition
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest
from tidelog.protocol.messages.metadata import MetadataResponse
from tidelog.records.batch import CorruptBatch, TruncatedBatch, crc_is_valid, iter_headers
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.record import Record, iter_records

WANTED_REPLICAS = 3
FETCH_BYTES = 8 << 20
KeyValue = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the partition is led."""

    topic: str
    topic_id: bytes
    leader: int

    @property
    def partition(self) -> TopicPartition:
        """The topic's one partition."""
        return TopicPartition(self.topic, 0)


@dataclass(frozen=True, slots=True)
class Producer:
    """Who appends. ``sequence``: of the next batch's first record."""

    id: int
    epoch: int
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """Records in order, and the offset to go on from."""

    records: list[Record]
    next_offset: int


def prepare(topic: str, replicas: int | None) -> Call[str]:
    """Make the topic if it is not there, and check it; returns the cluster's id. ConfigError for one that loses schemas.

    ``replicas``: of a new topic; None for three, or as many as there are brokers.
    """
    response: MetadataResponse = yield from topics.metadata([topic])
    if ErrorCode(response.topics[0].error_code) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        count = min(WANTED_REPLICAS, len(response.brokers)) if replicas is None else replicas
        try:
            yield from topics.create(topic, 1, count, {"cleanup.policy": "compact"})
            return response.cluster_id or ""
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            response = yield from topics.metadata([topic])
    topics.check(response.topics[0].error_code)
    if len(response.topics[0].partitions) != 1:
        raise ConfigError(f"The topic {topic} has {len(response.topics[0].partitions)} partitions; schemas need one order: 1.")
    settings = yield from configs.describe(ResourceType.TOPIC, topic, ["cleanup.policy"])
    policy = settings["cleanup.policy"].value if "cleanup.policy" in settings else None
    if policy != "compact":
        raise ConfigError(f"The topic {topic} has cleanup.policy={policy}, which loses schemas: set cleanup.policy=compact.")
    return response.cluster_id or ""


def locate(topic: str) -> Call[Place | None]:
    """Where the topic is led; None if it has no leader now. KafkaError if it cannot be described."""
    response: MetadataResponse = yield from topics.metadata([topic])
    found = response.topics[0]
    error = ErrorCode(found.error_code)
    if error != ErrorCode.NONE and not error.retriable:
        topics.check(found.error_code)
    if error != ErrorCode.NONE or not found.partitions or found.partitions[0].leader_id == NO_BROKER:
        return None
    return Place(topic, bytes(found.topic_id or ZERO_UUID), found.partitions[0].leader_id)


def read(settings: ClientSettings, place: Place, offset: int) -> Call[ReadBatch]:
    """The records from ``offset`` on; waits for some, as long as the settings say. KafkaError, CorruptBatch."""
    request = fetch_request(settings, place.partition, place.topic_id, offset, -1, FETCH_BYTES)
    fetched = read_fetch((yield Ask(request, Node(place.leader))), place.partition, place.topic_id)
    if fetched.error != ErrorCode.NONE:
        raise KafkaError(fetched.error, f"{place.topic}: {fetched.error.text}")
    found: list[Record] = []
    try:
        for header in iter_headers(fetched.records):
            if header.next_offset <= offset:
                continue
            if not crc_is_valid(fetched.records, header):
                raise CorruptBatch(f"the batch at offset {header.base_offset} of {place.topic} does not match its CRC")
            if not header.is_control:
                found += [each for each in iter_records(fetched.records, header) if each.offset >= offset]
            offset = header.next_offset
    except TruncatedBatch:
        pass  # a fetch ends in the middle of a batch; the next begins with it
    return ReadBatch(found, offset)


def begin() -> Call[Producer]:
    """A new idempotent producer. KafkaError."""
    response = yield Ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), highest=5)
    topics.check(response.error_code)
    return Producer(response.producer_id, response.producer_epoch)


def batch_of(records: Sequence[KeyValue], producer: Producer, now_ms: int) -> bytearray:
    """The records as the producer's next batch."""
    return build_batch(
        [RecordData(key, value, now_ms) for key, value in records],
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=producer.sequence,
    )


def append(place: Place, batch: bytes | bytearray, timeout_ms: int) -> Call[tuple[ErrorCode, int]]:
    """The error and the base offset of one attempt; -1 for a batch that is there already."""
    request = produce_request({place.partition: batch}, None, timeout_ms)
    response = yield Ask(request, Node(place.leader), highest_version(ApiKey.PRODUCE, False))
    found = read_produced(response, [place.partition])[place.partition]
    return error_of(found.error), found.base_offset
