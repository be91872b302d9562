"""What Spark wrote into its checkpoint, read back as offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.model.errors import ConfigError
from tidelog.model.ids import TopicPartition
from tidelog.pipeline.checkpoint import Checkpoint, Start
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.pipeline.status import LocalFiles
from tidelog.spark.planning import SourceOffset

A = TopicPartition("a", 0)


def offsets(folder: Path, batch: int, *lines: str) -> None:
    (folder / "offsets").mkdir(parents=True, exist_ok=True)
    (folder / "offsets" / str(batch)).write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *lines]))


def test_a_new_checkpoint_has_nothing(tmp_path: Path) -> None:
    found = Checkpoint(LocalFiles(), str(tmp_path / "q"))
    assert (found.planned(), found.committed(), found.start(), found.end_of(0)) == (-1, -1, None, None)


def test_the_first_batch_begins_where_it_was_written_down_and_later_ones_where_the_last_ended(tmp_path: Path) -> None:
    found = Checkpoint(LocalFiles(), str(tmp_path / "q"))
    found.begin(Start(7, SourceOffset({A: 3}, {"a": "x"})))
    offsets(tmp_path / "q", 0, '{"@ids": {"a": "x"}, "a": {"0": 5}}')
    offsets(tmp_path / "q", 1, '{"@ids": {"a": "x"}, "a": {"0": 5, "1": 2}}', "-")
    assert found.start() == Start(7, SourceOffset({A: 3}, {"a": "x"}))
    assert found.planned() == 1
    assert found.ranges(0) == (OffsetRange("a", "x", 0, 3, 5),)
    # A partition without news is there, and one that is new begins at 0.
    assert found.ranges(1) == (OffsetRange("a", "x", 0, 5, 5), OffsetRange("a", "x", 1, 0, 2))


def test_a_topic_that_was_made_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    found = Checkpoint(LocalFiles(), str(tmp_path / "q"))
    offsets(tmp_path / "q", 0, '{"@ids": {"a": "x"}, "a": {"0": 5}}')
    offsets(tmp_path / "q", 1, '{"@ids": {"a": "y"}, "a": {"0": 2}}')
    assert found.ranges(1) == (OffsetRange("a", "y", 0, 0, 2),)


def test_several_sources_of_a_query_are_one_position(tmp_path: Path) -> None:
    found = Checkpoint(LocalFiles(), str(tmp_path / "q"))
    offsets(tmp_path / "q", 3, '{"a": {"0": 5}}', '{"b": {"1": 6}}')
    assert found.end_of(3) == SourceOffset({A: 5, TopicPartition("b", 1): 6})


def test_what_is_missing_or_damaged_is_told(tmp_path: Path) -> None:
    found = Checkpoint(LocalFiles(), str(tmp_path / "q"))
    with pytest.raises(ConfigError, match="has no offsets of batch 4"):
        found.ranges(4)
    (tmp_path / "q.start.json").write_text("{")
    with pytest.raises(ConfigError, match="is damaged"):
        found.start()
