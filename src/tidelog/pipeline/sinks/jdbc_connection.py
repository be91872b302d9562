"""A connection of the driver to a database, through JDBC inside Spark's JVM: with the driver class that Spark's tasks use."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tidelog.pipeline.sinks.base import SinkError

_PROPERTY = re.compile(r"(\w*(?:password|pwd|secret|token))=[^;&,)\s]*", re.IGNORECASE)
_USER = re.compile(r"((?://|:)[^\s:/@]+[:/])[^\s/@]+@")


class JvmConnection:
    def __init__(self, connection: Any) -> None:
        connection.setAutoCommit(False)
        self._connection = connection

    def execute(self, sql: str, *values: str | int) -> int:
        statement = self._prepared(sql, values)
        try:
            return int(statement.executeUpdate())
        finally:
            statement.close()

    def rows(self, sql: str, *values: str | int) -> list[tuple[Any, ...]]:
        statement = self._prepared(sql, values)
        try:
            result = statement.executeQuery()
            width = result.getMetaData().getColumnCount()
            found = []
            while result.next():
                found.append(tuple(result.getString(column) for column in range(1, width + 1)))
            return found
        finally:
            statement.close()

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _prepared(self, sql: str, values: tuple[str | int, ...]) -> Any:
        statement = self._connection.prepareStatement(sql)
        for at, value in enumerate(values, 1):
            if isinstance(value, int):
                statement.setLong(at, value)
            else:
                statement.setString(at, value)
        return statement


def connect(spark: Any, sink: str, options: dict[str, str]) -> JvmConnection:
    """A new connection. SinkError when the driver is missing or the database does not answer."""
    jvm = spark._jvm
    name = options["driver"]
    registry = jvm.org.apache.spark.sql.execution.datasources.jdbc.DriverRegistry
    try:
        registry.register(name)
        driver = registry.get(name)
    except Exception as error:
        raise SinkError(
            f"The sink {sink} needs the JDBC driver {name}, which this Spark session lacks: name its artifact, like "
            f"`spark: {{jars.packages: org.postgresql:postgresql:42.7.4}}`. ({_first(error)})"
        ) from error
    settings = jvm.java.util.Properties()
    for key in ("user", "password"):
        if key in options:
            settings.setProperty(key, options[key])
    try:
        found = driver.connect(options["url"], settings)
    except Exception as error:
        raise SinkError(masked(f"The sink {sink} cannot connect to {options['url']}: {_first(error)}.")) from None
    if found is None:
        raise SinkError(
            masked(f"The sink {sink}: the driver {name} does not know the URL {options['url']}: it is of another database.")
        )
    return JvmConnection(found)


def masked(text: str) -> str:
    """The URL without passwords: as a property, behind a user, and in Oracle's form."""
    text = _PROPERTY.sub(r"\1=***", text)
    return _USER.sub(r"\1***@", text)


def quoted(spark: Any, url: str) -> Callable[[str], str]:
    """A column's name quoted for this database, by Spark's dialects."""
    dialect = spark._jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(url)
    return lambda name: str(dialect.quoteIdentifier(name))


def long_text(spark: Any, url: str) -> str:
    """This database's type for long texts, by Spark's dialects."""
    jvm = spark._jvm
    found = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(url).getJDBCType(jvm.org.apache.spark.sql.types.DataTypes.StringType)
    return str(found.get().databaseTypeDefinition()) if found.isDefined() else "TEXT"


def _first(error: Exception) -> str:
    """Java's message without the stack."""
    text = str(getattr(error, "java_exception", error)).strip()
    return text.split("\n")[0][:300]
