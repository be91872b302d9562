"""kill -9 of a pipeline's driver, of its executors, and of the broker, again and again: every record lands once in every sink.

One run is one pipeline from one topic into several sinks, with many kills of one kind of victim while records keep coming. At the
end each sink is read without tidelog (``landed``) and compared with the topic: as many rows as offsets, none lost, none twice.

Resumable: kills are counted in a file, and a run goes on where the last one stopped. ``python -m tests.pipeline.kills --help``.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.pipeline import landed
from tests.pipeline.processes import ROOT, BrokerProcess, PipelineProcess, SparkCluster, kill, until

VICTIMS = ("driver", "executor", "broker")
MIXED = "mixed"
"""The broker and the driver in turns: the short form."""
SINKS = ("topic", "delta", "parquet")
BULK = ("bulk-parquet", "bulk-delta")
"""Sinks of the bulk lane: a pipeline of its own, since an engine is a pipeline's."""
GOAL = 50
NOTE = ROOT / ".cache" / "pipeline-kills.json"
PAGE = ROOT / "docs" / "pipeline-kills.md"
SOURCE, OUT = "events", "out"
PARTITIONS = 4
RECORDS_PER_S = 60
KILLS_PER_BATCH = 3
"""So many kills may hit one batch before one has to come to its end."""


