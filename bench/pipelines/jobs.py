"""One job three times: as a YAML pipeline, and by hand in plain Structured Streaming on our source and on Spark's connector.

All land good rows that keep the rule in one Delta table and bad records in another, each batch once (``txnAppId``,
``txnVersion``). By hand that is ``foreachBatch`` with the batch cached, as Spark's guide writes to two places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.pipelines.topics import AVRO_SCHEMA, JSON_SCHEMA, RULE

HAND, CONNECTOR, PIPELINE = "by hand", "by hand, connector", "pipeline"
SIDES = (HAND, CONNECTOR, PIPELINE)
PLACE = ("topic", "partition", "offset", "timestamp")


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done. ``batch``: records each, 0 for all at once; ``trigger_s``: 0 to end when everything is read."""

    form: str
    mode: str
    topic: str
    batch: int = 0
    trigger_s: float = 0
    keeps_broken: bool = False
    """Rows that break the rule go into a third table."""


def _parsed(form: str) -> Any:
    """The record's value as a struct, and whether it is bad."""
    from pyspark.sql import functions as F

    if form == "json":
        fields = ", ".join(part.removesuffix(" not null") for part in JSON_SCHEMA.split(", "))
        options = {"columnNameOfCorruptRecord": "_broken", "mode": "PERMISSIVE"}
        return F.from_json(F.col("value").cast("string"), f"{fields}, _broken string", options)
    from pyspark.sql.avro.functions import from_avro

    return from_avro(F.col("value"), AVRO_SCHEMA, {"mode": "PERMISSIVE"})


def by_hand(spark: Any, bootstrap: str, job: Job, folder: Path, source: str, trigger: dict[str, Any]) -> Any:
    """The running query."""
    from pyspark.sql import functions as F

    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": job.topic, "startingOffsets": "earliest"}
    if job.batch:
        options["maxOffsetsPerTrigger"] = str(job.batch)
    bad = "v IS NULL OR v._broken IS NOT NULL OR v.id IS NULL" if job.form == "json" else "v IS NULL OR v.id IS NULL"

    def append(rows: Any, table: str, number: int) -> None:
        writer = rows.write.format("delta").mode("append").option("txnAppId", table).option("txnVersion", str(number))
        writer.save(str(folder / table))

    def upsert(rows: Any, number: int) -> None:
        from delta.tables import DeltaTable
        from pyspark.sql import Window

        newest = Window.partitionBy("id").orderBy(F.col("_offset").desc())
        rows = rows.withColumn("_rank", F.row_number().over(newest)).where("_rank = 1").drop("_rank")
        path = str(folder / "good")
        if number == 0:
            append(rows, "good", number)
            return
        merge = DeltaTable.forPath(spark, path).alias("t").merge(rows.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll("s._offset >= t._offset").whenNotMatchedInsertAll().execute()

    def batch(frame: Any, number: int) -> None:
        rows = frame.select(_parsed(job.form).alias("v"), "key", "value", *PLACE).persist()
        wrong = rows.where(bad).select(*PLACE, "key", "value")
        fields = rows.select("v.*").drop("_broken").columns
        place = [F.col(name).alias(f"_{name}") for name in PLACE]
        good = rows.where(f"NOT ({bad})").select(*(f"v.{name}" for name in fields), F.col("key").alias("_key"), *place)
        append(wrong, "dead", number)
        if job.keeps_broken:
            append(good.where(f"NOT coalesce({RULE}, false)"), "broken", number)
        if job.mode == "upsert":
            upsert(good.where(RULE), number)
        else:
            append(good.where(RULE), "good", number)
        rows.unpersist()

    writer = spark.readStream.format(source).options(**options).load().writeStream.foreachBatch(batch)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(**trigger).start()


def yaml(bootstrap: str, job: Job, folder: Path) -> str:
    """The pipeline's file."""
    schema = f"'{AVRO_SCHEMA}'" if job.form == "avro" else f'"{JSON_SCHEMA}"'
    sink = "mode: upsert, keys: [id]" if job.mode == "upsert" else "mode: append"
    lines = [
        "pipeline: bench",
        f'kafka: {{bootstrap.servers: "{bootstrap}"}}',
        f"checkpoint: {folder}/checkpoint",
        f"trigger: {int(job.trigger_s * 1000) or 1000}ms",
        "sources:",
        "  rides:",
        f"    topics: [{job.topic}]",
        *([f"    max_records: {job.batch}"] if job.batch else []),
        f"    value: {{format: {job.form}, schema: {schema}}}",
        "transforms:",
        "  fair:",
        "    from: rides",
        "    sql: SELECT * FROM rides",
        f"    expect: {{fair: {{check: {RULE}, otherwise: {'quarantine' if job.keeps_broken else 'drop'}}}}}",
        f"sinks: {{good: {{type: delta, from: fair, path: {folder}/good, {sink}}}}}",
        f"dead_letters: {{type: delta, path: {folder}/dead}}",
        *([f"quarantine: {{type: delta, path: {folder}/broken}}"] if job.keeps_broken else []),
    ]
    return "\n".join(lines) + "\n"


def work(spark: Any, bootstrap: str, job: Job, folder: Path, side: str, enough: Callable[[], bool]) -> None:
    """Do the job: everything there is, or at the trigger's pace until ``enough``."""
    if side == PIPELINE:
        _pipeline(spark, yaml(bootstrap, job, folder), job, enough)
        return
    trigger = {"processingTime": f"{job.trigger_s} seconds"} if job.trigger_s else {"availableNow": True}
    query = by_hand(spark, bootstrap, job, folder, "tidelog" if side == HAND else "kafka", trigger)
    if job.trigger_s:
        while query.isActive and not enough():
            query.awaitTermination(0.2)
        query.stop()
    query.awaitTermination()


def _pipeline(spark: Any, text: str, job: Job, enough: Callable[[], bool]) -> None:
    import threading

    from tidelog.pipeline.reading import read_model
    from tidelog.pipeline.running import Run
    from tidelog.pipeline.yaml_text import parse

    run = Run(read_model(parse(text, "bench.yaml", {})), spark, lambda line: None)
    if not job.trigger_s:
        run.run(once=True)
        return
    ended = threading.Event()

    def watch() -> None:
        while not enough() and not ended.wait(0.2):
            pass
        run.stop()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        run.run(once=False)
    finally:
        ended.set()
        thread.join()
