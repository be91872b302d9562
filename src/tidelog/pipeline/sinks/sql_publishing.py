"""Move a batch from a staging table into a table of a database, with its identity, in one transaction. Plain SQL; no Spark.

Many tasks cannot share one database transaction. So tasks fill a table that only this attempt knows, and one connection of the
driver moves its rows. ``tidelog_batches`` has a row for each application: its newest batch, and the staging table of the present
attempt. An attempt takes over by writing its own table there; an older one, of a driver that is believed dead and is not, can no
longer publish.

Spark may fill a part of the staging table twice (a task ended, and its report was lost). Therefore the rows are counted in the
transaction, as its last step: a late task can only add rows, so a count that is right at the end was right before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tidelog.pipeline.sinks.base import BatchIdentity, SinkError

BATCHES = "tidelog_batches"
NOTHING = "-"
"""No staging table, no batch. Not the empty text: some databases take that for NULL."""


class StageTorn(Exception):
    """The staging table has other rows than the batch: fill another one."""


class Connection(Protocol):
    """One connection, in a transaction from its first statement on. Values are texts, or None."""

    def execute(self, sql: str, *values: str | int) -> int:
        """Execute; the number of rows changed."""
        ...

    def rows(self, sql: str, *values: str | int) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        ...

    def commit(self) -> None:
        """End the transaction."""
        ...

    def rollback(self) -> None:
        """Undo the transaction."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """A table and its columns, quoted for SQL. ``keys`` empty: rows are appended. ``order`` decides which of two rows with one
    key is newer."""

    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    order: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """What the database has of an application."""

    batch_id: int
    last: BatchIdentity | None
    stage: str


def known(connection: Connection, application: str) -> Known:
    """The row of an application, created if it is missing."""
    asked = f"SELECT batch_id, batch, stage FROM {BATCHES} WHERE application = ?"
    found = connection.rows(asked, application)
    if not found:
        try:
            connection.execute(f"INSERT INTO {BATCHES} VALUES (?, ?, ?, ?)", application, -1, NOTHING, NOTHING)
            connection.commit()
        except Exception:
            connection.rollback()  # Another driver was first.
            if not connection.rows(asked, application):
                raise
        found = connection.rows(asked, application)
    connection.rollback()
    batch_id, batch, stage = found[0]
    return Known(int(batch_id), BatchIdentity.from_json(batch), "" if stage == NOTHING else str(stage))


def create_batches(connection: Connection, text_type: str) -> None:
    """Create the table of batches if it is missing. ``text_type``: the database's type for long texts."""
    if not exists(connection, BATCHES):
        connection.execute(
            f"CREATE TABLE {BATCHES} (application VARCHAR(255) NOT NULL PRIMARY KEY, batch_id BIGINT NOT NULL, "
            f"batch {text_type}, stage VARCHAR(255) NOT NULL)"
        )
        connection.commit()


def exists(connection: Connection, table: str) -> bool:
    """Whether a table can be read. Catalogs differ from database to database, so a query is tried."""
    try:
        connection.rows(f"SELECT 1 FROM {table} WHERE 1 = 0")
    except Exception:
        return False
    finally:
        connection.rollback()
    return True


def begin(connection: Connection, application: str, stage: str) -> None:
    """Make this attempt the one that may publish, and drop the staging table of the attempt before."""
    before = known(connection, application)
    if before.stage:
        drop(connection, before.stage)
    connection.execute(f"UPDATE {BATCHES} SET stage = ? WHERE application = ?", stage, application)
    connection.commit()


def drop(connection: Connection, stage: str) -> None:
    """Drop a staging table that may be gone already."""
    try:
        connection.execute(f"DROP TABLE {stage}")
        connection.commit()
    except Exception:
        connection.rollback()
        if exists(connection, stage):
            raise


def publish(connection: Connection, target: Target, stage: str, rows: int, identity: BatchIdentity) -> None:
    """Publish all rows of the staging table and the batch's identity, or neither. StageTorn when it has other than ``rows``
    rows; SinkError when another driver took over, or rows have no key."""
    try:
        changed = connection.execute(
            f"UPDATE {BATCHES} SET batch_id = ?, batch = ? WHERE application = ? AND stage = ? AND batch_id < ?",
            identity.batch_id, identity.to_json(), identity.application, stage, identity.batch_id,
        )  # fmt: skip
        if changed != 1:
            raise SinkError(
                f"Another driver writes batches of {identity.application} into {target.table}: stop one of the two. Nothing of "
                f"batch {identity.batch_id} was written by this one."
            )
        for statement in _moves(target, stage, connection):
            connection.execute(statement)
        ((found,),) = connection.rows(f"SELECT COUNT(*) FROM {stage}")
        if int(found) != rows:
            raise StageTorn(f"The staging table {stage} has {found} rows, and the batch has {rows}.")
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _moves(target: Target, stage: str, connection: Connection) -> Sequence[str]:
    columns = ", ".join(target.columns)
    table = target.table
    if not target.keys:
        return (f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {stage}",)
    without = " OR ".join(f"{key} IS NULL" for key in target.keys)
    ((count,),) = connection.rows(f"SELECT COUNT(*) FROM {stage} WHERE {without}")
    if int(count):
        raise SinkError(
            f"{count} rows for the table {table} have no key ({', '.join(target.keys)} IS NULL) and would match nothing: "
            "leave them out in a transform. Nothing of this batch was written."
        )
    same = " AND ".join(f"s.{key} = {table}.{key}" for key in target.keys)
    # An older record may come later: by a replay, or late by its own order.
    newer = f"({table}.{target.order} IS NULL OR s.{target.order} >= {table}.{target.order})"
    return (
        f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM {stage} s WHERE {same} AND {newer})",
        f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {stage} s WHERE NOT EXISTS (SELECT 1 FROM {table} WHERE {same})",
    )
