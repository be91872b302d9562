"""How far a pipeline is, from its checkpoints and the cluster, without a Spark session (which takes ten seconds to start)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tidelog.client.settings import parse_settings
from tidelog.model.errors import ConfigError
from tidelog.model.ids import LATEST_TIMESTAMP
from tidelog.pipeline.checkpoint import Checkpoint
from tidelog.pipeline.flows import checkpoint_path, flows
from tidelog.pipeline.model import PipelineModel
from tidelog.pipeline.starts import partitions_of
from tidelog.spark.cluster import Cluster


class LocalFiles:
    """Files of this machine, see ``checkpoint.Files``."""

    def names(self, folder: str) -> list[str]:
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def read(self, path: str) -> str | None:
        return Path(path).read_text() if os.path.isfile(path) else None

    def write(self, path: str, text: str) -> None:
        fresh = Path(path + ".new")
        fresh.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text)
        fresh.replace(path)


def rows_of(model: PipelineModel, cluster: Cluster | None = None) -> list[dict[str, Any]]:
    """A row for each partition of each query."""
    if "://" in model.checkpoint and not model.checkpoint.startswith("file://"):
        raise ConfigError(f"The checkpoint {model.checkpoint} is not on this machine: use a lag tool on group {model.group}.")
    settings = parse_settings(dict(model.kafka))
    asked = Cluster(settings) if cluster is None else cluster
    found: list[dict[str, Any]] = []
    for flow in flows(model):
        checkpoint = Checkpoint(LocalFiles(), checkpoint_path(model, flow).removeprefix("file://"))
        done = checkpoint.committed()
        start = checkpoint.start()
        offset = checkpoint.end_of(done) if done >= 0 else (start.offset if start is not None else None)
        for source in flow.sources:
            partitions, _ = partitions_of(asked, source)
            latest = asked.offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP), settings.isolation_level)
            for at in partitions:
                position = offset.positions.get(at) if offset is not None else None
                found.append(
                    {
                        "query": flow.name,
                        "batch": (start.first_batch if start else 0) + done if done >= 0 else "-",
                        "topic": at.topic,
                        "partition": at.partition,
                        "offset": position if position is not None else "-",
                        "end": latest[at],
                        "lag": latest[at] - position if position is not None else "-",
                    }
                )
    return found
