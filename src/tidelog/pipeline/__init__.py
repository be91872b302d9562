"""Pipelines: topics, decoded and cleaned, into tables, each record once.

A pipeline is one frozen model (``model``), spelled in YAML (``load``) or in Python (``Pipeline``); ``session_for`` makes the
Spark session that it needs, ``Run`` runs it. ``ingest`` lands topics in a table of files unchanged. All names below are loaded
when they are first used, so that models can be checked where Spark is not installed. Since 0.1. Guides: docs/guide/pipeline.md
and docs/guide/lake.md; design: docs/adr/0015-pipelines.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelog.pipeline.bulk.ingest import ingest
    from tidelog.pipeline.decorators import Pipeline
    from tidelog.pipeline.lake.compaction import compact, expire
    from tidelog.pipeline.lake.delta import DeltaFiles
    from tidelog.pipeline.lake.iceberg import IcebergFiles
    from tidelog.pipeline.lake.manifests import ManifestTable
    from tidelog.pipeline.lake.reading import read_table
    from tidelog.pipeline.model import PipelineModel
    from tidelog.pipeline.running import Run
    from tidelog.pipeline.session import session_for
    from tidelog.pipeline.yaml_text import load

__all__ = [
    "DeltaFiles",
    "IcebergFiles",
    "ManifestTable",
    "Pipeline",
    "PipelineModel",
    "Run",
    "compact",
    "expire",
    "ingest",
    "load",
    "read_table",
    "session_for",
]

_HOMES = {
    "DeltaFiles": "lake.delta",
    "IcebergFiles": "lake.iceberg",
    "ManifestTable": "lake.manifests",
    "Pipeline": "decorators",
    "PipelineModel": "model",
    "Run": "running",
    "compact": "lake.compaction",
    "expire": "lake.compaction",
    "ingest": "bulk.ingest",
    "load": "yaml_text",
    "read_table": "lake.reading",
    "session_for": "session",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: most of them import Spark or pyarrow."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
