"""Everything that is started for the demo, in order, and ended again whatever happens: a node, a schema registry, departments,
Spark with the pipeline, and the generator.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo import books
from demo.city import OPENING_MS, TOPICS, City, Ledger
from demo.feeding import BOOKING, SUBJECT, Feeder
from demo.groups import AnalyticsLogger, Department, Lags, RecommendationEngine, Staff, SurgeForecaster
from demo.view import Board, View
from tidelog.pipeline.failures import sentence
from tidelog.pipeline.model import PipelineModel
from tidelog.pipeline.progress import Counts
from tidelog.pipeline.reading import read_model
from tidelog.pipeline.running import Run
from tidelog.pipeline.session import session_for
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.pipeline.yaml_text import parse
from tidelog.testing import Broker, SchemaRegistry

PIPELINE = Path(__file__).with_name("pipeline.yaml")
PARTITIONS = 3
TICKS_PER_S = 4
SURGE = "surge"
SURGE_QUERY = "surge_topic"
BRONZE_QUERY = "everything"
CAUGHT_UP_S = 60.0
END_S = 60.0


class DemoFailed(Exception):
    """Something that runs behind the scenes ended; the text says what."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What there was at the end. ``surges``: the values in the topic."""

    rows: list[books.Row]
    lines: list[books.Line]
    surges: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Play:
    """What is played. ``rate``: records a second."""

    folder: Path
    seconds: int
    rate: int
    seed: int


