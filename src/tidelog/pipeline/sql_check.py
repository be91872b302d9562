"""Check the SQL, rules and schemas of a pipeline with Spark's own parser, before anything runs.

The parser needs Java and PySpark's jars, but no session. It knows syntax and types, not the columns.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Any

from tidelog.model.errors import ConfigError
from tidelog.pipeline.sections import Document, Path

_NOISE = re.compile(r"^\[[A-Z_.]+\] | SQLSTATE: \w+")


class Kind(StrEnum):
    """What a text must be; the value is the name of the parser's method."""

    QUERY = "parsePlan"
    RULE = "parseExpression"
    SCHEMA = "parseTableSchema"


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the pipeline that Spark will parse."""

    path: Path
    kind: Kind
    text: str


Parser = Callable[[Kind, str], str]
"""What is wrong with a text; empty if nothing is."""


def texts_of(document: Document) -> Iterator[Text]:
    """Queries of transforms, their rules, and schemas in Spark's DDL, whatever else is wrong with the pipeline."""
    for name, transform in _mappings(document.tree, "transforms"):
        if isinstance(transform.get("sql"), str):
            yield Text(("transforms", name, "sql"), Kind.QUERY, transform["sql"])
        for rule, said in _mappings(transform, "expect"):
            if isinstance(said.get("check"), str):
                yield Text(("transforms", name, "expect", rule, "check"), Kind.RULE, said["check"])
    for name, source in _mappings(document.tree, "sources"):
        for side, decode in _mappings(source, None):
            schema = decode.get("schema")
            if side in ("key", "value") and decode.get("format") == "json" and isinstance(schema, str) and "{" not in schema[:1]:
                yield Text(("sources", name, side, "schema"), Kind.SCHEMA, schema)


def _mappings(found: Any, key: str | None) -> list[tuple[str, dict[str, Any]]]:
    below = found.get(key) if key is not None and isinstance(found, dict) else found
    items = below.items() if isinstance(below, dict) else ()
    return [(str(name), value) for name, value in items if isinstance(value, dict)]


def check(document: Document, parser: Parser) -> None:
    """Note with the document what the parser refuses."""
    for text in texts_of(document):
        problem = parser(text.kind, text.text)
        if problem:
            document.problems.add(document.error(text.path, problem))


@contextmanager
def spark_parser() -> Iterator[Parser]:
    """Spark's parser, in a JVM that ends with the block. ConfigError when PySpark or Java is missing."""
    try:
        from pyspark.java_gateway import launch_gateway
    except ImportError:
        raise ConfigError("PySpark is not installed: pip install 'tidelog[pipeline]'.") from None
    from tidelog.pipeline.session import ensure_java

    ensure_java(os.environ)
    with tempfile.TemporaryFile() as said:
        try:
            with _printing_to(said):
                gateway = launch_gateway()
        except Exception as error:
            said.seek(0)
            raise ConfigError(f"Spark's parser did not start: {said.read().decode(errors='replace')[-500:] or error}") from None
    try:
        made = gateway.jvm.org.apache.spark.sql.execution.SparkSqlParser()

        def parse(kind: Kind, text: str) -> str:
            try:
                getattr(made, kind.value)(text)
            except Exception as error:
                thrown = getattr(error, "java_exception", None)  # Py4JJavaError has it.
                if thrown is None:
                    raise
                return sentence(str(thrown.getMessage()))
            return ""

        yield parse
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


@contextmanager
def _printing_to(file: IO[bytes]) -> Iterator[None]:
    """Programs started meanwhile print there for all their life: Java's notes at its start are not about the pipeline."""
    kept = [os.dup(number) for number in (1, 2)]
    try:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
        yield
    finally:
        for number, back in zip((1, 2), kept, strict=True):
            os.dup2(back, number)
            os.close(back)


def sentence(said: str) -> str:
    """The first line of the parser's message, without its codes, and the line of the text that it marks."""
    lines = [line for line in said.strip().splitlines() if line.strip()]
    marked = next((at for at, line in enumerate(lines) if re.fullmatch(r"-*\^+", line.strip())), 0)
    shown = f": {lines[marked - 1].strip()}" if marked else ""
    return _NOISE.sub("", lines[0]) + shown
