"""A session, a pipeline over a broker, and a run of it: what tests of pipelines share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tidelog.pipeline.model import PipelineModel
from tidelog.pipeline.reading import read_model
from tidelog.pipeline.running import Run, Summary
from tidelog.pipeline.session import session_for
from tidelog.pipeline.yaml_text import parse

SMALL = {"master": "local[1]", "sql.shuffle.partitions": "1", "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1"}


H2 = "com.h2database:h2:2.3.232"

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""The quick compiler only: sessions of tests are over before the other one pays. With it Java reserves too little for code."""


def lake_session() -> Any:
    """A small session with Delta and a database, made as `tidelog pipeline run` makes one."""
    settings = SMALL | {
        "driver.extraJavaOptions": JAVA_OPTIONS,
        "driver.memory": "1g",
        "databricks.delta.snapshotPartitions": "1",
        "ui.enabled": "false",
        "jars.packages": H2,
    }
    text = "pipeline: tests\nkafka: {bootstrap.servers: 'localhost:1'}\nsources: {s: {topics: [t]}}\n"
    text += "sinks: {t: {type: delta, from: s, path: p}}\nspark:\n" + "".join(f"  {k}: '{v}'\n" for k, v in settings.items())
    return session_for(read_model(parse(text, "tests", {})))


class Lake:
    """A pipeline whose YAML has BOOTSTRAP and FOLDER in it, and the tables that it makes."""

    def __init__(self, spark: Any, bootstrap: str, folder: Path, text: str) -> None:
        self.spark = spark
        self.folder = folder
        self._text = text.replace("BOOTSTRAP", bootstrap).replace("FOLDER", str(folder))
        self.lines: list[str] = []

    def change(self, old: str, new: str) -> None:
        """Edit the YAML."""
        assert old in self._text
        self._text = self._text.replace(old, new)

    def model(self) -> PipelineModel:
        return read_model(parse(self._text, "test.yaml", {}))

    def made(self) -> Run:
        """A run that has not begun."""
        return Run(self.model(), self.spark, self.lines.append)

    def run(self, *from_here: str) -> Summary:
        """Everything that is there."""
        return self.made().run(once=True, from_here=frozenset(from_here))

    def table(self, name: str) -> Any:
        return self.spark.read.format("delta").load(str(self.folder / name))

    def values(self, name: str, *columns: str) -> list[Any]:
        rows = [tuple(row) for row in self.table(name).select(*columns).collect()]
        return sorted(row[0] for row in rows) if len(columns) == 1 else sorted(rows)
