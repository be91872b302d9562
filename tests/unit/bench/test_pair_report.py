"""What becomes of samples: verdicts, the table, the file; and the order in which they are taken."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from bench.pair import __main__ as program
from bench.pair.counting import parse_total
from bench.pair.report import counted_rounds, ratio, remarks, table, to_json, verdict
from bench.pair.rounds import Side, in_turns, turned
from bench.pair.sampling import Sample, together
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
    assert found.counted == 9


def test_the_table_has_user_and_system_time_and_the_multiple_of_the_limit() -> None:
    found = verdict("produce", "request", rounds(*[(30.0, 33.0)] * 7))
    line = table([found], count=False).splitlines()[-1]
    assert line == (
        "| produce | request | 10 (3.33 + 6.67) | 30 (10 + 20) | 33 (11 + 22) | 0.5 | 0.5 | 3.3 "
        "| 1.100 (1.100-1.100) | fail | 7 |"
    )
    assert list(remarks([found])) == ["produce: the generator used 0.70 of a core beside new"]


def test_the_file_has_every_sample_and_reads_back() -> None:
    some = rounds((30.0, 30.0), (31.0, 31.0))
    found = json.loads(json.dumps(to_json([verdict("produce", "request", some)], some, {"old": "a"}, ["noise"])))
    assert (found["old"], found["void"], len(found["rounds"])) == ("a", ["noise"], 2)
    assert found["rounds"][1]["produce"]["new"]["cost"] == 31.0
    assert (found["rows"][0]["verdict"], found["rows"][0]["coverage"]) == ("pass", 0.5)


def test_rounds_that_do_not_count_are_left_out_of_the_verdict() -> None:
    some = rounds(*[(30.0, 30.0)] * 7, (30.0, 60.0), (30.0, 90.0))
    some[7]["produce"]["limit"] = sample(20.0)
    some[8]["produce"]["old"] = replace(sample(30.0), noise=Noise(0.3, 0.0))
    assert counted_rounds("produce", some) == list(range(7))
    found = verdict("produce", "request", some)
    assert (found.ratio.high, found.counted) == (1.0, 7)


def test_a_round_with_slices_is_judged_by_the_pairs_of_slices() -> None:
    old = together([sample(each) for each in (10.0, 20.0, 30.0)])
    new = together([sample(each) for each in (11.0, 22.0, 90.0)])
    assert ratio(old, new) == pytest.approx(1.1)
    assert (new.cost, new.amount, new.user, new.seconds, new.noise) == (22.0, 300, 3.0, 3.0, QUIET)
    assert together([replace(sample(1.0), noise=Noise(0.3, 0.0)), sample(1.0), sample(1.0)]).noise == Noise(
        pytest.approx(0.1), 0.0
    )


def test_the_sides_take_turns_slice_by_slice() -> None:
    taken = []

    def take(side: Side) -> Sample:
        taken.append(side.name)
        return sample(float(len(taken)))

    found = in_turns([Side(name, None) for name in ("old", "new")], 3, 0, take)
    assert [sorted(taken[at : at + 2]) for at in (0, 2, 4)] == [["new", "old"]] * 3
    assert [len(each) for each in found.values()] == [3, 3]


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
    assert program.arguments(["a", "b"]).rounds == 21
    assert program.arguments(["a", "b"]).core == max(os.sched_getaffinity(0)), "all on one core"
    assert program.arguments(["a", "b", "--count", "instructions"]).rounds == 3
    assert program.arguments(["a", "b", "--rounds", "1", "--scale", "0.1"]).rounds == 1
    with pytest.raises(SystemExit):
        program.arguments(["a", "b", "--rounds", "6"])


def test_rows_are_chosen_by_name() -> None:
    assert [row.name for row in program.selected("^fetch")] == ["fetch, catch-up", "fetch, tail"]
