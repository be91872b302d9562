"""A session with a cluster of one broker whose partitions are lists of records."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from tests.unit.client.scripted import answered
from tidelog.cli.refusal import CannotConnect, CommandFailed
from tidelog.client.failures import NoConnection
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from tidelog.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from tidelog.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.record import Record

IDS = {"jobs": b"j" * 16}


class StandIn:
    """``topics``: by name, by partition, the records, each with its offset. ``failures`` are the next answers to fetches."""

    timeout_ms = 1000

    def __init__(self, topics: dict[str, list[list[Record]]]) -> None:
        self.topics = topics
        self.starts: dict[tuple[str, int], int] = {}
        self.failures: list[ErrorCode | Exception] = []
        self.stable: int | None = None
        self.fetches = 0

    def run(self, call: Any) -> Any:
        try:
            return answered(call, self._answer)
        except NoConnection as error:
            raise CannotConnect(str(error)) from error

    def partitions(self, topic: str) -> list[tuple[str, int]]:
        if topic not in self.topics:
            raise CommandFailed(f"Topic {topic}: none")
        return [(topic, index) for index in range(len(self.topics[topic]))]

    def metadata(self, names: Iterable[str]) -> list[MetadataResponseTopic]:
        return [self._topic(name) for name in names]

    def list_offsets(self, wanted: dict[tuple[str, int], int]) -> dict[tuple[str, int], Any]:
        return {at: SimpleNamespace(error_code=0, offset=self._offset(at, time)) for at, time in wanted.items()}

    def end(self, at: tuple[str, int]) -> int:
        records = self.topics[at[0]][at[1]]
        return records[-1].offset + 1 if records else 0

    def _offset(self, at: tuple[str, int], time: int) -> int:
        if time == LATEST_TIMESTAMP:
            return self.end(at)
        if time == EARLIEST_TIMESTAMP:
            return self.starts.get(at, 0)
        return next((record.offset for record in self.topics[at[0]][at[1]] if record.timestamp >= time), -1)

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(name=name, error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        parts = [MetadataResponsePartition(partition_index=index, leader_id=1) for index in range(len(self.topics[name]))]
        return MetadataResponseTopic(name=name, topic_id=IDS.get(name, b"t" * 16), partitions=parts)

    def _answer(self, step: Any) -> Any:
        request = step.request
        if not isinstance(request, FetchRequest):
            return MetadataResponse(topics=[self._topic(topic.name) for topic in request.topics])
        self.fetches += 1
        (topic,) = request.topics
        (part,) = topic.partitions
        failure = self.failures.pop(0) if self.failures else ErrorCode.NONE
        if isinstance(failure, Exception):
            return failure
        at = topic.topic, part.partition
        start, end = self.starts.get(at, 0), self.end(at)
        if failure is ErrorCode.NONE and not start <= part.fetch_offset <= end:
            failure = ErrorCode.OFFSET_OUT_OF_RANGE
        stable = end if self.stable is None or not request.isolation_level else self.stable
        found = [record for record in self.topics[at[0]][at[1]] if part.fetch_offset <= record.offset < stable][:2]
        data = b"".join(bytes(_batch(record)) for record in found)
        answer = PartitionData(
            partition_index=part.partition,
            error_code=int(failure),
            high_watermark=end,
            last_stable_offset=stable,
            log_start_offset=start,
            records=b"" if failure else data,
        )
        return FetchResponse(responses=[FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[answer])])


def _batch(record: Record) -> bytearray:
    data = RecordData(record.key, record.value, record.timestamp, record.headers)
    return build_batch([data], base_offset=record.offset)
