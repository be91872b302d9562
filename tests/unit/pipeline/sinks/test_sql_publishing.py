"""The SQL of a batch's transaction, run by SQLite: once, over drivers that die, come back, and run beside each other."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from tidelog.pipeline.sinks import sql_publishing as publishing
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, SinkError
from tidelog.pipeline.sinks.sql_publishing import StageTorn, Target

APPEND = Target("fares", ('"id"', '"fare"'))
UPSERT = Target("fares", ('"id"', '"fare"'), ('"id"',), '"fare"')


class Lite:
    """A connection to SQLite."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path)

    def execute(self, sql: str, *values: str | int) -> int:
        return self._connection.execute(sql, values).rowcount

    def rows(self, sql: str, *values: str | int) -> list[tuple[Any, ...]]:
        return list(self._connection.execute(sql, values))

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()


@pytest.fixture
def path(tmp_path: Any) -> str:
    made = Lite(str(tmp_path / "db"))
    publishing.create_batches(made, "TEXT")
    made.execute('CREATE TABLE fares ("id" TEXT, "fare" REAL, "note" TEXT)')
    made.commit()
    return str(tmp_path / "db")


def batch(number: int) -> BatchIdentity:
    return BatchIdentity("rides", "fares", number, (OffsetRange("t", "id", 0, number * 2, number * 2 + 2),))


def stage(connection: Lite, name: str, *rows: tuple[str | None, float]) -> None:
    """What the driver and Spark's tasks do before a batch is published."""
    publishing.begin(connection, batch(0).application, name)
    fill(connection, name, *rows)


def fill(connection: Lite, name: str, *rows: tuple[str | None, float]) -> None:
    connection.execute(f'CREATE TABLE IF NOT EXISTS {name} ("id" TEXT, "fare" REAL)')
    for row in rows:
        connection.execute(f"INSERT INTO {name} VALUES (?, ?)", *row)  # type: ignore[arg-type]
    connection.commit()


def fares(connection: Lite) -> list[tuple[Any, ...]]:
    return sorted(connection.rows('SELECT "id", "fare" FROM fares'))


def test_rows_and_identity_land_together(path: str) -> None:
    driver = Lite(path)
    assert publishing.known(driver, batch(0).application) == publishing.Known(-1, None, "")
    stage(driver, "s1", ("a", 1), ("b", 2))
    publishing.publish(driver, APPEND, "s1", 2, batch(0))
    publishing.drop(driver, "s1")
    assert fares(driver) == [("a", 1), ("b", 2)]
    assert publishing.known(Lite(path), batch(0).application) == publishing.Known(0, batch(0), "s1")


def test_the_table_of_batches_is_made_once(path: str) -> None:
    driver = Lite(path)
    stage(driver, "s1", ("a", 1))
    publishing.create_batches(driver, "TEXT")
    publishing.publish(driver, APPEND, "s1", 1, batch(0))
    publishing.create_batches(driver, "TEXT")
    assert publishing.known(driver, batch(0).application).last == batch(0)


def test_a_batch_that_is_there_is_not_published_again(path: str) -> None:
    driver = Lite(path)
    stage(driver, "s1", ("a", 1))
    publishing.publish(driver, APPEND, "s1", 1, batch(0))
    stage(driver, "s2", ("a", 1))
    with pytest.raises(SinkError, match="Another driver writes batches of tidelog:rides:fares into fares"):
        publishing.publish(driver, APPEND, "s2", 1, batch(0))
    assert fares(driver) == [("a", 1)]


def test_a_staging_table_that_a_task_filled_twice_is_not_published(path: str) -> None:
    driver = Lite(path)
    stage(driver, "s1", ("a", 1), ("a", 1))
    with pytest.raises(StageTorn, match="s1 has 2 rows, and the batch has 1"):
        publishing.publish(driver, APPEND, "s1", 1, batch(0))
    assert fares(driver) == [] and publishing.known(driver, batch(0).application).batch_id == -1
    stage(driver, "s2", ("a", 1))
    publishing.publish(driver, APPEND, "s2", 1, batch(0))
    assert fares(driver) == [("a", 1)]