class Pipeline:
    """The pipeline in a thread, and what is known of it."""

    def __init__(self, model: PipelineModel, spark: Any, log: Path) -> None:
        self._model, self._spark, self._log = model, spark, log
        self._run: Run | None = None
        self._thread: threading.Thread | None = None
        self.ends: dict[str, dict[str, int]] = {}
        self.letters: dict[str, int] = {}
        self.failure: Exception | None = None

    def start(self, *, once: bool) -> None:
        """Run until ``halt``, or until all is read."""
        self._run = self._made()
        self._thread = threading.Thread(target=self._work, args=(self._run, once), name="pipeline", daemon=True)
        self._thread.start()

    def _made(self) -> Run:
        before = dict(self.letters)

        def watch(query: str, ranges: tuple[OffsetRange, ...], counts: Counts) -> None:
            ends = dict.fromkeys((piece.topic for piece in ranges), 0)
            for piece in ranges:
                ends[piece.topic] += piece.end
            self.ends[query] = ends
            self.letters[query] = before.get(query, 0) + counts.undecodable

        return Run(self._model, self._spark, self._say, watch=watch)

    @property
    def runs(self) -> bool:
        """Whether it does."""
        return self._thread is not None and self._thread.is_alive()

    def halt(self) -> None:
        """After the batch that runs."""
        if self._run is not None:
            self._run.stop()

    def join(self, seconds: float) -> None:
        """Wait for its end."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _work(self, run: Run, once: bool) -> None:
        try:
            run.run(once=once)
        except Exception as error:  # reported by the thread that watches the pipeline
            self.failure = error
            self._say("".join(traceback.format_exception(error)))

    def _say(self, text: str) -> None:
        with self._log.open("a", encoding="utf-8") as out:
            out.write(text + "\n")


class Stage:
    """The demo while it plays."""

    def __init__(self, play: Play, view: View, stack: ExitStack) -> None:
        self._play, self._view, self._stack = play, view, stack
        self._begin = time.monotonic()
        self._ticks = play.seconds * TICKS_PER_S
        self._city = City(play.seed, self._ticks, max(1, play.rate // TICKS_PER_S))
        self._halted = threading.Event()
        self._begun = False
        self._forecaster = SurgeForecaster()
        self._logger = AnalyticsLogger(play.folder / "analytics.log")
        departments: tuple[Department, ...] = (RecommendationEngine(), self._forecaster, self._logger)
        self._departments = departments

    def run(self) -> Outcome:
        """From the first process to the last count."""
        self._begins()
        self._pipeline.start(once=False)
        self._during("the city is busy", self._feeder.is_alive)
        self._check()
        self._pipeline.halt()
        self._during("the evening is over: the last batch", lambda: self._pipeline.runs)
        # Started again on its checkpoint: it reads what is left, and closes the windows that are over.
        self._pipeline.start(once=True)
        self._during("started again: what is left", lambda: self._pipeline.runs)
        deadline = time.monotonic() + CAUGHT_UP_S
        self._during("departments catch up", lambda: self._behind() and time.monotonic() < deadline)
        self._keep()
        self._show("counting")
        return judged(
            self._spark, self._lake, self._bootstrap, self._city.ledger, self._feeder.acknowledged, self._logger.counted.total()
        )

    def _begins(self) -> None:
        folder = self._play.folder
        self._show("starting a node")
        with not_for_children(), stderr_to(folder / "node.log"):
            broker = self._stack.enter_context(Broker(process=True, data=folder / "node"))
        registry = self._stack.enter_context(SchemaRegistry())
        self._bootstrap, self._lake = broker.bootstrap_servers, str(folder / "lake")
        for topic in (*TOPICS, SURGE):
            broker.create_topic(topic, PARTITIONS)
        schema_id = registry.register(SUBJECT, BOOKING)
        model = model_for(self._bootstrap, registry.url, self._lake)
        self._staff = [Staff(department, self._bootstrap) for department in self._departments]
        groups = {department.group: department.topics for department in self._departments}
        self._lags = Lags(self._bootstrap, groups, PARTITIONS)
        self._stack.callback(self._ends_consumers)
        for staff in self._staff:
            staff.start()
        self._lags.start()
        self._show("starting Spark (the first time it fetches Delta's jars)")
        self._spark = self._stack.enter_context(spark_for(model, folder))
        self._pipeline = Pipeline(model, self._spark, folder / "pipeline.log")
        self._stack.callback(self._ends_pipeline)
        self._feeder = Feeder(self._city, self._ticks, 1 / TICKS_PER_S, self._bootstrap, schema_id, self._may_go_on)
        self._stack.callback(self._ends_feeder)
        self._feeder.start()
        self._begun = True

    def _may_go_on(self, tick: int) -> bool:
        """The first ticks wait until the windows have seen the one before: then Spark knows what is late."""
        seen = self._pipeline.ends.get(SURGE_QUERY, {})
        return tick == 0 or all(seen.get(topic, 0) >= self._feeder.acknowledged[topic] for topic in ("bookings", "positions"))

    def _during(self, phase: str, goes_on: Any) -> None:
        while goes_on():
            self._check()
            self._show(phase if self._feeder.acknowledged.total() else "the first batch")
            self._halted.wait(0.25)
        self._check()

    def _check(self) -> None:
        failed = self._pipeline.failure
        if failed is not None:
            folder = self._play.folder
            raise DemoFailed(
                f"the pipeline ended: {sentence(failed)} (all of it: {folder / 'pipeline.log'}, and {folder / 'spark.log'})"
            ) from failed
        everyone: list[tuple[str, Exception | None]] = [("generator", self._feeder.failure)]
        everyone += [(staff.department.group, staff.failure) for staff in self._staff]
        for name, failure in everyone:
            if failure is not None:
                raise DemoFailed(f"the {name} ended: {failure}") from failure

    def _behind(self) -> bool:
        """Whether a department has to read something yet; the forecaster cannot be sure before it asked the node."""
        return any(self._lags.lag.get(department.group) != 0 for department in self._departments) or (
            self._logger.counted.total() < self._feeder.acknowledged.total()
        )

    def _show(self, phase: str) -> None:
        begun = self._begun
        groups: dict[str, tuple[int | None, str]] = {
            department.group: (self._lags.lag.get(department.group), department.says())
            for department in (self._departments if begun else ())
        }
        self._view.show(
            Board(
                phase,
                time.monotonic() - self._begin,
                self._city.now_ms if begun else OPENING_MS,
                dict(self._feeder.acknowledged) if begun else {},
                dict(self._pipeline.ends.get(BRONZE_QUERY, {})) if begun else {},
                dict(self._pipeline.letters) if begun else {},
                groups,
                {zone: surge for zone, (_, surge) in list(self._forecaster.latest.items())},
            )
        )

    def _keep(self) -> None:
        kept = {"ledger": self._city.ledger.to_json(), "acknowledged": dict(self._feeder.acknowledged)}
        (self._play.folder / "ledger.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")

    def _ends_consumers(self) -> None:
        self._lags.halt()
        for staff in self._staff:
            staff.halt()
        for staff in self._staff:
            staff.join(END_S)

    def _ends_pipeline(self) -> None:
        self._pipeline.halt()
        self._pipeline.join(2 * END_S)

    def _ends_feeder(self) -> None:
        self._feeder.halt()
        self._feeder.join(END_S)


def play(what: Play, view: View) -> Outcome:
    """The whole demo. DemoFailed, or ConfigError when Java or PySpark is missing."""
    with ExitStack() as stack:
        return Stage(what, view, stack).run()


def count_again(folder: Path) -> Outcome:
    """The books of a demo whose folder was kept, from its tables and its node."""
    kept = json.loads((folder / "ledger.json").read_text(encoding="utf-8"))
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(process=True, data=folder / "node"))
        model = model_for(broker.bootstrap_servers, "http://localhost:1", str(folder / "lake"))
        spark = stack.enter_context(spark_for(model, folder))
        ledger = Ledger.from_json(kept["ledger"])
        return judged(spark, str(folder / "lake"), broker.bootstrap_servers, ledger, kept["acknowledged"], None)


def judged(spark: Any, lake: str, bootstrap: str, ledger: Ledger, acknowledged: dict[str, int], logged: int | None) -> Outcome:
    """Count everything and compare the counts."""
    tables = books.count(spark, lake)
    surges = surges_of(spark, bootstrap)
    counted = [(row["zone"], row["minute"], row["bookings"], row["drivers"]) for row in surges]
    return Outcome(books.rows(ledger, tables), books.lines(ledger, acknowledged, tables, counted, logged), surges)


def surges_of(spark: Any, bootstrap: str) -> list[dict[str, Any]]:
    """All values of the topic of surges that are committed."""
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": SURGE}
    return [json.loads(row[0]) for row in spark.read.format("tidelog").options(**options).load().select("value").collect()]


def model_for(bootstrap: str, registry: str, lake: str) -> PipelineModel:
    """The pipeline of the file beside this module."""
    said = {**os.environ, "BROKERS": bootstrap, "REGISTRY": registry, "LAKE": lake}
    return read_model(parse(PIPELINE.read_text(encoding="utf-8"), PIPELINE.name, said))


@contextmanager
def spark_for(model: PipelineModel, folder: Path) -> Iterator[Any]:
    """A session; what the JVM and its workers print goes to a file, not into the view."""
    with stderr_to(folder / "spark.log"):
        spark = session_for(model)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def not_for_children() -> Iterator[None]:
    """A process that is started meanwhile does not hear Ctrl-C, which a terminal sends to all: it is stopped in its turn."""
    kept = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, kept)


@contextmanager
def stderr_to(file: Path) -> Iterator[None]:
    """Processes that are started meanwhile write their complaints there."""
    kept = os.dup(2)
    try:
        with file.open("ab") as out:
            os.dup2(out.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
