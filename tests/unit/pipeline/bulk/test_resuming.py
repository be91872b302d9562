"""Where a bulk query goes on: with a checkpoint, and without one on a new table or on one with rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from tidelog.client.metadata import Leader, Topic
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import uuid_to_text
from tidelog.pipeline.bulk.resuming import resume
from tidelog.pipeline.checkpoint import Checkpoint
from tidelog.pipeline.lake.manifests import ManifestTable
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange
from tidelog.spark.options import parse_options

ID = bytes(15) + b"\x01"
GIVEN = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "startingTimestamp": "5", "maxOffsetsPerTrigger": "7"}
APPLICATION = "tidelog:p:bulk"


class Files(dict[str, str]):
    def names(self, folder: str) -> list[str]:
        return [path.removeprefix(folder + "/") for path in self if path.startswith(folder + "/")]

    def read(self, path: str) -> str | None:
        return self.get(path)

    def write(self, path: str, text: str) -> None:
        self[path] = text


class Cluster:
    def topics(self, names: tuple[str, ...] | None, pattern: str | None = None) -> dict[str, Topic]:
        assert (names, pattern) == (("t",), None)
        return {"t": Topic("t", ID, ErrorCode.NONE, False, {0: Leader(1, 0), 1: Leader(1, 0)})}


def table(path: Path, topic_id: bytes = ID, batches: int = 0) -> ManifestTable:
    made = ManifestTable(str(path), partition_by=())
    made.prepare(("value",))
    for number in range(batches):
        piece = OffsetRange("t", uuid_to_text(topic_id), 0, 10 * number, 10 * number + 10)
        made.commit(BatchIdentity("p", "bulk", number, (piece,)), [])
    return made


def resumed(files: Files, found: ManifestTable) -> tuple[int, dict[str, str]]:
    return resume(Checkpoint(files, "c"), found, APPLICATION, Cluster(), parse_options(GIVEN, streaming=True), GIVEN)


def test_a_new_table_begins_where_the_options_say(tmp_path: Path) -> None:
    files = Files()
    assert resumed(files, table(tmp_path)) == (0, GIVEN)
    files["c/offsets/0"] = ""
    assert resumed(files, table(tmp_path, batches=2)) == (0, GIVEN)  # its own batches: the checkpoint knows


def test_a_new_checkpoint_goes_on_where_the_table_ends_and_keeps_its_count(tmp_path: Path) -> None:
    files = Files()
    first, options = resumed(files, table(tmp_path, batches=3))
    assert first == 3
    assert json.loads(options.pop("startingOffsets")) == {"t": {"0": 30, "1": -2}}
    assert options == {name: text for name, text in GIVEN.items() if name != "startingTimestamp"}
    assert resumed(files, table(tmp_path))[1]["startingOffsets"]  # it died before Spark wrote anything: the same again
    files["c/offsets/0"] = ""
    assert resumed(files, table(tmp_path)) == (3, GIVEN)


def test_a_topic_that_was_made_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    _, options = resumed(Files(), table(tmp_path, topic_id=bytes(15) + b"\x02", batches=1))
    assert json.loads(options["startingOffsets"]) == {"t": {"0": -2, "1": -2}}


def test_a_checkpoint_of_sparks_without_ours_counts_from_zero(tmp_path: Path) -> None:
    assert resumed(Files({"c/offsets/4": ""}), table(tmp_path, batches=3)) == (0, GIVEN)
