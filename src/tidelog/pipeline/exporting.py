"""A pipeline's metrics for Prometheus, on a port of their own if the user asks for one."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge, start_http_server

from tidelog.pipeline.progress import Counts, Progress

LABELS = ("pipeline", "query")


class Exporter:
    """Gauges, set after each batch. Counts begin at 0 with the process, as Prometheus expects of counters."""

    def __init__(self, pipeline: str) -> None:
        self.registry = CollectorRegistry()
        self._pipeline = pipeline
        self._batch = self._gauge("batch", "Number of the last batch.")
        self._records = self._gauge("records_total", "Records read since the start.")
        self._bad = self._gauge("undecodable_total", "Records that could not be decoded since the start.")
        self._rate = self._gauge("records_per_second", "Records of the last batch by its seconds.")
        self._lag = self._gauge("lag_records", "Records not read yet.", "topic")
        self._broken = self._gauge("expectation_failures_total", "Rows that broke a rule since the start.", "transform", "rule")

    def serve(self, port: int) -> None:
        """Serve on all addresses of this machine. OSError when the port is taken."""
        start_http_server(port, registry=self.registry)

    def update(self, progress: Progress, counts: Counts) -> None:
        """Set the gauges after a batch."""
        at = (self._pipeline, progress.flow)
        self._batch.labels(*at).set(progress.batch_id)
        self._records.labels(*at).set(counts.records)
        self._bad.labels(*at).set(counts.undecodable)
        self._rate.labels(*at).set(progress.rate)
        for topic, lag in progress.lag.items():
            self._lag.labels(*at, topic).set(lag)
        for (transform, rule), count in counts.broken.items():
            self._broken.labels(*at, transform, rule).set(count)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"tidelog_pipeline_{name}", text, (*LABELS, *labels), registry=self.registry)
