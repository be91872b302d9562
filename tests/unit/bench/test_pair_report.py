"""What becomes of samples: verdicts, the table, the file; and the order in which they are taken."""

from __future__ import annotations

import json

import pytest

from bench.pair import __main__ as program
from bench.pair.counting import parse_total
from bench.pair.report import limits_and_noise, remarks, table, to_json, verdict
from bench.pair.rounds import Side, turned
from bench.pair.sampling import Sample
from bench.pair.statistics import Outcome
from bench.pair.voids import Noise

QUIET = Noise(0.0, 0.0)


def sample(cost: float, generator: float = 0.1) -> Sample:
    """One of a hundred requests, a third of whose time is user time."""
    return Sample(cost, 100, user=1.0, system=2.0, switches=50, seconds=1.0, generator=generator, noise=QUIET)


def rounds(*costs: tuple[float, float]) -> list[dict[str, dict[str, Sample]]]:
    """One row, by (old, new) for each round."""
    return [{"produce": {"old": sample(old), "new": sample(new, 0.7), "limit": sample(10.0)}} for old, new in costs]


def test_a_row_is_judged_by_its_pairs_not_by_its_medians() -> None:
    drifting = rounds(*((10.0 * each, 10.2 * each) for each in range(1, 10)))
    found = verdict("produce", "request", drifting)
    assert found.outcome is Outcome.PASS
    assert found.ratio.median == pytest.approx(1.02)
    assert found.costs == {"old": 50.0, "new": pytest.approx(51.0), "limit": 10.0}


def test_the_table_has_user_and_system_time_and_the_multiple_of_the_limit() -> None:
    found = verdict("produce", "request", rounds(*[(30.0, 33.0)] * 7))
    line = table([found], count=False).splitlines()[-1]
    assert line == (
        "| produce | request | 10 (3.33 + 6.67) | 30 (10 + 20) | 33 (11 + 22) | 0.5 | 0.5 | 3.3 | 1.100 (1.100-1.100) | fail |"
    )
    assert list(remarks([found])) == ["produce: the generator used 0.70 of a core beside new"]


def test_the_file_has_every_sample_and_reads_back() -> None:
    some = rounds((30.0, 30.0), (31.0, 31.0))
    found = json.loads(json.dumps(to_json([verdict("produce", "request", some)], some, {"old": "a"}, ["noise"])))
    assert (found["old"], found["void"], len(found["rounds"])) == ("a", ["noise"], 2)
    assert found["rounds"][1]["produce"]["new"]["cost"] == 31.0
    assert (found["rows"][0]["verdict"], found["rows"][0]["coverage"]) == ("pass", 0.5)


def test_limits_and_noise_are_taken_of_every_round() -> None:
    limits, noisy = limits_and_noise(rounds((1.0, 1.0), (1.0, 1.0)))
    assert limits == {"produce": [10.0, 10.0]}
    assert len(noisy["produce"]) == 6


def test_each_side_is_in_each_place_equally_often() -> None:
    sides = [Side(name, None) for name in ("old", "new", "limit")]
    orders = [[side.name for side in turned(sides, by)] for by in range(6)]
    assert len({tuple(order) for order in orders}) == 6
    for place in range(3):
        assert sorted(order[place] for order in orders) == ["limit", "limit", "new", "new", "old", "old"]


def test_callgrinds_totals_are_found() -> None:
    assert parse_total("version: 1\nevents: Ir\nsummary: 42\n\nfn=x\n") == 42
    assert parse_total("fn=x\ntotals: 43\n") == 43
    with pytest.raises(ValueError, match="no total"):
        parse_total("events: Ir\n")


def test_too_few_rounds_of_time_are_refused() -> None:
    assert program.arguments(["a", "b"]).rounds == 9
    assert program.arguments(["a", "b", "--count", "instructions"]).rounds == 3
    assert program.arguments(["a", "b", "--rounds", "1", "--scale", "0.1"]).rounds == 1
    with pytest.raises(SystemExit):
        program.arguments(["a", "b", "--rounds", "6"])


def test_rows_are_chosen_by_name() -> None:
    assert [row.name for row in program.selected("^fetch")] == ["fetch, catch-up", "fetch, tail"]
