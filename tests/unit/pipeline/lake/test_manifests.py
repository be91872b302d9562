"""A table of plain Parquet: commits that are whole or not there, and drivers that race for them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from tidelog.pipeline.lake import manifests
from tidelog.pipeline.lake.manifests import ManifestTable
from tidelog.pipeline.lake.table import DataFile
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, SinkError

NAMES = ("value", "topic", "offset", "timestamp")


def batch(number: int, start: int, end: int) -> BatchIdentity:
    return BatchIdentity("p", "s", number, (OffsetRange("t", "id", 0, start, end),))


def table(path: Path) -> ManifestTable:
    made = ManifestTable(str(path))
    made.prepare(NAMES)
    return made


def file(name: str) -> DataFile:
    return DataFile(f"batch=1/topic=t/{name}.parquet", 1, 10, {"topic": "t"})


def names(found: ManifestTable) -> list[str]:
    return sorted(path.rpartition("/")[2].partition(".")[0] for path in found.state().files)


def test_what_is_committed_is_there_for_everybody_and_nothing_else(tmp_path: Path) -> None:
    writer = table(tmp_path)
    assert writer.commit(batch(0, 0, 5), [file("a"), file("b")])
    assert not writer.commit(batch(0, 0, 5), [file("again")])
    assert names(ManifestTable(str(tmp_path))) == ["a", "b"]
    assert ManifestTable(str(tmp_path)).progress("tidelog:p:s").positions == {("t", "id", 0): (0, 5)}
    state = ManifestTable(f"file://{tmp_path}").state()
    assert (state.partition_by, state.columns) == (
        ("topic", "date"),
        {"value": "binary", "offset": "bigint", "timestamp": "timestamp"},
    )


def test_of_two_drivers_one_lands_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The zombie has judged, and the other one commits before it does: apache/iceberg#17637 and #17340 by hand."""
    zombie, driver = table(tmp_path), ManifestTable(str(tmp_path))
    put = ManifestTable._put

    def interrupted(self: ManifestTable, version: int, commit: dict[str, object]) -> bool:
        if self is zombie and version == 1:
            assert driver.commit(batch(0, 0, 5), [file("driver")])
        return put(self, version, commit)

    monkeypatch.setattr(ManifestTable, "_put", interrupted)
    assert not zombie.commit(batch(0, 0, 5), [file("zombie")])
    assert names(driver) == ["driver"]


def test_a_zombie_with_other_offsets_fails_and_writes_nothing(tmp_path: Path) -> None:
    zombie, driver = table(tmp_path), ManifestTable(str(tmp_path))
    driver.commit(batch(0, 0, 5), [file("a")])
    driver.commit(batch(1, 5, 9), [file("b")])
    with pytest.raises(SinkError, match="another driver writes under this name"):
        zombie.commit(batch(1, 5, 7), [file("zombie")])
    assert names(zombie) == ["a", "b"]


def test_snapshots_are_shortcuts_that_may_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "SNAPSHOT_EVERY", 4)
    writer = table(tmp_path)
    for number in range(10):
        writer.commit(batch(number, number, number + 1), [file(f"{number}")])
    log = tmp_path / "_tidelog"
    snapshots = sorted(log.glob("*.snapshot.json"))
    assert len(snapshots) == 2
    whole = ManifestTable(str(tmp_path)).state()
    for snapshot in snapshots:
        snapshot.unlink()
    assert ManifestTable(str(tmp_path)).state() == whole
    assert names(writer) == [f"{number}" for number in range(10)]


def test_older_commits_may_go_once_a_snapshot_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "SNAPSHOT_EVERY", 4)
    writer = table(tmp_path)
    for number in range(6):
        writer.commit(batch(number, number, number + 1), [file(f"{number}")])
    for version in range(5):
        (tmp_path / "_tidelog" / f"{version:020}.json").unlink()
    assert ManifestTable(str(tmp_path)).state() == writer.state()


def test_files_are_exchanged_by_one_commit_or_not_at_all(tmp_path: Path) -> None:
    writer = table(tmp_path)
    writer.commit(batch(0, 0, 5), [file("a"), file("b")])
    other = ManifestTable(str(tmp_path))
    writer.replace([file("a").path, file("b").path], [file("ab")])
    assert names(writer) == ["ab"]
    with pytest.raises(SinkError, match="another process has compacted it"):
        other.replace([file("a").path], [file("x")])
    assert {path.rpartition("/")[2] for path in writer.paths()} == {"a.parquet", "b.parquet", "ab.parquet"}


def test_another_partitioning_is_refused(tmp_path: Path) -> None:
    table(tmp_path)
    with pytest.raises(SinkError, match="partitioned by topic, date, and partition is asked for"):
        ManifestTable(str(tmp_path), partition_by=("partition",)).prepare(NAMES)
    with pytest.raises(SinkError, match="and not headers"):
        ManifestTable(str(tmp_path)).prepare((*NAMES, "headers"))


def test_a_disk_without_such_a_primitive_is_refused_with_what_to_do() -> None:
    with pytest.raises(SinkError, match="use a Delta or an Iceberg table"):
        ManifestTable("s3://bucket/table")


def test_a_commit_that_is_damaged_or_younger_is_named(tmp_path: Path) -> None:
    writer = table(tmp_path)
    writer.commit(batch(0, 0, 5), [])
    commit = tmp_path / "_tidelog" / f"{1:020}.json"
    text = commit.read_text()
    commit.write_text(text[:-5])
    with pytest.raises(SinkError, match=r"00001\.json cannot be read"):
        ManifestTable(str(tmp_path)).state()
    commit.write_text(json.dumps({**json.loads(text), "format": 9}))
    with pytest.raises(SinkError, match="has format 9"):
        ManifestTable(str(tmp_path)).state()


def test_a_table_that_was_taken_away_is_not_made_anew_in_the_middle(tmp_path: Path) -> None:
    writer = table(tmp_path / "t")
    writer.commit(batch(0, 0, 5), [])
    shutil.rmtree(tmp_path / "t")
    table(tmp_path / "t")
    with pytest.raises(SinkError, match="is at version 0, and was at 1: it was deleted or replaced"):
        writer.commit(batch(1, 5, 6), [])
    with pytest.raises(SinkError, match="There is no table"):
        ManifestTable(str(tmp_path)).commit(batch(0, 0, 5), [])
