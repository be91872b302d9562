"""Fills a cluster with many topics and groups, in batches, through Kafka's protocol: tidelog's nodes and Apache Kafka's alike.

Topics are ``many-00000`` and on, of one replica. Groups are ``reader-0000`` and on: each has committed offsets in all partitions
of one topic, and no member. What is there already is left as it is, so that a fill that was ended can go on.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidelog.client import AdminClient
from tidelog.client.calls import Ask, Call, Coordinator
from tidelog.console.asking.groups import listed_at
from tidelog.console.asking.overview import overview
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

T = TypeVar("T")
BATCH = 250
"""Topics of one request: Apache Kafka takes at most 10,000 partitions in one."""
GROUPS_AT_ONCE = 50
TIMEOUT_MS = 300_000
COMMIT_BY_NAME = 9
"""The last version of OffsetCommit that names topics; later ones want their ids."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large the cluster is made. ``partitions``: of all topics together; each topic has the same number of them."""

    topics: int = 10_000
    partitions: int = 40_000
    groups: int = 2_000

    @property
    def each(self) -> int:
        """Partitions of one topic. ValueError when they cannot be shared out evenly."""
        each, over = divmod(self.partitions, self.topics)
        if over or not each:
            raise ValueError(f"{self.partitions} partitions cannot be shared out among {self.topics} topics evenly")
        return each

    def topic(self, index: int) -> str:
        return f"many-{index:05d}"

    def group(self, index: int) -> str:
        return f"reader-{index:04d}"

    def read_by(self, group: int) -> str:
        """The topic that a group has offsets in: groups are spread over all topics."""
        return self.topic(group * self.topics // self.groups)

    def __str__(self) -> str:
        return f"{self.topics:,} topics, {self.partitions:,} partitions, {self.groups:,} groups"


def parts(items: Sequence[T], length: int) -> Iterator[Sequence[T]]:
    """Slices of at most this length."""
    for start in range(0, len(items), length):
        yield items[start : start + length]


def create(names: Iterable[str], partitions: int) -> Call[int]:
    """One request; how many topics were new. KafkaError for any that is not there afterwards."""
    wanted = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    answer = yield Ask(CreateTopicsRequest(topics=wanted, timeout_ms=TIMEOUT_MS))
    made = 0
    for each in answer.topics:
        if each.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise KafkaError(ErrorCode(each.error_code), f"topic {each.name}: {each.error_message}")
        made += each.error_code == ErrorCode.NONE
    return made


def commit(group: str, topic: str, partitions: int) -> Call[None]:
    """Offset 0 in each partition of a topic. KafkaError."""
    rows = [OffsetCommitRequestPartition(partition_index=index, committed_offset=0) for index in range(partitions)]
    request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=rows)])
    answer = yield Ask(request, Coordinator(group), COMMIT_BY_NAME, _first_code)
    for part in answer.topics[0].partitions:
        if part.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode(part.error_code), f"group {group}, {topic}-{part.partition_index}")


def _first_code(answer: OffsetCommitRequest) -> int:
    return int(answer.topics[0].partitions[0].error_code)


class Progress:
    """Says at most every few seconds how far it is."""

    def __init__(self, what: str, total: int, every_s: float = 5.0) -> None:
        self._what, self._total, self._every_s = what, total, every_s
        self._began = self._told = time.monotonic()

    def at(self, done: int) -> None:
        now = time.monotonic()
        if done == self._total or now - self._told >= self._every_s:
            self._told = now
            print(f"  {done:,} of {self._total:,} {self._what}, {now - self._began:.0f} s", file=sys.stderr, flush=True)


async def fill(bootstrap: str, size: Size) -> dict[str, float]:
    """Makes what is missing; the seconds that topics and groups took."""
    settings = {"request.timeout.ms": str(TIMEOUT_MS), "default.api.timeout.ms": str(TIMEOUT_MS)}
    took: dict[str, float] = {}
    async with AdminClient(bootstrap, settings) as admin:
        began = time.monotonic()
        progress = Progress("topics", size.topics)
        done = 0
        for names in parts([size.topic(index) for index in range(size.topics)], BATCH):
            await admin.run(create(names, size.each))
            done += len(names)
            progress.at(done)
        took["topics_s"] = time.monotonic() - began
        began = time.monotonic()
        progress = Progress("groups", size.groups)
        done = 0
        for indexes in parts(range(size.groups), GROUPS_AT_ONCE):
            wanted = [commit(size.group(index), size.read_by(index), size.each) for index in indexes]
            await asyncio.gather(*(admin.run(each) for each in wanted))
            done += len(indexes)
            progress.at(done)
        took["groups_s"] = time.monotonic() - began
    return took


async def counted(bootstrap: str) -> tuple[int, int, int]:
    """Topics, partitions and groups that the cluster has by its own account, internal topics included."""
    async with AdminClient(bootstrap) as admin:
        there = await admin.run(overview())
        groups = [await admin.run(listed_at(broker)) for broker in there.brokers]
    return len(there.topics), there.partition_count, len({each.group_id for rows in groups for each in rows})
