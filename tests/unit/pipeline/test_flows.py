"""Which queries a pipeline is."""

from __future__ import annotations

import pytest

from tests.unit.pipeline.samples import RIDES, model_of
from tidelog.model.errors import ConfigError
from tidelog.pipeline.flows import flows

WINDOW = """\
  surge:
    from: silver
    stateful: true
    sql: SELECT 1
"""
SURGE = "  surge: {type: delta, from: surge, path: lake/surge}\n"


def test_all_sinks_of_a_source_are_one_query() -> None:
    (flow,) = flows(model_of())
    assert (flow.name, [sink.name for sink in flow.sinks], flow.remembers) == ("rides", ["bronze", "silver"], False)
    assert [transform.name for transform in flow.transforms] == ["silver"]


def test_a_sink_behind_a_window_is_a_query_of_its_own() -> None:
    text = RIDES.replace("sinks:\n", WINDOW + "sinks:\n" + SURGE)
    surge, rides = flows(model_of(text))
    assert (surge.name, surge.remembers, [t.name for t in surge.transforms]) == ("surge", True, ["silver", "surge"])
    assert (rides.name, rides.remembers) == ("rides", False)


def test_a_query_of_a_sink_is_not_called_like_that_of_a_source() -> None:
    text = RIDES.replace("sinks:\n", WINDOW + "sinks:\n" + SURGE.replace("surge:", "rides:"))
    with pytest.raises(ConfigError, match=r"The sink rides takes rows of a window.* give one of them another name"):
        flows(model_of(text))


def test_rows_that_break_a_rule_on_their_way_into_a_window_need_a_query_that_keeps_them() -> None:
    text = RIDES[: RIDES.index("  bronze")] + SURGE + RIDES[RIDES.index("dead_letters") :]
    text = text.replace("sinks:\n", WINDOW + "sinks:\n")
    with pytest.raises(ConfigError, match="The rule positive of transform silver says quarantine"):
        flows(model_of(text))


def test_dead_letters_of_a_source_whose_sinks_are_all_behind_windows_are_written() -> None:
    text = RIDES[: RIDES.index("  bronze")] + SURGE + RIDES[RIDES.index("dead_letters") :]
    text = text.replace("sinks:\n", WINDOW + "sinks:\n").replace("otherwise: quarantine", "otherwise: drop")
    found = flows(model_of(text))
    assert [(flow.name, len(flow.sinks)) for flow in found] == [("surge", 1), ("rides", 0)]


def test_a_batch_of_two_sources_is_refused() -> None:
    other = "  drivers:\n    topics: [drivers]\ntransforms:\n"
    text = RIDES.replace("transforms:\n", other).replace("from: rides\n    sql", "from: [rides, drivers]\n    sql")
    with pytest.raises(ConfigError, match=r"takes rows of the sources rides and drivers.*stateful: true"):
        flows(model_of(text))
