"""What Prometheus sees."""

from __future__ import annotations

from collections import Counter

from tidelog.pipeline.exporting import Exporter
from tidelog.pipeline.progress import Counts, Progress


def test_each_number_has_its_labels() -> None:
    exporter = Exporter("p")
    exporter.update(Progress("q", 3, 10, 5.0, {"t": 7}), Counts(100, 2, Counter({("silver", "positive"): 4})))
    value = exporter.registry.get_sample_value
    at = {"pipeline": "p", "query": "q"}
    assert value("tidelog_pipeline_batch", at) == 3
    assert value("tidelog_pipeline_records_total", at) == 100
    assert value("tidelog_pipeline_undecodable_total", at) == 2
    assert value("tidelog_pipeline_lag_records", at | {"topic": "t"}) == 7
    assert value("tidelog_pipeline_expectation_failures_total", at | {"transform": "silver", "rule": "positive"}) == 4
