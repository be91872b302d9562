"""Records of a batch where the pipeline does not say how many."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from tidelog.pipeline.batch_sizes import LEAST, fitting, records_per_batch
from tidelog.pipeline.flows import Flow
from tidelog.pipeline.model import Engine, PipelineModel, Source

SOURCE = Source("s", ("t",))
FLOW = Flow("s", (SOURCE,), (), (), False)
MODEL = PipelineModel("p", (), (SOURCE,), ())


def session(*memories: int) -> Any:
    """A Spark session whose processes have so much memory, each."""
    status = {f"host:{number}": SimpleNamespace(_1=lambda size=size: size) for number, size in enumerate(memories)}
    converters = SimpleNamespace(CollectionConverters=SimpleNamespace(asJava=lambda found: found))
    jvm = SimpleNamespace(scala=SimpleNamespace(jdk=SimpleNamespace(javaapi=converters)))
    context = SimpleNamespace(getExecutorMemoryStatus=lambda: status)
    return SimpleNamespace(_jvm=jvm, _jsc=SimpleNamespace(sc=lambda: context))


def test_the_memory_of_all_processes_says_how_many() -> None:
    assert records_per_batch(MODEL, FLOW, SOURCE, session(1 << 30, 1 << 30)) == 2 << 20
    assert fitting(0) == LEAST


def test_what_the_pipeline_says_holds() -> None:
    source = replace(SOURCE, max_records=7)
    assert records_per_batch(MODEL, FLOW, source, session()) == 7


def test_state_and_other_engines_have_no_limit() -> None:
    assert records_per_batch(MODEL, replace(FLOW, remembers=True), SOURCE, session(1 << 40)) is None
    assert records_per_batch(replace(MODEL, engine=Engine.BULK), FLOW, SOURCE, session(1 << 40)) is None
