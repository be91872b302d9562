"""What a consumer reads of a partition, Fetch by Fetch: batches are checked, and aborted transactions are left out on request."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tidelog.client.fetching import Fetched, fetch_request, read_fetch
from tidelog.client.settings import parse_settings
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import BatchHeader, CorruptBatch, TruncatedBatch, crc_is_valid, iter_headers
from tidelog.records.control import parse_end_txn_marker
from tidelog.records.record import iter_records
from tidelog.testing.simulation.client import PASSING, Client, Later

MAX_WAIT_MS = 300
MAX_BYTES = 1 << 20
READS = {
    committed: parse_settings(
        {
            "bootstrap.servers": "10.0.0.1:9092",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "fetch.max.wait.ms": str(MAX_WAIT_MS),
            "fetch.max.bytes": str(MAX_BYTES),
        }
    )
    for committed in (False, True)
}


class DamagedBatch(Exception):
    """A batch arrived with a wrong checksum, where KafkaConsumer raises CorruptRecordException, or its leader knows that it is
    damaged. ``broker`` answered."""

    def __init__(self, broker: int, what: str) -> None:
        super().__init__(f"node {broker}: {what}")
        self.broker = broker


@dataclass(frozen=True, slots=True)
class Record:
    """One record. ``offset`` in its partition; ``key`` and ``value`` may be None."""

    at: TopicPartition
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Page:
    """The result of one Fetch, the next offset, and the end of what was visible."""

    records: tuple[Record, ...]
    next_offset: int
    end: int


async def fetch(client: Client, at: TopicPartition, offset: int, *, committed: bool = False) -> Page:
    """Fetches from the partition's leader, for at most 300 ms. ``committed``: leave out open and aborted transactions.

    Later when there is no answer or no leader; DamagedBatch.
    """
    where = await client.leader(at)
    topic = client.metadata.topics[at.topic]
    leader = topic.leaders[at.partition]
    request = fetch_request(READS[committed], at, topic.topic_id, offset, leader.epoch, MAX_BYTES)
    found = read_fetch(await client.ask(where, request, purpose="fetch"), at, topic.topic_id)
    if found.error is not ErrorCode.NONE:
        client.metadata.topics.pop(at.topic, None)
        if found.error is ErrorCode.CORRUPT_MESSAGE:
            raise DamagedBatch(leader.broker, f"{at}: the batch at offset {offset} is damaged, and not mended yet")
        assert found.error in PASSING, f"Fetch of {at} from {offset}: {found.error.name}"
        raise Later(found.error.name)
    return _page(at, offset, found, leader.broker, committed=committed)


def _page(at: TopicPartition, offset: int, found: Fetched, broker: int, *, committed: bool) -> Page:
    """As KafkaConsumer iterates over it."""
    aborted = deque(found.aborted if committed else ())
    dropped: set[int] = set()
    records: list[Record] = []
    for header in _whole(found, broker):
        if not crc_is_valid(found.records, header):
            raise DamagedBatch(broker, f"{at}: the batch at offset {header.base_offset} has a wrong checksum")
        while aborted and aborted[0][1] <= header.last_offset:
            dropped.add(aborted.popleft()[0])
        batch = memoryview(found.records)[header.position : header.position + header.size]
        if header.is_control:
            marker = next(parse_end_txn_marker(record.key, record.value) for record in iter_records(batch))
            if marker is not None and not marker.commit:
                dropped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in dropped):
            for record in iter_records(batch):
                if record.offset >= offset:
                    key, value = (None if each is None else bytes(each) for each in (record.key, record.value))
                    records.append(Record(at, record.offset, key, value, record.timestamp))
        offset = max(offset, header.last_offset + 1)
    return Page(tuple(records), offset, found.last_stable_offset if committed else found.high_watermark)


def _whole(found: Fetched, broker: int) -> list[BatchHeader]:
    """The last batch may be cut off; the next Fetch returns it whole."""
    headers: list[BatchHeader] = []
    try:
        headers.extend(iter_headers(found.records))
    except TruncatedBatch:
        pass
    except CorruptBatch as error:
        raise DamagedBatch(broker, str(error)) from None
    return headers
