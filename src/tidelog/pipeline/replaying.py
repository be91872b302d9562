"""Dead letters decoded again after a fix, each into its sinks once.

1. Letters that can be decoded now get the number of this replay (one commit of the dead letters' table). 2. They pass the
transforms into the sinks as a batch of that number, under separate names (``replay.silver``). 3. They are deleted from the dead
letters. A replay that died is found by its number and finished first, with the same letters, so that no sink gets them twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidelog.pipeline.batches import BatchWriter
from tidelog.pipeline.decoding import decoded, explained, plan
from tidelog.pipeline.delta_names import delta_name
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.flows import Flow, flows
from tidelog.pipeline.model import PipelineModel, Source

HEADERS = "array<struct<key:string,value:binary>>"


@dataclass(frozen=True, slots=True)
class Replayed:
    """How many letters of a source were replayed, and how many stay, by the reason for which they cannot be decoded."""

    source: str
    landed: int
    reasons: dict[str, int]

    @property
    def left(self) -> int:
        """How many letters stay."""
        return sum(self.reasons.values())


def replay(model: PipelineModel, spark: Any, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> list[Replayed]:
    """Replay the dead letters of every source. PipelineFailure when there is no table of them."""
    letters = model.dead_letters
    if letters is None or letters.kind != "delta":
        raise PipelineFailure("Dead letters are replayed from a Delta table, and there is none: say dead_letters: {type: delta}.")
    path = letters.option("path")
    if not spark._jvm.io.delta.tables.DeltaTable.isDeltaTable(spark._jsparkSession, path):
        return []
    found = []
    for flow in flows(model):
        if flow.remembers:
            continue
        if not flow.sinks:
            raise PipelineFailure(
                f"The rows of source {flow.sources[0].name} go into windows only, which cannot take late rows: "
                "read its dead letters as a table."
            )
        found.append(_Replay(model, flow, spark, path).run(now_ms()))
    return found


class _Replay:
    def __init__(self, model: PipelineModel, flow: Flow, spark: Any, path: str) -> None:
        self._model = model
        self._flow = flow
        self._spark = spark
        self._path = path
        self._source = flow.sources[0]
        self._writer = BatchWriter(model, flow, prefix="replay.")

    def run(self, now_ms: int) -> Replayed:
        self._writer.check(self._spark)
        landed = 0
        for unfinished in self._claimed():
            landed += self._finish(unfinished)
        number = self._writer.number_at(now_ms)
        if self._claim(number):
            landed += self._finish(number)
        return Replayed(self._source.name, landed, self._reasons())

    def _letters(self) -> Any:
        from pyspark.sql import functions as F

        return self._spark.read.format("delta").load(self._path).where(F.col("source") == self._source.name)

    def _claimed(self) -> list[int]:
        rows = self._letters().where("replay is not null").select("replay").distinct().collect()
        return sorted(row.replay for row in rows)

    def _claim(self, number: int) -> int:
        """Mark the letters that decode now with the replay's number, and the others with their present reason. Returns how
        many decode."""
        plan_now = plan(self._source, self._model.registry)
        rows = decoded(records(self._letters().where("replay is null"), self._source), plan_now)
        place = ("_topic", "_partition", "_offset", "_error")
        bad = explained(rows.where("_error is not null"), plan_now).select(*place)
        judged = rows.where("_error is null").select(*place).unionByName(bad).distinct().persist()
        try:
            good = int(judged.where("_error is null").count())
            if good or self._moved(judged):
                judged.createOrReplaceTempView("tidelog_replay")
                table = delta_name(self._spark, self._path)
                self._spark.sql(
                    f"MERGE INTO {table} t USING tidelog_replay s ON t.source = '{self._source.name}' AND "
                    "t.topic = s._topic AND t.partition = s._partition AND t.offset = s._offset AND t.replay IS NULL "
                    f"WHEN MATCHED AND s._error IS NULL THEN UPDATE SET replay = {number} "
                    "WHEN MATCHED AND NOT (s._error <=> t.error) THEN UPDATE SET error = s._error"
                )
                self._spark.catalog.dropTempView("tidelog_replay")
        finally:
            judged.unpersist()
        return good

    def _moved(self, judged: Any) -> bool:
        """Whether a letter's reason differs from the one that is stored."""
        letters = self._letters().where("replay is null").selectExpr("topic", "partition", "offset", "error")
        same = "topic = _topic AND partition = _partition AND offset = _offset AND NOT (error <=> _error)"
        from pyspark.sql import functions as F

        return not judged.join(letters, F.expr(same)).isEmpty()

    def _reasons(self) -> dict[str, int]:
        """Why letters stay, the most frequent reasons first."""
        counted = self._letters().where("replay is null").groupBy("error").count()
        return {row["error"]: row["count"] for row in counted.orderBy("count", "error", ascending=[False, True]).collect()}

    def _finish(self, number: int) -> int:
        mine = self._letters().where(f"replay = {number}")
        count = int(mine.count())
        self._writer.write(records(mine, self._source), number, ())
        table = delta_name(self._spark, self._path)
        self._spark.sql(f"DELETE FROM {table} WHERE source = '{self._source.name}' AND replay = {number}")
        return count


def records(letters: Any, source: Source) -> Any:
    """Letters in the form of the Spark source, without headers, which dead letters do not keep."""
    from pyspark.sql import functions as F

    rows = letters.select("topic", "partition", "offset", "timestamp", "key", "value")
    return rows.withColumn("headers", F.lit(None).cast(HEADERS)) if source.headers else rows
