from __future__ import annotations

import pytest

from tidelog.model.ids import TopicPartition
from tidelog.pipeline.previewing import newest, shares
from tidelog.pipeline.reading import read_model
from tidelog.pipeline.yaml_text import parse

A, B, C = (TopicPartition("t", number) for number in range(3))
TEXT = """\
pipeline: p
kafka: {bootstrap.servers: 'localhost:1'}
sources: {s: {topics: [t]}}
sinks: {d: {type: console, from: s}}
"""


@pytest.mark.parametrize(
    ("available", "records", "expected"),
    [
        ({A: 100, B: 100, C: 100}, 9, {A: 3, B: 3, C: 3}),
        ({A: 1, B: 100, C: 100}, 9, {A: 1, B: 4, C: 4}),
        ({A: 0, B: 2, C: 100}, 10, {A: 0, B: 2, C: 8}),
        ({A: 5, B: 0, C: 2}, 100, {A: 5, B: 0, C: 2}),
        ({A: 5, B: 5, C: 5}, 1, {A: 1, B: 0, C: 0}),
        ({}, 5, {}),
    ],
)
def test_partitions_share_the_records_as_evenly_as_they_can(
    available: dict[TopicPartition, int], records: int, expected: dict[TopicPartition, int]
) -> None:
    assert shares(available, records) == expected


class Asked:
    """A cluster with a topic of two partitions, one of them trimmed."""

    def topics(self, names: object, pattern: object = None) -> dict[str, object]:
        class Topic:
            leaders = {0: None, 1: None}
            topic_id = bytes(15) + b"\x01"

        return {"t": Topic()}

    def offsets(self, wanted: dict[TopicPartition, int], isolation_level: int = 0) -> dict[TopicPartition, int]:
        earliest, latest = {A: 40, B: 0}, {A: 50, B: 4}
        return {at: (latest if when == -1 else earliest)[at] for at, when in wanted.items()}


def test_the_newest_records_are_read() -> None:
    (source,) = read_model(parse(TEXT, "p.yaml", {})).sources
    found = newest(Asked(), source, 10, 0)  # type: ignore[arg-type]
    assert [(each.partition, each.start, each.end) for each in found] == [(0, 44, 50), (1, 0, 4)]
