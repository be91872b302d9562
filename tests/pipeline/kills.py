"""kill -9 of a pipeline's driver, of its executors, and of the broker, again and again: every record lands once in every sink.

One run has pipelines from one topic into several sinks in one driver, with many kills while records keep coming. At the end
each sink is read without tidelog (``landed``) and compared with the topic: as many rows as offsets, none lost, none twice.

Resumable: kills are counted in a file, and a run goes on where the last one stopped. ``python -m tests.pipeline.kills --help``.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from tests.pipeline import landed, quick_spark
from tests.pipeline.kills_note import Note
from tests.pipeline.kills_world import BULK, ICEBERG, OUT, PARTITIONS, SINKS, SOURCE, Load, found, pipelines, queries
from tests.pipeline.processes import ROOT, BrokerProcess, PipelineProcess, SparkCluster, kill, signal_all, until

TOGETHER = (("driver",), ("executor", "broker"), ("sleeper",))
"""Victims of the same runs. A driver dies without a cluster: there is less to start again. A sleeper is a driver that is stopped,
wakes when another one has taken its place and written batches, goes on for a while beside it, and is killed then."""
VICTIMS = tuple(victim for group in TOGETHER for victim in group)
GOAL = 50
NOTE = ROOT / "docs" / "pipeline-kills.json"
PAGE = ROOT / "docs" / "pipeline-kills.md"
KILLS_PER_BATCH = 3
"""So many kills may hit one batch before every query has to bring one to its end."""
PACE_S = 8.0
"""How long a batch takes after a start, before that is known."""


class Run:
    """Pipelines in one driver, many kills."""

    def __init__(
        self, folder: Path, victims: Sequence[str], sinks: tuple[str, ...], seed: int, say: Callable[[str], None]
    ) -> None:
        """``victims``: in the order in which they are struck."""
        self._folder, self._victims, self._sinks = folder, victims, sinks
        self._rng = random.Random(seed)
        self._say = say
        self._broker = BrokerProcess(folder)
        self._cluster = SparkCluster(folder) if "executor" in victims else None
        self._load = Load(self._broker.bootstrap)
        self._pipeline: PipelineProcess | None = None
        self._pace = PACE_S
        self.kills: Counter[str] = Counter()
        self.in_batch: Counter[str] = Counter()
        self.rows = 0
        self.ended_alone = 0

    def go(self) -> dict[str, str]:
        """Do it. What is wrong in each sink: empty where nothing is. Whatever happens, nothing is left running."""
        try:
            pipeline = self._begin()
            for number, victim in enumerate(self._victims):
                if number % KILLS_PER_BATCH == 0:
                    pipeline.wait_for_batches()
                self._strike(victim, pipeline)
                self._say(f"kill {number + 1} of {len(self._victims)}, {victim}: {self._load.sent:,} records sent")
            return self._end(pipeline)
        finally:
            if self._pipeline is not None:
                self._pipeline.bury()
                self._pipeline.kill(everything=True)
            if self._cluster is not None:
                self._cluster.stop()
            self._load.stop(wait=False)
            self._broker.kill()

    def _begin(self) -> PipelineProcess:
        self._broker.start()
        admin = AdminClient({"bootstrap.servers": self._broker.bootstrap})
        for made in admin.create_topics([NewTopic(SOURCE, PARTITIONS, 1), NewTopic(OUT, 3, 1)]).values():
            made.result(60)
        self._load.start()
        master = "local[2]"
        if self._cluster is not None:
            self._cluster.start()
            master = self._cluster.master
        files = []
        for lane, text in pipelines(self._broker.bootstrap, self._folder, self._sinks, master).items():
            files.append(self._folder / f"{lane}.yaml")
            files[-1].write_text(text)
        self._pipeline = PipelineProcess(self._folder, files, queries(self._sinks))
        self._pipeline.start()
        return self._pipeline

    def _strike(self, victim: str, pipeline: PipelineProcess) -> None:
        """Wait for a moment that falls before, in or after a batch, and kill."""
        cluster = self._cluster
        alone = victim in ("driver", "sleeper")
        if alone:
            until(lambda: pipeline.begun or not pipeline.running, "the driver's start", pipeline.log)
            self._pace = pipeline.pace or self._pace
        time.sleep(self._rng.uniform(0, self._pace if alone and not pipeline.batches else 4.0))
        if victim == "executor":
            assert cluster is not None
            until(lambda: bool(cluster.executors()), "an executor", pipeline.log)
        self.kills[victim] += 1
        self.in_batch[victim] += self._batch_open()
        if victim == "driver":
            # Every other time its Python workers live on for a moment, among them the one that commits to the topic.
            pipeline.kill(everything=self._rng.random() < 0.5)
            pipeline.start()
        elif victim == "sleeper":
            asleep = pipeline.put_to_sleep()
            pipeline.start()
            pipeline.wait_for_batches()
            signal_all(asleep, signal.SIGCONT)
            time.sleep(self._rng.uniform(1, 10))
            pipeline.bury()
        elif victim == "broker":
            self._broker.kill()
            time.sleep(self._rng.choice([0, 0, 1]))
            self._broker.start()
        else:
            assert cluster is not None
            kill(*self._rng.sample(cluster.executors(), 1))

    def _batch_open(self) -> bool:
        """Whether a checkpoint says that a batch was begun and not ended."""

        def last(folder: Path) -> int:
            return max((int(file.name) for file in folder.glob("*") if file.name.isdecimal()), default=-1)

        return any(last(offsets) > last(offsets.parent / "commits") for offsets in self._folder.glob("checkpoint-*/*/offsets"))

    def _end(self, pipeline: PipelineProcess) -> dict[str, str]:
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
        return {name: landed.judged(expected, found(name, self._broker.bootstrap, self._folder)) for name in self._sinks}


def possible() -> tuple[str, ...]:
    """The sinks that are tried on this PySpark."""
    return ICEBERG if metadata.version("pyspark").startswith("4.1.") else SINKS + BULK


def one(note: Note, victims: list[str], sinks: tuple[str, ...], seed: int, *, keep: bool) -> int:
    """A run, counted. How many sinks were wrong."""
    folder = Path(tempfile.mkdtemp(prefix="tidelog-kills-"))
    run = Run(folder, victims, sinks, seed, lambda text: print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True))
    try:
        verdicts = run.go()
    except BaseException:
        print(f"seed {seed}: the run did not come to its end; see {folder}", flush=True)
        raise
    note.add(verdicts, run.kills, run.in_batch, run.rows, run.ended_alone, f"{datetime.now(UTC):%Y-%m-%d}")
    wrong = {sink: text for sink, text in verdicts.items() if text}
    told = wrong or "each once in " + ", ".join(sinks)
    print(f"seed {seed}: {dict(run.kills)}, {run.rows:,} rows: {told}", flush=True)
    if not (wrong and keep):
        shutil.rmtree(folder, ignore_errors=True)
    return len(wrong)


def main(arguments: list[str] | None = None) -> int:
    """The command line. 0 when nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.pipeline.kills", description=__doc__.split("\n")[0])
    parser.add_argument("--victims", default=",".join(VICTIMS))
    parser.add_argument("--sinks", default=",".join(possible()))
    parser.add_argument("--kills", type=int, default=GOAL, help="go on until each victim and sink has had so many")
    parser.add_argument("--per-run", type=int, default=10, help="kills of each victim in one run")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--note", type=Path, default=NOTE)
    parser.add_argument("--write", type=Path, default=None, help=f"write the page, {PAGE.relative_to(ROOT)}")
    parser.add_argument("--keep", action="store_true", help="leave the folder of a run in which something was wrong")
    chosen = parser.parse_args(arguments)
    note, sinks, wanted = Note.read(chosen.note), tuple(chosen.sinks.split(",")), set(chosen.victims.split(","))
    quick_spark.ensure()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # nothing is left running
    bad = 0
    for group in TOGETHER:
        while left := {victim: n for victim in group if victim in wanted and (n := note.left(victim, sinks, chosen.kills))}:
            seed = chosen.seed if chosen.seed is not None else random.randrange(1 << 30)
            victims = [victim for victim, n in left.items() for _ in range(min(n, chosen.per_run))]
            random.Random(seed).shuffle(victims)
            bad += one(note, victims, sinks, seed, keep=chosen.keep)
            if chosen.write is not None:
                chosen.write.write_text(note.page())
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
