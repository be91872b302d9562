"""Answers of brokers for the tests of reading: batches with offsets, and a cluster that gives them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidelog.client.calls import Ask, Call
from tidelog.console.reading.fetching import Bounds
from tidelog.console.reading.walking import Budget, Topic
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.control import EndTxnMarker, end_txn_marker_batch

TOPIC_ID = b"t" * 16


def batch(first: int, *values: str | None, at: int = 1000, **kind: Any) -> bytes:
    """Records with these values from offset ``first`` on, a millisecond apart."""
    records = [
        RecordData(f"k{first + index}".encode(), None if value is None else value.encode(), at + index)
        for index, value in enumerate(values)
    ]
    return bytes(build_batch(records, base_offset=first, **kind))


def marker(offset: int, *, commit: bool, producer_id: int = 7) -> bytes:
    return bytes(
        end_txn_marker_batch(
            EndTxnMarker(commit, 0), producer_id=producer_id, producer_epoch=0, timestamp_ms=5, base_offset=offset
        )
    )


@dataclass
class Log:
    """A partition: (first offset, last offset, bytes) of its batches."""

    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    error: int = 0

    def add(self, first: int, *values: str | None, at: int = 1000, **kind: Any) -> Log:
        self.batches.append((first, first + len(values) - 1, batch(first, *values, at=at, **kind)))
        return self

    @property
    def end(self) -> int:
        return self.batches[-1][1] + 1 if self.batches else 0


class Brokers:
    """Answers Fetch requests out of logs; ``step`` batches at most for each partition of an answer."""

    def __init__(self, logs: Mapping[int, Log], step: int = 2) -> None:
        self.logs = logs
        self.step = step
        self.asked: list[dict[int, int]] = []

    async def __call__(self, call: Call[Any]) -> Any:
        request = next(call)
        assert isinstance(request, Ask)
        assert isinstance(request.request, FetchRequest)
        try:
            call.send(self._answer(request.request))
        except StopIteration as end:
            return end.value
        raise AssertionError("one request is enough")

    def _answer(self, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        self.asked.append({part.partition: part.fetch_offset for part in topic.partitions})
        parts = []
        for part in topic.partitions:
            log = self.logs[part.partition]
            found = [data for _, last, data in log.batches if last >= part.fetch_offset][: self.step]
            parts.append(
                PartitionData(
                    partition_index=part.partition,
                    error_code=log.error,
                    high_watermark=log.end,
                    last_stable_offset=log.end,
                    log_start_offset=0,
                    aborted_transactions=[],
                    records=b"" if log.error else b"".join(found),
                )
            )
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=parts)])

    def topic(self) -> Topic:
        bounds = {index: Bounds(0, log.end, log.end) for index, log in self.logs.items()}
        return Topic("t", TOPIC_ID, dict.fromkeys(self.logs, 1), bounds)


def budget(seconds: float = 60, size: int = 1 << 30) -> Budget:
    async def pace(_: int) -> None:
        return

    return Budget(seconds, size, lambda: 0.0, pace)


GONE = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
