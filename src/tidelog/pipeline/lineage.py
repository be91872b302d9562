"""Where a pipeline's rows come from and go to, as OpenLineage's JobEvents (spec 2-0-2): one for each query. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from tidelog.client.settings import parse_settings
from tidelog.pipeline.flows import Flow, flows
from tidelog.pipeline.model import Format, OnError, PipelineModel, SinkSpec, Source

PRODUCER = "urn:tidelog:pipeline"
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/JobEvent"
SQL_FACET = "https://openlineage.io/spec/facets/1-0-1/SQLJobFacet.json"


def events(model: PipelineModel, now: datetime) -> list[dict[str, Any]]:
    """An event for each query. Topics of a pattern are named by the pattern: which there are, only the cluster knows."""
    host, port = parse_settings(dict(model.kafka)).bootstrap[0]
    return [_event(model, flow, f"kafka://{host}:{port}", now.astimezone(UTC).isoformat()) for flow in flows(model)]


def _event(model: PipelineModel, flow: Flow, cluster: str, when: str) -> dict[str, Any]:
    topics = [name for source in flow.sources for name in source.topics or (source.pattern,)]
    sides = [] if flow.remembers or not _can_fail(flow.sources) else [model.dead_letters]
    sides += [model.quarantine] if any(transform.expectations for transform in flow.transforms) else []
    job: dict[str, Any] = {"namespace": f"tidelog:{model.name}", "name": flow.name}
    sql = ";\n".join(transform.sql.strip() for transform in flow.transforms if transform.sql)
    if sql:
        job["facets"] = {"sql": {"_producer": PRODUCER, "_schemaURL": SQL_FACET, "query": sql}}
    return {
        "eventTime": when,
        "producer": PRODUCER,
        "schemaURL": SCHEMA,
        "job": job,
        "inputs": [{"namespace": cluster, "name": name} for name in topics],
        "outputs": [dataset(sink, cluster) for sink in (*flow.sinks, *sides) if sink is not None],
    }


def _can_fail(sources: tuple[Source, ...]) -> bool:
    return any(s.on_error is OnError.DEAD_LETTERS and {s.key.format, s.value.format} != {Format.RAW} for s in sources)


def dataset(sink: SinkSpec, cluster: str) -> dict[str, Any]:
    """A sink by OpenLineage's names: a path by its store, a topic by its cluster, anything else by its kind."""
    path = sink.option("path")
    if path:
        parts = urlsplit(path)
        if parts.scheme and parts.scheme != "file":
            return {"namespace": f"{parts.scheme}://{parts.netloc}", "name": parts.path.lstrip("/")}
        return {"namespace": "file", "name": str(PurePosixPath(parts.path or path))}
    if sink.option("topic"):
        return {"namespace": cluster, "name": sink.option("topic")}
    return {"namespace": sink.kind, "name": sink.option("table") or sink.name}
