"""What the driver makes of tasks' rows, and which files it clears away."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from tidelog.model.errors import ConfigError
from tidelog.pipeline.bulk.ingest import Commits, clear_orphans, ingest, joined
from tidelog.pipeline.lake.manifests import ManifestTable
from tidelog.pipeline.sinks.base import OffsetRange


def row(partition: int, start: int, end: int, *paths: str) -> Any:
    files = [{"path": path, "rows": 1, "size": 1} for path in paths]
    return SimpleNamespace(topic="t", topic_id="id", partition=partition, start=start, end=end, files=json.dumps(files))


def commits(path: Path) -> tuple[ManifestTable, Commits]:
    table = ManifestTable(str(path), partition_by=())
    table.prepare(("value", "offset"))
    return table, Commits(table, pipeline="p", sink="bulk")


def test_a_batch_is_known_by_its_offsets_however_it_was_cut(tmp_path: Path) -> None:
    table, driver = commits(tmp_path)
    assert driver.commit([row(1, 5, 9, "c"), row(0, 0, 4, "a"), row(1, 2, 5, "b")], 0)
    # Run again after a crash, cut otherwise, into other files: nothing lands.
    assert not driver.commit([row(0, 0, 2, "d"), row(0, 2, 4, "e"), row(1, 2, 9, "f")], 0)
    assert sorted(table.state().files) == ["a", "b", "c"]
    assert not driver.commit([], 1)


def test_pieces_are_joined_where_they_follow_each_other() -> None:
    pieces = [
        OffsetRange("t", "id", 0, 0, 4),
        OffsetRange("t", "id", 0, 4, 6),
        OffsetRange("t", "id", 0, 7, 8),
        OffsetRange("t", "id", 1, 8, 9),
    ]
    assert [(p.partition, p.start, p.end) for p in joined(pieces)] == [(0, 0, 6), (0, 7, 8), (1, 8, 9)]


def test_a_hole_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _, driver = commits(tmp_path)
    driver.commit([row(0, 0, 4)], 0)
    with caplog.at_level(logging.WARNING, "tidelog.pipeline"):
        driver.commit([row(0, 6, 8)], 1)
    assert "t-0: offsets 4 to 5 are not in the table" in caplog.text


def test_orphans_go_when_others_have_landed_their_offsets_and_not_before(tmp_path: Path) -> None:
    table, driver = commits(tmp_path)
    name = "batch={}/part-id-0-{}-{}-{}-0.parquet"
    committed, dead, ahead = (
        name.format("aa", 0, 4, "0" * 8),
        name.format("bb", 0, 4, "1" * 8),
        name.format("cc", 4, 8, "2" * 8),
    )
    for path in (committed, dead, ahead, "batch=dd/of-somebody-else.parquet"):
        (table.data / path).parent.mkdir(parents=True, exist_ok=True)
        (table.data / path).touch()
    layout = table.prepare(("value", "offset"))
    assert clear_orphans(table, layout, table.progress(driver.application)) == 0
    driver.commit([row(0, 0, 4, committed)], 0)
    assert clear_orphans(table, layout, table.progress(driver.application)) == 1
    left = {str(path.relative_to(table.data)) for path in table.data.rglob("*.parquet")}
    assert left == {committed, ahead, "batch=dd/of-somebody-else.parquet"}


def test_what_is_wrong_is_told_before_anything_runs(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    options = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t"}
    more: dict[str, Any] = {"name": "x", "checkpoint": str(tmp_path / "c")}
    with pytest.raises(ConfigError, match="must be one of availableNow"):
        ingest(None, options=options, table=ManifestTable(str(tmp_path)), trigger={"continuous": "1s"}, **more)
    with pytest.raises(ConfigError, match="cannot partition by value"):
        ingest(None, options=options, table=ManifestTable(str(tmp_path), partition_by=("value",)), **more)
    with pytest.raises(ConfigError, match="Did you mean subscribe"):
        ingest(None, options={**options, "subscripe": "t"}, table=ManifestTable(str(tmp_path / "t")), **more)
