"""Rows on the screen, for looking at a pipeline under development. It keeps nothing: a batch that runs again is shown again."""

from __future__ import annotations

from typing import Any

from tidelog.model.errors import ConfigError
from tidelog.pipeline.model import PipelineModel, SinkSpec
from tidelog.pipeline.sinks.base import BatchIdentity

DEFAULT_ROWS = "20"


def make(spec: SinkSpec, pipeline: PipelineModel) -> ConsoleSink:
    del pipeline
    return ConsoleSink(spec)


class ConsoleSink:
    """Prints the first rows of each batch."""

    remembers = False

    def __init__(self, spec: SinkSpec) -> None:
        rows = spec.option("rows", DEFAULT_ROWS)
        if not rows.isdecimal() or int(rows) == 0:
            raise ConfigError(f"The sink {spec.name} has rows: {rows!r}, and it must be a whole number from 1 on.")
        self._rows = int(rows)

    def check(self, spark: Any) -> None:
        """Nothing can be missing."""

    def write(self, batch: Any, identity: BatchIdentity) -> None:
        print(f"-- {identity.sink}, batch {identity.batch_id}")  # noqa: T201  (that is what it is for)
        batch.show(self._rows, truncate=60)

    def committed(self, identity: BatchIdentity) -> bool:
        """False: it is not known."""
        del identity
        return False

    def last_committed(self) -> BatchIdentity | None:
        """None: it is not known."""
        return None
