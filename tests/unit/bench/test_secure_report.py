"""What becomes of samples under TLS: warm runs, rounds that count, the tables, the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.pair.sampling import Sample
from bench.pair.voids import Noise
from bench.secure import __main__ as program
from bench.secure.kernel_tls import kernel_tls
from bench.secure.report import (
    MARKS,
    Findings,
    cost_table,
    document,
    latency_table,
    remarks,
    sendfile_table,
    to_json,
)
from bench.secure.rounds import GIB, cost_per_unit, joined
from bench.secure.rows import ROWS, Row, TlsLoad
from bench.secure.sides import APACHE, COPYING, LIMIT, PLAINTEXT, SSL, TIDELOG
from bench.warm.measured import Measured
from bench.warm.page import write_between_marks
from bench.warm.steady import is_steady, still_falling, until_steady

FETCH, PLAIN = Row("fetch", SSL, 10, 1), Row("fetch", PLAINTEXT, 10, 1, sides=(LIMIT, TIDELOG, COPYING, APACHE))
PACED = Row("paced", SSL, 10, 1)


def one(cost: float, others: float = 0.0, generator: float = 0.1, resumed: int = 10) -> Measured[TlsLoad]:
    """A sample of ten requests in two seconds, a quarter of whose CPU is user time."""
    latencies = {f"{what}_{part}_ms": cost for what in ("acked", "consumed") for part in ("p50", "p99", "p999")}
    load = TlsLoad(10, 2.0, 0.1, 0.1, 400_000_000, latencies, "TLSv1.3 AES", resumed)
    return Measured(Sample(cost, 10, 1.0, 3.0, 5, 2.0, generator, Noise(others, 0.0)), load)


def rounds(*costs: dict[str, Measured[TlsLoad]], row: Row = FETCH) -> list[dict[str, dict[str, Measured[TlsLoad]]]]:
    return [{row.name: dict(each)} for each in costs]


def test_warm_is_when_two_runs_in_a_row_are_alike() -> None:
    costs = iter([9.0, 8.9, 5.0, 4.0, 3.9, 1.0])  # the first two are alike by chance
    assert until_steady(lambda: next(costs)) == [9.0, 8.9, 5.0, 4.0, 3.9]
    assert next(costs) == 1.0


def test_warming_ends_although_the_runs_differ() -> None:
    costs = iter([1.0, 2.0] * 50)
    found = until_steady(lambda: next(costs), 7)
    assert (len(found), is_steady(found)) == (7, False)
    assert not is_steady([1.0])
    assert not is_steady([1.0, 1.0, 1.0, 1.05])


def test_a_jvm_that_becomes_warmer_during_the_rounds_is_noticed() -> None:
    assert still_falling([10.0, 10.0, 10.0, 9.0, 9.0, 9.0, 9.4, 9.4, 9.4])
    assert not still_falling([10.0, 10.0, 10.0, 9.0, 9.0, 9.0, 9.6, 9.6, 9.6])
    assert not still_falling([10.0, 1.0])


def test_a_cost_is_for_a_gib_a_record_or_a_connection() -> None:
    load = TlsLoad(1000, 1.0, 0.0, 0.0, GIB // 2)
    assert cost_per_unit(FETCH, 2e6, load) == 4.0
    assert cost_per_unit(PACED, 2e6, load) == 2000.0


def test_slices_become_one_sample() -> None:
    found = joined([one(1.0), one(5.0), one(2.0)])
    assert (found.sample.cost, found.sample.slices, found.load.requests) == (2.0, (1.0, 5.0, 2.0), 30)
    assert (found.load.rate, found.load.mb_per_s, found.load.latencies["acked_p99_ms"]) == (5.0, 200.0, 2.0)


def test_a_row_is_judged_by_its_pairs_of_rounds_that_count() -> None:
    sides = [{LIMIT: one(1.0), TIDELOG: one(3.0), APACHE: one(2.0)}] * 7
    noisy = {LIMIT: one(1.0), TIDELOG: one(90.0), APACHE: one(2.0, others=0.2)}
    moved = {LIMIT: one(1.2), TIDELOG: one(90.0), APACHE: one(2.0)}
    findings = Findings([FETCH], rounds(*sides, noisy, moved))
    found = findings.ratio((FETCH, TIDELOG), (FETCH, APACHE))
    assert found is not None
    assert (found.median, found.low, found.high) == (1.5, 1.5, 1.5)
    assert findings.void() == []
    line = cost_table(findings).splitlines()[-1]
    assert line == (
        "| fetch, SSL | 200 | 200 | 200 | 1 (0.25 + 0.75) | 3 (0.75 + 2.25) | 2 (0.5 + 1.5) | 1.50 (1.50-1.50) "
        "| 3.00 (3.00-3.00) | 7 of 9 |"
    )
    assert "Rows above Kafka's CPU: fetch, SSL (1.50)." in list(remarks(findings, {}))


def test_fewer_than_seven_rounds_that_count_make_a_run_void() -> None:
    quiet, noisy = {LIMIT: one(1.0), TIDELOG: one(3.0)}, {LIMIT: one(1.0, others=0.5), TIDELOG: one(3.0)}
    findings = Findings([FETCH], rounds(*[quiet] * 6, *[noisy] * 3))
    assert findings.void() == ["fetch, SSL"]
    assert "**Void** are the rows fetch, SSL: fewer than seven" in document(findings, "today", {}, [])
    assert json.loads(json.dumps(to_json(findings, "today", {}, [])))["void"] == ["fetch, SSL"]


def test_what_the_loss_of_sendfile_costs() -> None:
    plain = {LIMIT: one(1.0), TIDELOG: one(2.0), COPYING: one(3.0), APACHE: one(2.5)}
    secured = {LIMIT: one(2.0), TIDELOG: one(8.0), APACHE: one(5.0)}
    both = [{PLAIN.name: plain, FETCH.name: secured}] * 7
    lines = sendfile_table(Findings([PLAIN, FETCH], both)).splitlines()[2:]
    assert [line.split("|")[-2].strip() for line in lines] == [
        "",
        "1.50 (1.50-1.50)",
        "4.00 (4.00-4.00)",
        "",
        "2.00 (2.00-2.00)",
        "",
        "2.00 (2.00-2.00)",
    ]
    assert sendfile_table(Findings([FETCH], both)) == ""


def test_latencies_stand_in_a_table_of_their_own() -> None:
    some = rounds({LIMIT: one(1.0), TIDELOG: one(2.0), APACHE: one(3.0)}, row=PACED)
    first, second = latency_table(Findings([PACED], some)).splitlines()[2:]
    assert first == "| SSL, until the Produce is answered | 1 | 2 | 3 | 1 | 2 | 3 | 1 | 2 | 3 |"
    assert second.startswith("| SSL, until a consumer has the record | 1 |")
    assert latency_table(Findings([FETCH], [])) == ""


def test_remarks_name_what_weakens_a_row() -> None:
    resumed = Row("resumed", SSL, 10, 1)
    some = rounds({LIMIT: one(1.0), TIDELOG: one(2.0, generator=0.7), APACHE: one(3.0, resumed=2)}, row=resumed)
    found = list(remarks(Findings([resumed], some), {"produce": {"costs": [1.0, 2.0], "steady": False}}))
    assert "The generator used more than half a core in (cores): resumed connections, SSL: 0.7 beside tidelog." in found
    assert "resumed connections, SSL: apache resumed 20% of the connections that asked for it." in found
    assert found[-1].startswith("produce: Kafka's last two runs")


def test_only_what_is_between_the_marks_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n")
    write_between_marks(page, MARKS, "new")
    assert page.read_text() == f"before\n{MARKS[0]}\n\nnew\n\n{MARKS[1]}\nafter\n"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="no section"):
        write_between_marks(page, MARKS, "new")
    assert page.read_text() == "no marks"


def test_the_page_of_benchmarks_has_the_marks() -> None:
    text = (program.ROOT / "docs" / "benchmarks.md").read_text()
    assert text.count(MARKS[0]) == text.count(MARKS[1]) == 1
    assert text.index(MARKS[0]) < text.index(MARKS[1])


def test_a_short_run_is_one_round_of_little_work() -> None:
    found = program.arguments(["--short"])
    assert (found.rounds, found.scale, found.write) == (1, program.SHORT_SCALE, None)
    assert program.arguments([]).rounds == program.ROUNDS
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_the_kernel_is_asked_for_tls() -> None:
    assert kernel_tls().startswith("Kernel TLS: the kernel ")
