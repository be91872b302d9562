"""Pipelines that tests begin with."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.pipeline.model import PipelineModel
from tidelog.pipeline.reading import read_model
from tidelog.pipeline.yaml_text import parse

RIDES = """\
pipeline: rides
kafka:
  bootstrap.servers: localhost:9092
sources:
  rides:
    topics: [rides]
    value: {format: json, schema: "id string not null, fare double"}
transforms:
  silver:
    from: rides
    sql: SELECT id, fare FROM rides
    expect:
      positive: {check: fare >= 0, otherwise: quarantine}
sinks:
  bronze: {type: delta, from: rides, path: lake/bronze}
  silver: {type: delta, from: silver, path: lake/silver, mode: upsert, keys: [id], order_by: fare}
dead_letters: {type: delta, path: lake/dead}
quarantine: {type: delta, path: lake/quarantine}
"""


def model_of(text: str = RIDES, environment: Mapping[str, str] | None = None) -> PipelineModel:
    """The model of a YAML text."""
    return read_model(parse(text, "rides.yaml", environment or {}))