@dataclass
class Load:
    """Records that keep coming. Idempotent: what librdkafka retries is in the topic once."""

    bootstrap: str
    sent: int = 0
    failed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        config = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "delivery.timeout.ms": 300_000, "log_level": 0}
        producer = confluent_kafka.Producer(config)
        while not self._stop.wait(0.1):
            for _ in range(RECORDS_PER_S // 10):
                key = f"key {self.sent % 97}"
                producer.produce(SOURCE, f"value {self.sent}", key, partition=self.sent % PARTITIONS, on_delivery=self._delivered)
                self.sent += 1
            producer.poll(0)
        producer.flush(300)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed.append(str(error))

    def stop(self) -> None:
        """No more; what was sent arrives."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()


def pipeline_text(bootstrap: str, folder: Path, sinks: tuple[str, ...], master: str) -> str:
    """The pipeline under test: a row is known by the partition and offset that it came from."""
    parts = bulk_parts(folder, sinks) if set(sinks) <= set(BULK) else spark_parts(folder, sinks)
    return f"""\
pipeline: kills
kafka:
  bootstrap.servers: {bootstrap}
  retry.backoff.ms: 50
checkpoint: {folder}/checkpoint
trigger: 200ms
{parts}spark:
  master: {master}
  driver.memory: 700m
  executor.memory: 600m
  task.maxFailures: 1000
  deploy.maxExecutorRetries: -1
  sql.shuffle.partitions: 1
  excludeOnFailure.enabled: false
"""


def bulk_parts(folder: Path, sinks: tuple[str, ...]) -> str:
    """A source and a table for each, of the bulk lane."""
    names = [sink.removeprefix("bulk-") for sink in sinks]
    sources = [f"  {name}: {{topics: [{SOURCE}], max_records: 20000}}\n" for name in names]
    tables = [f"  {name}: {{type: {name}, from: {name}, path: {folder}/bulk-{name}}}\n" for name in names]
    return f"engine: bulk\nsources:\n{''.join(sources)}sinks:\n{''.join(tables)}"


def spark_parts(folder: Path, sinks: tuple[str, ...]) -> str:
    """One source into all of them."""
    tables = {
        "delta": f"  delta:\n    type: delta\n    from: rows\n    path: {folder}/delta\n",
        "parquet": f"  parquet:\n    type: parquet\n    from: rows\n    path: {folder}/parquet\n",
        # Half of its batches are larger than this: they wait in the staging topic.
        "topic": f"  topic:\n    type: topic\n    from: rows\n    topic: {OUT}\n    inlineBytes: 2000\n",
    }
    return f"""\
sources:
  events:
    topics: [{SOURCE}]
    start: earliest
    max_records: 20000
    key: text
    value: text
transforms:
  rows:
    from: events
    sql: SELECT concat(_partition, ':', _offset) AS value FROM events
sinks:
{"".join(tables[name] for name in sinks)}"""


class Run:
    """One pipeline, many kills."""

    def __init__(self, folder: Path, victim: str, sinks: tuple[str, ...], seed: int, say: Callable[[str], None]) -> None:
        self._folder, self._victim, self._sinks = folder, victim, sinks
        self._rng = random.Random(seed)
        self._say = say
        self._broker = BrokerProcess(folder)
        self._cluster = SparkCluster(folder) if victim == "executor" else None
        self._load: Load | None = None
        self._pipeline: PipelineProcess | None = None
        self.kills = 0
        self.rows = 0
        self.ended_alone = 0

    def go(self, kills: int) -> dict[str, str]:
        """Do it. What is wrong in each sink: empty where nothing is. Whatever happens, nothing is left running."""
        try:
            pipeline = self._begin()
            pipeline.wait_for_batch()
            for number in range(kills):
                if number % KILLS_PER_BATCH == 0:
                    pipeline.wait_for_batch()
                time.sleep(self._rng.uniform(0, 6.0))
                self._strike(pipeline)
                self.kills += 1
                self._say(f"{self._victim}: kill {self.kills} of {kills}, {self._load.sent if self._load else 0:,} records sent")
            return self._end(pipeline)
        finally:
            if self._pipeline is not None:
                self._pipeline.kill(everything=True)
            if self._cluster is not None:
                self._cluster.stop()
            if self._load is not None and not self._load._stop.is_set():
                self._load._stop.set()
            self._broker.kill()

    def _begin(self) -> PipelineProcess:
        self._broker.start()
        admin = AdminClient({"bootstrap.servers": self._broker.bootstrap})
        for made in admin.create_topics([NewTopic(SOURCE, PARTITIONS, 1), NewTopic(OUT, 3, 1)]).values():
            made.result(60)
        self._load = Load(self._broker.bootstrap)
        self._load.start()
        master = "local[2]"
        if self._cluster is not None:
            self._cluster.start()
            master = self._cluster.master
        file = self._folder / "pipeline.yaml"
        file.write_text(pipeline_text(self._broker.bootstrap, self._folder, self._sinks, master))
        self._pipeline = PipelineProcess(self._folder, file)
        self._pipeline.start()
        return self._pipeline

    def _strike(self, pipeline: PipelineProcess) -> None:
        victim = ("broker", "driver")[self.kills % 2] if self._victim == MIXED else self._victim
        if victim == "driver":
            # Every other time its Python workers live on for a moment, among them the one that commits to the topic.
            pipeline.kill(everything=self._rng.random() < 0.5)
            pipeline.start()
            until(lambda: pipeline.begun or not pipeline.running, "the driver's start", pipeline.log)
        elif victim == "broker":
            self._broker.kill()
            time.sleep(self._rng.choice([0, 0, 1]))
            self._broker.start()
        else:
            assert self._cluster is not None
            cluster = self._cluster
            until(lambda: bool(cluster.executors()), "an executor", pipeline.log)
            kill(self._rng.choice(cluster.executors()))

    def _end(self, pipeline: PipelineProcess) -> dict[str, str]:
        assert self._load is not None
        self._load.stop()
        if self._load.failed:
            raise AssertionError(f"the load did not arrive: {self._load.failed[:3]}")
        status = pipeline.finish()
        if status:
            raise AssertionError(f"the last run ended with {status}:\n{pipeline.log.read_text(errors='replace')[-3000:]}")
        self.ended_alone = len(pipeline.ended_alone)
        expected = {f"{m.partition()}:{m.offset()}" for m in landed.topic(self._broker.bootstrap, SOURCE)}
        self.rows = len(expected)
        assert self.rows == self._load.sent, f"{self._load.sent} records were sent, and the topic has {self.rows}"
        return {name: landed.judged(expected, self._found(name)) for name in self._sinks}

    def _found(self, sink: str) -> list[str]:
        if sink == "topic":
            return [(message.value() or b"").decode() for message in landed.topic(self._broker.bootstrap, OUT)]
        of_kind = landed.delta_files if sink.endswith("delta") else landed.manifest_files
        files = of_kind(self._folder / sink)
        return landed.places(files) if sink in BULK else landed.column(files, "value")


@dataclass
class Note:
    """What was done so far, by victim and sink."""

    path: Path
    done: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Note:
        """From its file, or empty."""
        return cls(path, json.loads(path.read_text()) if path.exists() else {})

    def kills(self, victim: str, sink: str) -> int:
        """How many."""
        return int(self.done.get(victim, {}).get(sink, {}).get("kills", 0))

    def add(self, run: Run, victim: str, verdicts: dict[str, str], when: str) -> None:
        """Count a run that came to its end."""
        for sink, wrong in verdicts.items():
            row = self.done.setdefault(victim, {}).setdefault(sink, {"kills": 0, "runs": 0, "rows": 0, "wrong": []})
            row["kills"] += run.kills
            row["runs"] += 1
            row["rows"] += run.rows
            row["last"] = when
            row["ended alone"] = row.get("ended alone", 0) + run.ended_alone
            if wrong:
                row["wrong"].append(f"{when}: {wrong}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.done, indent=1))

    def page(self) -> str:
        """As a page."""
        lines = [
            "# Pipelines under kill -9",
            "",
            "Made by `make pipeline-kills` (`tests/pipeline/kills.py`): `tidelog pipeline run` from a topic of four partitions",
            "into several sinks at once (those of the bulk lane in runs of their own), with many kills of one kind in a run",
            "while records keep coming; then each sink is read without tidelog and compared with the topic. Victims: the driver",
            "(its Python and its JVM, every other time with all workers), an executor of a standalone cluster, the broker (a",
            "tidelog node).",
            "",
            "| victim | sink | kills | runs | rows, each once | wrong | last run |",
            "|---|---|---|---|---|---|---|",
        ]
        for victim in VICTIMS:
            for sink, row in sorted(self.done.get(victim, {}).items()):
                wrong = "none" if not row["wrong"] else "; ".join(row["wrong"])
                lines.append(
                    f"| {victim} | {sink} | {row['kills']} | {row['runs']} | {row['rows']:,} | {wrong} | {row['last']} |"
                )
        return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """The command line. 0 when nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.pipeline.kills", description=__doc__.split("\n")[0])
    parser.add_argument("--victims", default=",".join(VICTIMS))
    parser.add_argument("--sinks", default=",".join(SINKS + BULK))
    parser.add_argument("--kills", type=int, default=GOAL, help="go on until each victim and sink has had so many")
    parser.add_argument("--per-run", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--note", type=Path, default=NOTE)
    parser.add_argument("--write", type=Path, default=None, help=f"write the page, {PAGE.relative_to(ROOT)}")
    parser.add_argument("--keep", action="store_true", help="leave the folder of a run in which something was wrong")
    chosen = parser.parse_args(arguments)
    note, named = Note.read(chosen.note), chosen.sinks.split(",")
    lanes = [tuple(sink for sink in named if (sink in BULK) is bulk) for bulk in (False, True)]
    bad = 0
    for victim, sinks in product(chosen.victims.split(","), filter(None, lanes)):
        while (left := chosen.kills - min(note.kills(victim, sink) for sink in sinks)) > 0:
            seed = chosen.seed if chosen.seed is not None else random.randrange(1 << 30)
            folder = Path(tempfile.mkdtemp(prefix=f"tidelog-kills-{victim}-"))
            run = Run(folder, victim, sinks, seed, lambda text: print(text, flush=True))
            verdicts = run.go(min(left, chosen.per_run))
            note.add(run, victim, verdicts, f"{datetime.now(UTC):%Y-%m-%d}")
            wrong = {sink: text for sink, text in verdicts.items() if text}
            print(
                f"{victim}, seed {seed}: {run.kills} kills, {run.rows:,} rows: {wrong or 'each once in ' + ', '.join(sinks)}",
                flush=True,
            )
            bad += len(wrong)
            if not (wrong and chosen.keep):
                shutil.rmtree(folder, ignore_errors=True)
    if chosen.write is not None:
        chosen.write.write_text(note.page())
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