def test_a_driver_whose_place_was_taken_publishes_nothing(path: str) -> None:
    old, new = Lite(path), Lite(path)
    stage(old, "s1", ("a", 1))
    stage(new, "s2", ("a", 1))
    # Its table is gone; a task of it that comes late makes another one, of which nobody takes anything.
    assert new.rows("SELECT name FROM sqlite_master WHERE name = 's1'") == []
    fill(old, "s1", ("a", 1))
    with pytest.raises(SinkError, match="Another driver"):
        publishing.publish(old, APPEND, "s1", 1, batch(0))
    publishing.publish(new, APPEND, "s2", 1, batch(0))
    assert fares(new) == [("a", 1)]


def test_a_driver_that_died_before_or_after_dropping_its_staging_table_leaves_nothing(path: str) -> None:
    driver = Lite(path)
    stage(driver, "s1", ("a", 1))
    publishing.publish(driver, APPEND, "s1", 1, batch(0))
    stage(Lite(path), "s2", ("b", 1))
    assert driver.rows("SELECT name FROM sqlite_master WHERE name IN ('s1', 's2')") == [("s2",)]
    publishing.drop(driver, "s2")
    stage(driver, "s3", ("b", 1))
    publishing.publish(driver, APPEND, "s3", 1, batch(1))
    assert fares(driver) == [("a", 1), ("b", 1)]


def test_rows_with_a_key_take_the_place_of_older_ones_only(path: str) -> None:
    driver = Lite(path)
    driver.execute("INSERT INTO fares VALUES ('a', 5, 'x'), ('b', 5, 'x'), ('c', NULL, 'x'), ('d', 1, 'x')")
    driver.commit()
    stage(driver, "s1", ("a", 6), ("b", 4), ("c", 1), ("e", 1))
    publishing.publish(driver, UPSERT, "s1", 4, batch(0))
    assert fares(driver) == [("a", 6), ("b", 5), ("c", 1), ("d", 1), ("e", 1)]


def test_rows_without_a_key_are_refused_whole(path: str) -> None:
    driver = Lite(path)
    stage(driver, "s1", ("a", 6), (None, 4))
    with pytest.raises(SinkError, match="1 rows for the table fares have no key"):
        publishing.publish(driver, UPSERT, "s1", 2, batch(0))
    assert fares(driver) == [] and publishing.known(driver, batch(0).application).batch_id == -1


def test_a_failure_while_rows_move_undoes_all_of_it(path: str) -> None:
    driver = Lite(path)
    driver.execute('CREATE UNIQUE INDEX one ON fares ("id")')
    driver.execute("INSERT INTO fares VALUES ('b', 1, 'x')")
    driver.commit()
    stage(driver, "s1", ("a", 1), ("b", 2))
    with pytest.raises(sqlite3.IntegrityError):
        publishing.publish(driver, APPEND, "s1", 2, batch(0))
    assert fares(driver) == [("b", 1)] and publishing.known(driver, batch(0).application).batch_id == -1


def test_two_drivers_that_begin_at_once_share_the_row_of_their_application(path: str) -> None:
    first, second = Lite(path), Lite(path)

    class Late(Lite):
        """Another driver makes the row between the look and the insert."""

        def execute(self, sql: str, *values: str | int) -> int:
            if sql.startswith("INSERT INTO tidelog_batches"):
                publishing.known(second, "app")
            return super().execute(sql, *values)

    assert publishing.known(Late(path), "app") == publishing.known(first, "app") == publishing.Known(-1, None, "")
    assert first.rows("SELECT COUNT(*) FROM tidelog_batches WHERE application = 'app'") == [(1,)]
