"""Iceberg tables by pyiceberg: what a commit has, and drivers that race for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg", reason="the extra iceberg is not installed")
pytest.importorskip("sqlalchemy", reason="pyiceberg's catalog in SQLite needs it")

from tests.unit.pipeline.lake.stores import APPLICATION, NAMES, batch, files, iceberg, offsets
from tidelog.pipeline.lake.iceberg import IcebergFiles
from tidelog.pipeline.sinks.base import BatchIdentity, SinkError


def table(path: Path) -> IcebergFiles:
    made = iceberg(path)
    assert isinstance(made, IcebergFiles)
    made.check()
    made.prepare(NAMES)
    return made


def test_a_batch_lands_with_its_identity_and_is_remembered_beside_the_snapshots(tmp_path: Path) -> None:
    made = table(tmp_path)
    assert made.commit(batch(0, 0, 5), files(made, 0, 5))
    snapshot = made._table().current_snapshot()
    assert BatchIdentity.from_json(snapshot.summary["tidelog"]) == batch(0, 0, 5)
    assert made.progress(APPLICATION).positions == {("t", "id", 0): (0, 5)}
    assert made.progress("tidelog:other:s").batch_id == -1
    assert len(made.paths()) == 1


def test_of_two_drivers_one_lands_a_batch_though_pyiceberg_would_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie, driver = table(tmp_path), table(tmp_path)
    add = IcebergFiles._add

    def interrupted(self: IcebergFiles, *args: Any) -> None:
        if self is zombie:
            driver.commit(batch(0, 0, 5), files(driver, 0, 5))
        add(self, *args)

    monkeypatch.setattr(IcebergFiles, "_add", interrupted)
    assert not zombie.commit(batch(0, 0, 5), files(zombie, 0, 5))
    assert offsets(driver) == list(range(5))
    assert "commit.retry.num-retries" not in table(tmp_path)._table().properties


def test_a_zombie_without_rows_does_not_land_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zombie, driver = table(tmp_path), table(tmp_path)
    add = IcebergFiles._add

    def interrupted(self: IcebergFiles, *args: Any) -> None:
        if self is zombie:
            driver.commit(batch(0, 0, 5), [])
            driver.commit(batch(1, 5, 7), [])
        add(self, *args)

    monkeypatch.setattr(IcebergFiles, "_add", interrupted)
    assert not zombie.commit(batch(0, 0, 5), [])
    assert driver.progress(APPLICATION).batch_id == 1


def test_another_partitioning_or_too_few_columns_are_refused(tmp_path: Path) -> None:
    made = table(tmp_path)
    with pytest.raises(SinkError, match="has no column headers"):
        made.prepare((*NAMES, "headers"))
    made._partition_by = ("topic",)
    with pytest.raises(SinkError, match="partitioned by topic, date, and topic is asked for"):
        made.prepare(NAMES)
