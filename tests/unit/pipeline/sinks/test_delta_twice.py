"""A Delta sink whose table another writer creates at the same time; with a real table: tests/pipeline/test_delta.py."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.pipeline.model import SinkSpec
from tidelog.pipeline.sinks.base import BatchIdentity
from tidelog.pipeline.sinks.delta import DeltaSink

BATCH = BatchIdentity("p", "dead_letters", 0, ())


class Contended(DeltaSink):
    """Its first appends fail as told."""

    failures: list[str]
    appended = 0

    def _append(self, batch: Any, identity: BatchIdentity) -> None:
        if self.failures:
            raise RuntimeError(self.failures.pop(0))
        self.appended += 1


def sink(*failures: str) -> Contended:
    made = Contended(SinkSpec("dead_letters", "delta", options=(("path", "p"),)), "p")
    made.failures = list(failures)
    return made


def test_a_table_that_another_source_made_meanwhile_is_written_then() -> None:
    slower = sink("[DELTA_PROTOCOL_CHANGED] ProtocolChangedException: multiple writers are writing to an empty directory")
    slower.write(None, BATCH)
    assert slower.appended == 1
    assert slower.last_committed() == BATCH


def test_any_other_failure_ends_the_batch_at_once() -> None:
    broken = sink("a disk is full", "never seen")
    with pytest.raises(RuntimeError, match="a disk is full"):
        broken.write(None, BATCH)
    assert broken.failures == ["never seen"]
    assert broken.last_committed() is None
