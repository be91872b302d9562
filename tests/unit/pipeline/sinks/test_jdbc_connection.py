"""Errors about a database that cannot be reached."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from tidelog.pipeline.sinks.base import SinkError
from tidelog.pipeline.sinks.jdbc_connection import connect, masked


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("jdbc:postgresql://db:5432/rides?user=me&password=se:cret&ssl=true", "rides?user=me&password=***&ssl=true"),
        ("jdbc:sqlserver://db:1433;user=me;Password=secret;databaseName=x", "user=me;Password=***;databaseName=x"),
        ("jdbc:mysql://address=(host=db)(password=secret)/rides", "(host=db)(password=***)/rides"),
        ("jdbc:mysql://me:secret@db/rides", "//me:***@db/rides"),
        ("jdbc:oracle:thin:me/secret@//db:1521/rides", ":me/***@//db:1521/rides"),
        ("jdbc:postgresql://one:5432,two:5432/rides", "jdbc:postgresql://one:5432,two:5432/rides"),
    ],
)
def test_a_password_is_not_told(url: str, shown: str) -> None:
    assert shown in masked(url) and "cret" not in masked(url)


@pytest.mark.parametrize("answer", [{"side_effect": RuntimeError("no route to db?password=secret")}, {"return_value": None}])
def test_a_database_that_does_not_answer_is_told_without_the_password(answer: dict[str, object]) -> None:
    spark = MagicMock()
    registry = spark._jvm.org.apache.spark.sql.execution.datasources.jdbc.DriverRegistry
    registry.get.return_value.connect.configure_mock(**answer)
    with pytest.raises(SinkError, match=r"jdbc:x://db\?password=\*\*\*") as told:
        connect(spark, "fares", {"driver": "d", "url": "jdbc:x://db?password=secret"})
    assert "secret" not in str(told.value) and told.value.__cause__ is None
