"""What becomes of samples beside a warm Kafka: bars, rounds that count, the file that a run resumes from, the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.pair.sampling import LoadResult, Sample
from bench.pair.statistics import Interval, Outcome
from bench.pair.voids import Noise
from bench.warm import __main__ as program
from bench.warm.bars import Bar, Figure, either, judge
from bench.warm.measured import Measured
from bench.warm.report import Finding, bar_table, cost_table, document, falls_short, findings, latency_table, rate_table, remarks
from bench.warm.results import Record, Results
from bench.warm.rows import LOADS, RATES, STANDING, Load, Row
from bench.warm.sides import APACHE, LIMIT, TIDELOG

ROW = Load(
    name="produce",
    group="node",
    bars=(Bar(Figure.CPU, 0.5), Bar(Figure.RATE, 1.5, least=True)),
    batch=b"x" * 1000,
    records=10,
)
TAIL = Load(name="tail", group="node", unit="record", bars=(Bar(Figure.P50, 0.2), Bar(Figure.P99, 1.5)), paced=True)
IDLE = Row(name="idle", group="idle", unit="%", bars=(Bar(Figure.COST, 3),))


def one(
    cost: float, rate: float = 100.0, others: float = 0.0, generator: float = 0.1, **latencies: float
) -> Measured[LoadResult]:
    """A sample of a hundred requests, a quarter of whose CPU is user time."""
    sample = Sample(cost, 100, 1.0, 3.0, 50, 2.0, generator, Noise(others, 0.0), (cost,))
    return Measured(sample, LoadResult(100, 100 / rate, 0.1, 0.1, 1 << 20, latencies))


def record(*rounds: dict[str, Measured[LoadResult]]) -> Record:
    return Record("abc", "machine", "2026-01-01 00:00", list(rounds), [[9.0, 5.0, 4.0, 4.0]])


QUIET = {LIMIT: one(1.0), TIDELOG: one(4.0, 300.0), APACHE: one(10.0)}


@pytest.mark.parametrize(
    ("bar", "low", "high", "expected"),
    [
        (Bar(Figure.CPU, 0.5), 0.3, 0.5, Outcome.PASS),
        (Bar(Figure.CPU, 0.5), 0.3, 0.51, Outcome.UNDECIDED),
        (Bar(Figure.CPU, 0.5), 0.51, 0.6, Outcome.FAIL),
        (Bar(Figure.RATE, 1.5, least=True), 1.5, 2.0, Outcome.PASS),
        (Bar(Figure.RATE, 1.5, least=True), 1.4, 2.0, Outcome.UNDECIDED),
        (Bar(Figure.RATE, 1.5, least=True), 1.0, 1.4, Outcome.FAIL),
    ],
)
def test_a_bar_is_met_when_the_whole_interval_is_on_its_side(bar: Bar, low: float, high: float, expected: Outcome) -> None:
    assert judge(bar, Interval((low + high) / 2, low, high, 0.98)) is expected


def test_one_of_two_bars_is_enough() -> None:
    assert either(Outcome.FAIL, Outcome.PASS) is Outcome.PASS
    assert either(Outcome.FAIL, Outcome.UNDECIDED) is Outcome.UNDECIDED
    assert either(Outcome.FAIL, Outcome.FAIL) is Outcome.FAIL
    bar = Bar(Figure.CPU, 0.1, instead=Bar(Figure.LIMIT, 5.0))
    finding = Finding(ROW, record(*[QUIET] * 7))
    assert finding.outcome(bar) is Outcome.PASS
    assert bar.text() == "CPU / Kafka's ≤ 0.1, or CPU / the C limit's ≤ 5"


def test_a_row_is_judged_by_its_pairs_of_rounds_that_count() -> None:
    noisy = {LIMIT: one(1.0), TIDELOG: one(90.0), APACHE: one(10.0, others=0.2)}
    moved = {LIMIT: one(1.2), TIDELOG: one(90.0), APACHE: one(10.0)}
    finding = Finding(ROW, record(*[QUIET] * 7, noisy, moved))
    found = finding.figure(Figure.CPU)
    assert found is not None
    assert (found.median, found.low, found.high) == (0.4, 0.4, 0.4)
    assert not finding.is_void
    assert bar_table([finding]).splitlines()[2:] == [
        "| produce | CPU / Kafka's ≤ 0.5 | 0.4 (0.4-0.4) | met |",
        "| produce | rate / Kafka's ≥ 1.5 | 3 (3-3) | met |",
    ]
    assert cost_table([finding]).splitlines()[-1] == (
        "| produce | request | 1 (0.25 + 0.75) | 4 (1 + 3) | 10 (2.5 + 7.5) | 0.40 (0.40-0.40) | 4.00 (4.00-4.00) "
        "| 0.41 | 1.02 | 0.5 | 0.5 | 7 of 9 |"
    )
    assert rate_table([finding]).splitlines()[-1].startswith("| produce | 100 | 300 | 100 | 3.00 (3.00-3.00) |")
    assert falls_short([finding], [ROW]) == "Every bar is met."


def test_what_falls_short_comes_first_and_names_what_was_not_measured() -> None:
    slow = {LIMIT: one(1.0), TIDELOG: one(6.0, 160.0), APACHE: one(10.0)}
    slower = {LIMIT: one(1.0), TIDELOG: one(7.0, 140.0), APACHE: one(10.0)}
    finding = Finding(ROW, record(*[slow] * 6, slower))
    assert falls_short([finding], [ROW, TAIL, IDLE]).splitlines() == [
        "- produce: **not met**: CPU / Kafka's ≤ 0.5 is asked for, measured 0.6 (0.6-0.7).",
        "- produce: open: rate / Kafka's ≥ 1.5 is asked for, measured 1.6 (1.4-1.6).",
        "- Not measured: tail; idle.",
    ]


def test_six_rounds_that_count_are_void_and_say_so_before_any_verdict() -> None:
    noisy = {LIMIT: one(1.0), TIDELOG: one(4.0, 300.0), APACHE: one(10.0, others=0.2)}
    finding = Finding(ROW, record(*[QUIET] * 6, *[noisy] * 5))
    assert finding.is_void
    assert bar_table([finding]).count("| void |") == 2
    assert falls_short([finding], [ROW]).count(": void; measured") == 2
    assert "**Void**: produce." in document([finding])


def test_latencies_and_absolute_figures_have_bars_of_their_own() -> None:
    fast = one(4.0, consumed_p50_ms=0.1, consumed_p99_ms=2.0, consumed_p999_ms=3.0)
    finding = Finding(TAIL, record(*[{LIMIT: one(1.0), TIDELOG: fast}] * 7))
    assert [line.split("|")[-2].strip() for line in bar_table([finding]).splitlines()[2:]] == ["met", "**not met**"]
    assert latency_table([finding]).splitlines()[-1] == (
        "| tail, until a consumer has the record |  | 0.1 |  |  | 2 |  |  | 3 |  |"
    )
    assert latency_table([Finding(ROW, record(QUIET))]) == ""
    idle = Finding(IDLE, record(*[{TIDELOG: one(2.0)}] * 7))
    assert "| idle | cost ≤ 3 | 2 (2-2) | met |" in bar_table([idle])


def test_a_limit_that_serves_as_control_is_no_base_of_ratios() -> None:
    row = replace(ROW, control=True)
    finding = Finding(row, record(*[QUIET] * 7))
    assert finding.cost_ratio(LIMIT) is None
    assert cost_table([finding]).splitlines()[-1].startswith("| produce | request |  | 4 (1 + 3) | 10 (2.5 + 7.5) |")
    assert rate_table([finding]).splitlines()[-1].startswith("| produce |  | 300 | 100 |")


def test_a_side_that_cost_nothing_that_could_be_seen_makes_no_ratio() -> None:
    assert Finding(ROW, record({**QUIET, LIMIT: one(0.0)})).cost_ratio(LIMIT) is None


def test_remarks_name_busy_generators_and_a_kafka_that_was_not_steady() -> None:
    busy = {LIMIT: one(1.0, generator=0.7), TIDELOG: one(4.0), APACHE: one(10.0)}
    found = record(*[busy] * 7)
    found.warm.append([9.0, 8.0])
    found.failed.append("a node ended\nwith much text")
    said = list(remarks([Finding(ROW, found)]))
    assert said[0] == "The generator used more than half a core (cores): produce: 0.70 beside C limit."
    assert any("still differed by 5 %" in line for line in said)
    assert "produce: a round failed: a node ended" in said


def test_a_run_resumes_where_its_file_ends(tmp_path: Path) -> None:
    path = tmp_path / "samples.json"
    first = Results.load(path)
    first.begin("produce", Record("abc", "machine", warm=[[2.0]]))
    first.add("produce", QUIET)
    first.add("produce", {**QUIET, TIDELOG: one(5.0, consumed_p50_ms=0.1)})
    again = Results.load(path)
    found = again.resumed("produce", "abc", "machine")
    assert [each[TIDELOG].sample.cost for each in found.rounds] == [4.0, 5.0]
    assert found.rounds[1][TIDELOG].load.latencies == {"consumed_p50_ms": 0.1}
    assert found.rounds[0][TIDELOG].load.rate == pytest.approx(300.0)
    assert (found.warm, found.counted()) == ([[2.0]], [0, 1])
    assert program.wants_more(found, 7)
    assert not program.wants_more(found, 2)
    assert again.resumed("produce", "def", "machine").rounds == []
    assert again.records["produce"] is found  # until the row is measured again


def test_more_rounds_are_tried_only_so_often() -> None:
    noisy = {LIMIT: one(1.0, others=0.5), TIDELOG: one(4.0), APACHE: one(10.0)}
    assert program.wants_more(record(*[noisy] * 10), 7)
    assert not program.wants_more(record(*[noisy] * 11), 7)


def test_the_rows_have_names_topics_and_bars_of_their_own() -> None:
    assert len({row.topic for row in program.ROWS}) == len(program.ROWS)
    assert {row.group for row in program.ROWS} == set(program.GROUPS)
    assert [row.name for row in program.selected("64 conn")] == ["produce one record, 64 connections"]
    assert program.selected("", "node") == list(LOADS)
    with pytest.raises(SystemExit, match="no group nodes"):
        program.selected("", "nodes")
    assert all(row.bars for row in (*LOADS, *RATES, *STANDING))


@pytest.mark.parametrize("row", LOADS, ids=lambda row: row.name)
def test_every_load_has_frames(row: Load) -> None:
    assert row.frames(bytes(16))


def test_rows_without_a_round_are_left_out(tmp_path: Path) -> None:
    results = Results(tmp_path / "samples.json", {"produce": record(QUIET), "tail": Record("abc", "machine")})
    assert [finding.row.name for finding in findings([ROW, TAIL, IDLE], results)] == ["produce"]


def test_the_estimate_is_made_of_what_was_seen() -> None:
    progress = program.Progress(2, 7)
    assert progress.minutes_left() == pytest.approx((2 * 7 + 7) * program.ROUND_S / 60 + 2 * program.ROW_S / 60)
    progress.prepared(60.0, 7)
    progress.round_done(30.0)
    assert progress.minutes_left() == pytest.approx((7 + 6) * 0.5 + 1)


def test_the_page_of_benchmarks_has_the_marks() -> None:
    text = (program.ROOT / "docs" / "benchmarks.md").read_text()
    for begin, end in (program.SHORT, program.TABLES):
        assert text.count(begin) == text.count(end) == 1
        assert text.index(begin) < text.index(end)
