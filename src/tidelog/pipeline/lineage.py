"""Where a pipeline's rows come from and go to, as OpenLineage events (spec 2-0-2) for each query: of jobs and of runs. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import tidelog
from tidelog.client.settings import parse_settings
from tidelog.pipeline.flows import Flow, flows
from tidelog.pipeline.model import Format, Mode, OnError, PipelineModel, SinkSpec, Source

PRODUCER = "urn:tidelog:pipeline"
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/"
FACETS = "https://openlineage.io/spec/facets/"
_DATABASE = re.compile(
    r"(\w+)://(?:[^/?;,@]*@)?((?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d+)?)(?=[,/?;]|$)"
    r"[^/?;]*(?:/([\w.-]+))?(?:.*[;?&]databaseName=([\w.-]+))?",
    re.ASCII | re.IGNORECASE,
)
"""Scheme, first host and port, database. The rest of a database's URL stays out of events: passwords are in many of them."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a run so far: topics, records read and records not decodable since the start, and by source the columns
    that its records become."""

    topics: tuple[str, ...] = ()
    records: int = 0
    undecodable: int = 0
    columns: dict[str, dict[str, str]] = field(default_factory=dict)


def events(model: PipelineModel, now: datetime) -> list[dict[str, Any]]:
    """A JobEvent for each query. Topics of a pattern appear as the pattern: only the cluster knows which they are."""
    return [_event(model, flow, "JobEvent", now, Told(), "") for flow in flows(model)]


def run_event(
    model: PipelineModel,
    flow: Flow,
    kind: str,
    run_id: str,
    now: datetime,
    told: Told,
    *,
    namespace: str = "",
    engine_version: str = "",
    message: str = "",
) -> dict[str, Any]:
    """A RunEvent. ``kind``: START, RUNNING, COMPLETE, ABORT or FAIL; ``message``: the error of a failed query."""
    facets = {}
    if engine_version:
        engine = {"name": "spark", "version": engine_version, "openlineageAdapterVersion": tidelog.__version__}
        facets["processing_engine"] = _facet("1-1-1/ProcessingEngineRunFacet", engine)
    if message:
        facets["errorMessage"] = _facet("1-0-0/ErrorMessageRunFacet", {"message": message, "programmingLanguage": "PYTHON"})
    event = _event(model, flow, "RunEvent", now, told, namespace)
    job_type = {"processingType": "STREAMING", "integration": "TIDELOG", "jobType": "QUERY"}
    event["job"].setdefault("facets", {})["jobType"] = _facet("2-0-3/JobTypeJobFacet", job_type)
    if kind != "START":
        _count(model, flow, told, event)
    return {"eventType": kind, "run": {"runId": run_id, "facets": facets}} | event


def _facet(what: str, content: dict[str, Any]) -> dict[str, Any]:
    name = what.rpartition("/")[2]
    return {"_producer": PRODUCER, "_schemaURL": f"{FACETS}{what}.json#/$defs/{name}", **content}


def cluster_of(model: PipelineModel) -> str:
    """The namespace of topics: OpenLineage names a cluster by its first bootstrap server."""
    host, port = parse_settings(dict(model.kafka)).bootstrap[0]
    return f"kafka://{host}:{port}"


def _event(model: PipelineModel, flow: Flow, kind: str, now: datetime, told: Told, namespace: str) -> dict[str, Any]:
    cluster = cluster_of(model)
    job: dict[str, Any] = {"namespace": f"tidelog:{model.name}", "name": flow.name}
    if namespace:  # A topic of another cluster, with other jobs.
        job = {"namespace": namespace, "name": f"{model.name}.{flow.name}"}
    sql = ";\n".join(transform.sql.strip() for transform in flow.transforms if transform.sql)
    if sql:
        job["facets"] = {"sql": _facet("1-0-1/SQLJobFacet", {"query": sql})}
    return {
        "eventTime": now.astimezone(UTC).isoformat(),
        "producer": PRODUCER,
        "schemaURL": SCHEMA + kind,
        "job": job,
        "inputs": [
            _input(cluster, name, told.columns.get(source.name, {})) for source in flow.sources for name in _topics(source, told)
        ],
        "outputs": [_output(sink, cluster, flow, told) for sink in _outputs(model, flow)],
    }


def _topics(source: Source, told: Told) -> tuple[str, ...]:
    return source.topics or told.topics or (source.pattern,)


def _outputs(model: PipelineModel, flow: Flow) -> list[SinkSpec]:
    sides = [] if flow.remembers or not _can_fail(flow.sources) else [model.dead_letters]
    sides += [model.quarantine] if any(transform.expectations for transform in flow.transforms) else []
    return [sink for sink in (*flow.sinks, *sides) if sink is not None]


def _input(cluster: str, name: str, columns: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"namespace": cluster, "name": name}
    if columns:
        found["facets"] = {"schema": _schema(columns)}
    return found


def _schema(columns: dict[str, str]) -> dict[str, Any]:
    return _facet("1-1-1/SchemaDatasetFacet", {"fields": [{"name": name, "type": kind} for name, kind in columns.items()]})


def _output(sink: SinkSpec, cluster: str, flow: Flow, told: Told) -> dict[str, Any]:
    """The columns of a sink that takes a source unchanged; those that SQL and functions make, only Spark knows."""
    found = dataset(sink, cluster)
    source = next((source for source in flow.sources if source.name == sink.input), None)
    columns = told.columns.get(sink.input, {}) if source is not None else {}
    if source is not None and columns:
        same = {"type": "DIRECT", "subtype": "IDENTITY", "description": "", "masking": False}
        origin = [{"namespace": cluster, "name": topic, "transformations": [same]} for topic in _topics(source, told)]
        fields = {name: {"inputFields": [{**each, "field": name} for each in origin]} for name in columns}
        lineage = _facet("1-2-0/ColumnLineageDatasetFacet", {"fields": fields})
        found["facets"] = {"schema": _schema(columns), "columnLineage": lineage}
    return found


def _count(model: PipelineModel, flow: Flow, told: Told, event: dict[str, Any]) -> None:
    """Rows read, if all are of one topic, and rows written by sinks that take every good record of the source."""
    if len(event["inputs"]) == 1:
        read = _facet("1-0-0/InputStatisticsInputDatasetFacet", {"rowCount": told.records})
        event["inputs"][0]["inputFacets"] = {"inputStatistics": read}
    names = {source.name for source in flow.sources}
    for sink, found in zip(_outputs(model, flow), event["outputs"], strict=True):
        if sink is model.dead_letters:
            rows = told.undecodable
        elif sink.input in names and sink.mode is Mode.APPEND:
            rows = told.records - told.undecodable
        else:
            continue
        found["outputFacets"] = {"outputStatistics": _facet("1-0-2/OutputStatisticsOutputDatasetFacet", {"rowCount": rows})}


def _can_fail(sources: tuple[Source, ...]) -> bool:
    return any(s.on_error is OnError.DEAD_LETTERS and {s.key.format, s.value.format} != {Format.RAW} for s in sources)


def dataset(sink: SinkSpec, cluster: str) -> dict[str, Any]:
    """A sink in OpenLineage's names: a path by its store, a topic by its cluster, a table by its database, any other by its
    kind."""
    path = sink.option("path")
    if path:
        parts = urlsplit(path)
        if parts.scheme and parts.scheme != "file":
            return {"namespace": f"{parts.scheme}://{parts.netloc}", "name": parts.path.lstrip("/")}
        return {"namespace": "file", "name": str(PurePosixPath(parts.path or path))}
    if sink.option("topic"):
        return {"namespace": cluster, "name": sink.option("topic")}
    url = _DATABASE.match(sink.option("url").removeprefix("jdbc:"))
    if url is not None:
        scheme, where, after_slash, said = url.groups()
        database = (after_slash or said or "") if sink.kind == "jdbc" else ""
        name = ".".join(filter(None, (database, sink.option("table"))))
        return {"namespace": f"{'hbase' if sink.kind == 'hbase' else scheme.lower()}://{where.lower()}", "name": name}
    return {"namespace": sink.kind, "name": sink.option("table") or sink.name}
