"""The Parquet sink's decisions, on rows that a stand-in for Spark writes; with Spark itself: tests/pipeline/test_lake.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from tidelog.pipeline.lake.manifests import ManifestTable
from tidelog.pipeline.model import Evolution, PipelineModel, SinkSpec
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, SinkError
from tidelog.pipeline.sinks.parquet import ParquetSink, make


class Rows:
    """A DataFrame of one column or more, all of them int or bigint."""

    def __init__(self, **columns: list[int] | str) -> None:
        self.kinds = {name: "bigint" if isinstance(column, list) else column for name, column in columns.items()}
        self.table = pa.table({name: column for name, column in columns.items() if isinstance(column, list)})
        self.schema = SimpleNamespace(
            fields=[
                SimpleNamespace(name=n, dataType=SimpleNamespace(simpleString=lambda kind=k: kind)) for n, k in self.kinds.items()
            ]
        )
        self.write = self

    def partitionBy(self, *names: str) -> Rows:
        return self

    def parquet(self, folder: str) -> None:
        Path(folder).mkdir(parents=True)
        pq.write_table(self.table, f"{folder}/part-0.parquet")
        Path(folder, "_SUCCESS").touch()


def batch(number: int, start: int, end: int) -> BatchIdentity:
    return BatchIdentity("p", "lake", number, (OffsetRange("t", "id", 0, start, end),))


def sink(path: Path, evolution: Evolution = Evolution.NONE, **more: Any) -> ParquetSink:
    spec = SinkSpec("lake", "parquet", evolution=evolution, options=(("path", str(path)),), **more)
    return make(spec, PipelineModel("p", (), (), (spec,)))


def values(path: Path) -> list[int]:
    table = ManifestTable(str(path))
    found = [pq.read_table(table.data / name).column("n").to_pylist() for name in table.state().files]
    return sorted(n for part in found for n in part)


def test_a_batch_that_comes_again_lands_once(tmp_path: Path) -> None:
    one = sink(tmp_path)
    one.check(None)
    assert one.last_committed() is None
    one.write(Rows(n=[1, 2]), batch(0, 0, 2))
    again = sink(tmp_path)
    again.check(None)
    again.write(Rows(n=[1, 2]), batch(0, 0, 2))
    again.write(Rows(n=[3]), batch(1, 2, 3))
    assert values(tmp_path) == [1, 2, 3]
    assert (again.last_committed(), again.committed(batch(0, 0, 2)), again.committed(batch(2, 3, 4))) == (
        batch(1, 2, 3),
        True,
        False,
    )
    with pytest.raises(SinkError, match="another driver writes under this name"):
        again.write(Rows(n=[9]), batch(1, 2, 4))


def test_a_column_that_another_sink_added_meanwhile_stays(tmp_path: Path) -> None:
    one, other = sink(tmp_path), make(SinkSpec("other", "parquet", evolution=Evolution.MERGE, options=(("path", str(tmp_path)),)),
                                      PipelineModel("q", (), (), ()))  # fmt: skip
    one.write(Rows(n="int"), batch(0, 0, 1))

    class Slow(Rows):
        def parquet(self, folder: str) -> None:
            other.write(Rows(n=[7], m=[8]), BatchIdentity("q", "other", 0, ()))
            super().parquet(folder)

    one.write(Slow(n="int"), batch(1, 1, 2))
    assert ManifestTable(str(tmp_path)).state().columns == {"n": "bigint", "m": "bigint"}


def test_a_driver_that_dies_before_the_commit_leaves_nothing_that_readers_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = sink(tmp_path)
    with monkeypatch.context() as death:
        death.setattr(ManifestTable, "commit_as", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            dying.write(Rows(n=[1]), batch(0, 0, 1))
    assert values(tmp_path) == []
    following = sink(tmp_path)
    following.check(None)  # the batch has not landed yet: it could still be committed by a driver that is only slow
    assert len(list((tmp_path / "data").iterdir())) == 1
    following.write(Rows(n=[1]), batch(0, 0, 1))
    assert (values(tmp_path), len(list((tmp_path / "data").iterdir()))) == ([1], 2)
    assert following.clear_orphans() == 1
    assert (values(tmp_path), len(list((tmp_path / "data").iterdir()))) == ([1], 1)


def test_who_loses_the_race_takes_its_files_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = sink(tmp_path), sink(tmp_path)
    parquet = Rows.parquet

    def overtaken(self: Rows, folder: str) -> None:
        parquet(self, folder)
        monkeypatch.setattr(Rows, "parquet", parquet)
        quick.write(Rows(n=[1]), batch(0, 0, 1))

    monkeypatch.setattr(Rows, "parquet", overtaken)
    slow.write(Rows(n=[1]), batch(0, 0, 1))
    assert (values(tmp_path), len(list((tmp_path / "data").iterdir()))) == ([1], 1)


def test_columns_change_as_far_as_the_sink_may(tmp_path: Path) -> None:
    sink(tmp_path).write(Rows(n=[1], m="int"), batch(0, 0, 1))
    with pytest.raises(SinkError, match=r"have a column x .bigint.*schema_evolution: add"):
        sink(tmp_path).write(Rows(n=[2], x=[5]), batch(1, 1, 2))
    with pytest.raises(SinkError, match=r"m is bigint in the rows.*int in the table.*schema_evolution: merge"):
        sink(tmp_path, Evolution.ADD).write(Rows(n=[2], m=[5]), batch(1, 1, 2))
    sink(tmp_path, Evolution.ADD).write(Rows(n=[2], x=[5]), batch(1, 1, 2))
    sink(tmp_path, Evolution.MERGE).write(Rows(n=[3], m=[5]), batch(2, 2, 3))
    sink(tmp_path).write(Rows(n=[4], m="int"), batch(3, 3, 4))  # narrower than the table is well
    assert ManifestTable(str(tmp_path)).state().columns == {"n": "bigint", "m": "bigint", "x": "bigint"}
    with pytest.raises(SinkError, match="m is string"):
        sink(tmp_path, Evolution.MERGE).write(Rows(n=[5], m="string"), batch(4, 4, 5))
    assert values(tmp_path) == [1, 2, 3, 4]


def test_another_partitioning_is_told_at_the_start(tmp_path: Path) -> None:
    sink(tmp_path).write(Rows(n=[1]), batch(0, 0, 1))
    with pytest.raises(SinkError, match="partitioned by nothing, and n is asked for"):
        sink(tmp_path, partition_by=("n",)).check(None)
