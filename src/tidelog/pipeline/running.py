"""A run of a whole pipeline: all its queries, a line after each batch, offsets for lag tools, metrics for Prometheus, a clean
end.

A signal lets the running batch end first. That saves work, no more: a batch that is cut off runs again with the same offsets and
lands once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from tidelog.client.settings import parse_settings
from tidelog.model.ids import TopicPartition
from tidelog.pipeline import lineage_sending
from tidelog.pipeline.exporting import Exporter
from tidelog.pipeline.failures import PipelineFailure, sentence
from tidelog.pipeline.flows import flows
from tidelog.pipeline.group_offsets import GroupOffsets, least
from tidelog.pipeline.lineage_run import RunLineage
from tidelog.pipeline.model import PipelineModel
from tidelog.pipeline.progress import Counts, line, progress_of
from tidelog.pipeline.queries import Query, query_of
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.server.signals import ending_signals
from tidelog.spark import limits
from tidelog.spark.cluster import Cluster

POLL_S = 0.2
LAST_BATCH_S = 60.0
BEGIN_S = 60.0
BEGIN_POLL_S = 0.05
POLLS_PER_LOOK = 4
BEGIN_TRIALS = 12
NO_WORKER = "Python worker failed to connect back"
Watch = Callable[[str, tuple[OffsetRange, ...], Counts], None]
"""Called with a query's name, the offsets of its last batch, and its counts since the start."""


@dataclass(slots=True)
class Summary:
    """The result of a run."""

    records: int = 0
    undecodable: int = 0
    broken: int = 0
    stopped: bool = False


