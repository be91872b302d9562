"""The table of sinks."""

from __future__ import annotations

from importlib.util import find_spec

from tests.unit.pipeline.samples import model_of
from tidelog.pipeline.sinks.kinds import KINDS, make_sink


def test_every_kind_has_a_module_and_knows_what_it_requires() -> None:
    for kind in KINDS.values():
        assert find_spec(kind.module) is not None
        assert set(kind.required) <= set(kind.options)


def test_a_sink_is_made_without_spark() -> None:
    model = model_of()
    sink = make_sink(model.sinks[0], model)
    assert sink.remembers and sink.last_committed() is None
