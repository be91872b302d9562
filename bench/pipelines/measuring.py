"""What one side costs: seconds, CPU seconds of driver, JVM and Python workers, batches and how long each took, Spark's jobs and
stages."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.pipelines.jobs import SIDES, Job, work
from bench.spark.latency import percentile
from bench.spark.processes import TICKS


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the result. ``records``: in the topic."""

    name: str
    job: Job
    records: int
    small_batches: int = 0
    """End after so many batches, at the trigger's pace."""


@dataclass(slots=True)
class World:
    """Where rows are measured. ``own``: the root of the processes that count; ``others``: those below it that do not."""

    spark: Any
    bootstrap: str
    folder: Path
    own: int
    others: tuple[int, ...]
    watch: Any = field(init=False)

    def __post_init__(self) -> None:
        self.watch = watcher()
        self.spark.streams.addListener(self.watch)


class CpuMeter:
    """CPU seconds of a process and all below it while the block runs. They are read every second, since not every parent counts
    its children that have ended."""

    def __init__(self, own: int, others: tuple[int, ...]) -> None:
        self._own, self._others = own, frozenset(others)
        self._first: dict[tuple[int, int], float] = {}
        self._last: dict[tuple[int, int], float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> CpuMeter:
        self._first = self._now()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._last |= self._now()

    @property
    def seconds(self) -> float:
        """What was spent in the block."""
        return sum(spent - self._first.get(process, 0.0) for process, spent in self._last.items())

    def _watch(self) -> None:
        while not self._ended.wait(1):
            self._last |= self._now()

    def _now(self) -> dict[tuple[int, int], float]:
        """Process and its start -> its own CPU seconds."""
        children: dict[int, list[tuple[int, int, float]]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue  # it has just ended
                found = int(entry.name), int(fields[19]), (int(fields[11]) + int(fields[12])) / TICKS
                children.setdefault(int(fields[1]), []).append(found)
                if found[0] == self._own:
                    children.setdefault(-1, []).append(found)
        result, below = {}, [-1]
        while below:
            for pid, began, spent in children.get(below.pop(), ()):
                if pid not in self._others:
                    result[pid, began] = spent
                    below.append(pid)
        return result


def watcher() -> Any:
    """A listener that keeps how long each batch with records took."""
    from pyspark.sql.streaming import StreamingQueryListener

    class Batches(StreamingQueryListener):
        def __init__(self) -> None:
            self.seconds: list[float] = []

        def onQueryStarted(self, event: Any) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            found = json.loads(event.progress.json)
            moved = any(source["startOffset"] != source["endOffset"] for source in found["sources"])
            if moved and "addBatch" in found["durationMs"]:
                self.seconds.append(found["durationMs"]["triggerExecution"] / 1000)

        def onQueryIdle(self, event: Any) -> None:
            pass

        def onQueryTerminated(self, event: Any) -> None:
            pass

    return Batches()


def _jobs(spark: Any) -> tuple[int, int]:
    """Jobs and stages since the session began; stages that were skipped are among them."""
    scheduler = spark._jsc.sc().dagScheduler()
    return int(scheduler.numTotalJobs()), int(scheduler.nextStageId())


def one_turn(world: World, row: Row, side: str) -> dict[str, Any]:
    """The numbers of one side, once; what it wrote is compared by its counts and removed."""
    folder = world.folder / "landed"
    world.watch.seconds.clear()
    jobs, stages = _jobs(world.spark)
    began, meter = time.monotonic(), CpuMeter(world.own, world.others)

    def enough() -> bool:
        return bool(row.small_batches) and len(world.watch.seconds) >= row.small_batches

    try:
        with meter:
            work(world.spark, world.bootstrap, row.job, folder, side, enough)
        wall, spent = time.monotonic() - began, meter.seconds
        time.sleep(0.5)  # listeners hear of the last batch a little later
        jobs_now, stages_now = _jobs(world.spark)
        seconds = sorted(world.watch.seconds)
        batches = max(1, len(seconds))
        tables = [name for name in ("good", "dead", "broken") if (folder / name).exists()]
        landed = {name: world.spark.read.format("delta").load(str(folder / name)).count() for name in tables}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    records = row.job.batch * batches if row.small_batches else row.records
    return {
        "records_per_s": round(records / wall),
        "cpu_s": round(spent, 2),
        "wall_s": round(wall, 2),
        "records_per_cpu_s": round(records / spent),
        "cpu_ms_per_batch": round(spent / batches * 1000, 1),
        "batches": len(seconds),
        "jobs_per_batch": round((jobs_now - jobs) / batches, 1),
        "stages_per_batch": round((stages_now - stages) / batches, 1),
        "batch_s": [round(percentile(seconds, share), 3) for share in (0.5, 0.99)] if seconds else [],
        "landed": landed,
    }


def measure(world: World, row: Row, rounds: int) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The sides in turns; the first turn of each warms up and is left out."""
    expected: dict[str, int] | None = None
    for turn in range(rounds + 1):
        order = SIDES[turn % len(SIDES) :] + SIDES[: turn % len(SIDES)]
        for side in order:
            numbers = one_turn(world, row, side)
            if not row.small_batches:
                expected = expected or numbers["landed"]
                assert numbers["landed"] == expected, f"{row.name}, {side}: {numbers['landed']} landed, others {expected}"
            if turn:
                yield turn, side, numbers
