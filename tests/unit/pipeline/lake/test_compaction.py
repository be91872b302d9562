"""Small files into large ones: the same rows, for readers before and after, with other writers at work."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from tidelog.pipeline.lake import compaction, manifests
from tidelog.pipeline.lake.compaction import Exchanged, compact, expire, groups, measured
from tidelog.pipeline.lake.manifests import ManifestTable, TableState
from tidelog.pipeline.lake.table import DataFile
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, SinkError

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOUR_MS = 3_600_000


def sized(path: str, size: int, zone: str = "n") -> DataFile:
    return DataFile(path, 1, size, {"zone": zone})


def state(*files: DataFile) -> TableState:
    return TableState(1, {}, ("zone",), {file.path: file for file in files})


def paths(found: Any) -> list[list[str]]:
    return [[file.path for file in group] for group in found]


def test_files_of_one_partition_are_joined_up_to_the_target() -> None:
    found = groups(state(*(sized(f"{number}", 40) for number in range(5)), sized("a", 10, "s"), sized("b", 10, "s")), 100)
    assert paths(found) == [["0", "1"], ["2", "3"], ["a", "b"]]


def test_what_is_large_or_alone_stays_as_it_is() -> None:
    assert paths(groups(state(sized("1", 80), sized("2", 75), sized("3", 10), sized("4", 10, "s")), 100)) == []


def test_what_was_joined_is_not_joined_again() -> None:
    assert paths(groups(state(sized("1", 76), sized("2", 20)), 100)) == []


def lands(table: ManifestTable, number: int, rows: Any, folder: str = "zone=n") -> DataFile:
    """A batch as the sink commits one."""
    path = f"batch=b-{number}/{folder}/part-{number}.parquet"
    target = table.data / path
    target.parent.mkdir(parents=True)
    pq.write_table(rows, target, use_deprecated_int96_timestamps=True)
    file = DataFile(path, rows.num_rows, target.stat().st_size, {"zone": folder.partition("=")[2]}, {"id": (number, number, 0)})
    assert table.commit(BatchIdentity("p", "s", number, (OffsetRange("t", "id", 0, number, number + 1),)), [file])
    return file


def made(folder: Path) -> ManifestTable:
    table = ManifestTable(str(folder), partition_by=("zone",))
    table.create({"id": "bigint", "at": "timestamp", "late": "string"}, ("zone",))
    lands(table, 0, pa.table({"id": pa.array([1], pa.int32()), "at": pa.array([NOON], pa.timestamp("us", "UTC"))}))
    lands(table, 1, pa.table({"id": [2], "at": pa.array([NOON], pa.timestamp("us", "UTC")), "late": ["x"]}))
    return table


def rows_of(table: ManifestTable) -> list[Any]:
    return [row for path in sorted(table.state().files) for row in pq.ParquetFile(table.data / path).read().to_pylist()]


def test_rows_stay_with_columns_that_came_later_and_types_that_grew_wider(tmp_path: Path) -> None:
    table = made(tmp_path)
    before = sorted(table.state().files)
    assert compact(table) == Exchanged(2, 1)
    assert rows_of(table) == [{"id": 1, "at": NOON, "late": None}, {"id": 2, "at": NOON, "late": "x"}]
    (file,) = table.state().files.values()
    assert (file.rows, file.partition, file.columns) == (2, {"zone": "n"}, {"id": (0, 1, 0)})
    assert file.path.split("/")[1] == "zone=n"
    schema = pq.ParquetFile(table.data / file.path).schema_arrow
    assert schema.field("at").type == pa.timestamp("us", "UTC") and schema.field("id").type == pa.int64()
    assert all((table.data / path).exists() for path in before)  # for whoever reads them now
    assert table.progress("tidelog:p:s").batch_id == 1
    assert compact(table) == Exchanged(0, 0)


def test_more_files_than_a_process_may_have_open_become_one_with_one_row_group(tmp_path: Path) -> None:
    table = ManifestTable(str(tmp_path), partition_by=("zone",))
    table.create({"id": "bigint"}, ("zone",))
    for number in range(100):
        lands(table, number, pa.table({"id": [number]}))
    resource = pytest.importorskip("resource", reason="no limits here")
    free = os.dup(0)
    os.close(free)
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 50, most))
    try:
        assert compact(table) == Exchanged(100, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    (path,) = table.state().files
    assert pq.read_metadata(table.data / path).num_row_groups == 1
    assert sorted(row["id"] for row in rows_of(table)) == list(range(100))


def test_a_batch_that_lands_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, writer = made(tmp_path), ManifestTable(str(tmp_path), partition_by=("zone",))
    joined = compaction._joined

    def slowly(*given: Any) -> DataFile:
        lands(writer, 2, pa.table({"id": [3]}))
        return joined(*given)

    monkeypatch.setattr(compaction, "_joined", slowly)
    assert compact(table) == Exchanged(2, 1)
    assert sorted(row["id"] for row in rows_of(ManifestTable(str(tmp_path)))) == [1, 2, 3]


def test_of_two_that_compact_one_wins_and_the_other_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, other = made(tmp_path), ManifestTable(str(tmp_path), partition_by=("zone",))
    joined = compaction._joined

    def slowly(*given: Any) -> DataFile:
        monkeypatch.setattr(compaction, "_joined", joined)
        compact(other)
        return joined(*given)

    monkeypatch.setattr(compaction, "_joined", slowly)
    with pytest.raises(SinkError, match="another process has compacted it"):
        compact(table)
    assert len(list(table.data.glob("batch=compacted-*/**/*.parquet"))) == 1 and len(rows_of(other)) == 2


def test_a_file_stays_when_it_is_committed_and_the_disk_fails_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)
    create = manifests._create

    def and_then_fails(*given: Any) -> bool:
        monkeypatch.setattr(table, "_read", failing)
        return create(*given)

    def failing(name: str) -> Any:
        raise SinkError(f"The commit {name} cannot be read: too many open files.")

    monkeypatch.setattr(manifests, "_create", and_then_fails)
    with pytest.raises(SinkError, match="cannot be read"):
        compact(table)
    assert len(rows_of(ManifestTable(str(tmp_path)))) == 2


def test_a_file_that_is_damaged_is_told_and_nothing_is_exchanged(tmp_path: Path) -> None:
    table = made(tmp_path)
    target = table.data / min(table.state().files)
    target.write_bytes(target.read_bytes()[:-20] + b"x" * 20)
    with pytest.raises(SinkError, match="cannot be joined"):
        compact(table)
    assert len(table.state().files) == 2 and not list(table.data.glob("batch=compacted-*"))


def test_files_are_deleted_when_nobody_can_read_them_any_more(tmp_path: Path) -> None:
    table = made(tmp_path)
    compact(table)
    now = int(table.data.stat().st_mtime * 1000)  # the clock of the disk
    assert expire(table, now - HOUR_MS) == 0
    (tmp_path / "data" / "batch=b-0" / "somebody's").write_text("else")
    assert expire(table, now + HOUR_MS) == 2
    assert expire(table, now + HOUR_MS) == 0
    assert sorted(os.listdir(table.data)) == ["batch=b-0", *(path.partition("/")[0] for path in table.state().files)]
    assert len(rows_of(ManifestTable(str(tmp_path)))) == 2


def test_nothing_is_left_of_a_batch_that_spark_wrote_and_of_a_compaction_that_died(tmp_path: Path) -> None:
    table = made(tmp_path)
    for number, path in enumerate(sorted(table.state().files)):
        file = table.data / path
        file.with_name(f".{file.name}.crc").write_bytes(b"sum")
        for name in ("_SUCCESS", "._SUCCESS.crc"):
            (table.data / f"batch=b-{number}" / name).write_bytes(b"")
    compact(table)
    dead = table.data / "batch=compacted-dead" / "zone=n"
    dead.mkdir(parents=True)
    (dead / "part-dead.parquet").write_bytes(b"PAR1")
    now = int(table.data.stat().st_mtime * 1000)
    assert expire(table, now - HOUR_MS) == 0 and dead.exists()  # it may be at work
    assert expire(table, now + HOUR_MS) == 2
    assert os.listdir(table.data) == [path.partition("/")[0] for path in table.state().files]
    assert len(rows_of(ManifestTable(str(tmp_path)))) == 2


def test_only_what_every_file_measured_is_known_of_the_whole() -> None:
    one = DataFile("1", 1, 1, {}, {"a": (None, None, 3), "b": (1, 2, 0)})
    two = DataFile("2", 1, 1, {}, {"a": (5, 6, 1)})
    assert measured((one, two)) == {"a": (5, 6, 4)}