class Run:
    """One run of one pipeline in one process."""

    def __init__(
        self,
        model: PipelineModel,
        spark: Any,
        say: Callable[[str], None],
        metrics_port: int | None = None,
        watch: Watch | None = None,
    ) -> None:
        """``say`` gets a line for each batch; ``watch`` gets the batch's offsets and counts, once it is in all sinks of its
        query."""
        self._model = model
        self._say = say
        self._watch = watch
        self._queries = [query_of(model, flow, spark) for flow in flows(model)]
        where = lineage_sending.settings_of(model.lineage, os.environ)
        self._sender = None if where is None else lineage_sending.Sender(where, say)
        self._lineage = None
        if where is not None and self._sender is not None:
            self._lineage = RunLineage(model, self._sender.send, where.namespace, str(getattr(spark, "version", "")))
        self._exporter = Exporter(model.name)
        if metrics_port is not None:
            self._exporter.serve(metrics_port)
        # A connection of its own: those of the queries belong to the threads that plan batches.
        self._group = GroupOffsets(Cluster(parse_settings(dict(model.kafka))), model.group) if model.group else None
        self._told: dict[str, tuple[OffsetRange, ...]] = {}
        self._shown: dict[str, int] = {}
        self._reported: dict[str, str] = {}
        self._ends: dict[str, dict[TopicPartition, int]] = {}
        self._stopping = False

    def stop(self) -> None:
        """Ask the run to end. May be called from a signal handler."""
        self._stopping = True

    def run(self, *, once: bool, from_here: frozenset[str] = frozenset()) -> Summary:
        """Run until everything available is read (``once``), or until ``stop``. PipelineFailure when a query cannot continue."""
        if self._lineage is None or self._sender is None:
            return self._run(once, from_here)
        self._lineage.started()
        try:
            summary = self._run(once, from_here)
            self._lineage.completed()
            return summary
        except BaseException as error:
            started = [query for query in self._queries if query.query is not None]
            failed = frozenset(query.flow.name for query in started if query.query.exception() is not None)
            self._lineage.failed(failed, sentence(error))
            raise
        finally:
            self._sender.close()

    def _run(self, once: bool, from_here: frozenset[str]) -> Summary:
        known = {sink for query in self._queries for sink in query.writer.sinks}
        for name in sorted(from_here - known):
            raise PipelineFailure(f"--from-here {name}: there is no such sink; there are {', '.join(sorted(known))}.")
        for query in self._queries:
            query.prepare(from_here)
            if self._lineage is not None:
                self._lineage.knows(query.flow.name, query.columns())
        again = once and limits.ONE_BATCH_OF_AVAILABLE_NOW  # Queries end after a batch, and there may be more records.
        goal = [query.ends() for query in self._queries]
        self._ends = {query.flow.name: ends for query, ends in zip(self._queries, goal, strict=True)}
        try:
            while True:
                before = [query.done for query in self._queries]
                if not self._to_the_end(once=once) or not again or not self._has_more(before, goal):
                    break
        finally:
            self._end(LAST_BATCH_S if self._stopping else 0)
            self._look()
        for query in self._queries:
            failed = query.query.exception() if query.query is not None else None
            if failed is not None:
                raise PipelineFailure(sentence(failed)) from failed
        return self._summary()

    def _to_the_end(self, *, once: bool) -> bool:
        """Run the queries until they end, one fails, or ``stop`` is called. Returns whether they ended by themselves."""
        for query in self._queries:
            begin(query, once=once, look=self._look, say=self._say)
            if self._stopping or self._failed():
                break
        while any(query.query is not None and query.query.isActive for query in self._queries):
            self._look()
            if self._stopping:
                self._end()
            if self._failed():
                break
            time.sleep(POLL_S)
        self._look()
        return not self._stopping and not self._failed()

    def _has_more(self, before: list[tuple[OffsetRange, ...]], goal: list[dict[TopicPartition, int]]) -> bool:
        """Whether a query that read something lacks records that were there at the start. Records that came later do not
        count: there may be no end of them."""
        for query, had, ends in zip(self._queries, before, goal, strict=True):
            done = {TopicPartition(piece.topic, piece.partition): piece.end for piece in query.done}
            if query.done != had and any(done.get(at, 0) < end for at, end in ends.items()):
                return True
        return False

    def _failed(self) -> bool:
        return any(query.query is not None and query.query.exception() is not None for query in self._queries)

    def _end(self, patience_s: float = LAST_BATCH_S) -> None:
        """Stop the queries, each after its present batch if that ends in time."""
        deadline = time.monotonic() + patience_s
        for query in self._queries:
            found = query.query
            if found is None or not found.isActive:
                continue
            while found.isActive and not query.resting() and time.monotonic() < deadline:
                time.sleep(POLL_S)
            found.stop()

    def _look(self) -> None:
        for query in self._queries:
            if query.query is None:
                continue
            last = query.query.lastProgress
            # The whole list is expensive to move out of the JVM five times a second.
            if last is not None and last.timestamp != self._reported.get(query.flow.name):
                self._reported[query.flow.name] = last.timestamp
                for found in query.query.recentProgress:
                    self._show(query, json.loads(found.json))
            done = query.done
            if done != self._told.get(query.flow.name, ()):
                self._tell(query, done)

    def _tell(self, query: Query, done: tuple[OffsetRange, ...]) -> None:
        """Report the batch that a query has written."""
        self._told[query.flow.name] = done
        if self._lineage is not None:
            self._lineage.wrote(query.flow.name, done, query.writer.counts)
        if self._watch is not None:
            self._watch(query.flow.name, done, query.writer.counts)
        problem = self._group.commit(least(self._told.values())) if self._group is not None else ""
        if problem:
            self._say(f"{query.flow.name}: offsets were not committed to group {self._model.group}: {problem}")

    def _show(self, query: Query, found: dict[str, Any]) -> None:
        progress = progress_of(query.flow.name, found, self._ends.get(query.flow.name))
        # While nothing arrives, Spark reports the next, empty batch again and again.
        if progress.batch_id <= self._shown.get(progress.flow, -1) or not progress.records:
            return
        self._shown[progress.flow] = progress.batch_id
        counts = query.writer.counts
        self._exporter.update(progress, counts)
        self._say(line(progress, *counts.taken(progress.batch_id)))

    def _summary(self) -> Summary:
        counts = [query.writer.counts for query in self._queries]
        return Summary(
            sum(count.records for count in counts),
            sum(count.undecodable for count in counts),
            sum(sum(count.broken.values()) for count in counts),
            self._stopping,
        )


def begin(query: Query, *, once: bool, look: Callable[[], None], say: Callable[[str], None]) -> None:
    """Start a query and wait until its source answers. ``look`` is called meanwhile: queries that began before are at work.

    Spark gives the Python process of a source ten seconds to start, and has no setting for that. Several that start at once on
    few cores need longer, so queries begin one after another. One whose process was too slow begins again, as it has read nothing
    yet, and ``say`` gets a line about it.
    """
    for trial in range(1, BEGIN_TRIALS + 1):
        query.start(once=once)
        deadline = time.monotonic() + BEGIN_S
        polls = 0
        while query.query.isActive and query.query.status["message"].startswith("Initializing") and time.monotonic() < deadline:
            if polls % POLLS_PER_LOOK == 0:
                look()
            polls += 1
            time.sleep(BEGIN_POLL_S)
        failed = None if query.query.isActive else query.query.exception()
        if failed is None or NO_WORKER not in str(failed):
            return
        name = query.flow.name
        say(f"{name}: Spark's Python process did not start within 10 s: too little CPU (start {trial} of {BEGIN_TRIALS})")


def stop_on_signals(run: Run) -> None:
    """SIGINT, SIGTERM and SIGHUP end the run cleanly; a second one ends the process at once."""

    def handler(number: int, frame: FrameType | None) -> None:
        del frame
        run.stop()
        print("stopping after this batch ...", file=sys.stderr, flush=True)  # noqa: T201
        signal.signal(number, signal.SIG_DFL)

    for number in ending_signals():
        signal.signal(number, handler)
