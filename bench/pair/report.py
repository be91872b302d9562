"""What a run found: JSON with every sample, and a table in Markdown with medians, intervals and verdicts."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.pair.rounds import LIMIT, NEW, OLD
from bench.pair.sampling import Sample
from bench.pair.statistics import Interval, Outcome, interval, outcome, paired_ratios
from bench.pair.voids import counted

Rounds = Sequence[Mapping[str, Mapping[str, Sample]]]
GENERATOR_CORES = 0.5


@dataclass(frozen=True, slots=True)
class Verdict:
    """One row. Costs are medians over the rounds, by side."""

    row: str
    unit: str
    costs: dict[str, float]
    samples: dict[str, Sample]
    ratio: Interval
    outcome: Outcome
    counted: int
    """Rounds that count."""


def verdict(row: str, unit: str, rounds: Rounds) -> Verdict:
    """Of one row over the rounds that count; over all where none does, for a run that is void."""
    chosen = [rounds[number][row] for number in counted_rounds(row, rounds)] or [each[row] for each in rounds]
    by_side = {side: [each[side] for each in chosen] for side in chosen[0]}
    costs = {side: statistics.median(sample.cost for sample in samples) for side, samples in by_side.items()}
    middle = {side: sorted(samples, key=lambda sample: sample.cost)[len(samples) // 2] for side, samples in by_side.items()}
    found = interval([ratio(old, new) for old, new in zip(by_side[OLD], by_side[NEW], strict=True)])
    return Verdict(row, unit, costs, middle, found, outcome(found), len(chosen))


def counted_rounds(row: str, rounds: Rounds) -> list[int]:
    """The numbers of the rounds of a row that count, by the rules of ``voids``."""
    limits = [each[row][LIMIT].cost for each in rounds if LIMIT in each[row]]
    noise = [[sample.noise for sample in each[row].values() if sample.noise is not None] for each in rounds]
    return counted(limits, noise)


def ratio(old: Sample, new: Sample) -> float:
    """New over old of one round: the median over its slices, each of which was measured right beside its pair."""
    if old.slices and new.slices:
        return statistics.median(paired_ratios(old.slices, new.slices))
    return new.cost / old.cost


def remarks(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What a reader of the table should know."""
    for each in verdicts:
        for side in (OLD, NEW):
            if each.samples[side].generator > GENERATOR_CORES:
                yield f"{each.row}: the generator used {each.samples[side].generator:.2f} of a core beside {side}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _cost(each: Verdict, side: str, *, count: bool) -> str:
    sample = each.samples.get(side)
    if sample is None:
        return ""
    text = _number(each.costs[side])
    if not count and sample.user + sample.system:
        share = sample.user / (sample.user + sample.system)
        text += f" ({_number(each.costs[side] * share)} + {_number(each.costs[side] * (1 - share))})"
    return text


def table(verdicts: Sequence[Verdict], *, count: bool) -> str:
    """Markdown. Without ``count`` costs are CPU, with user and system time in brackets."""
    what = "instructions" if count else "CPU us (ms for tools and starts), user + system"
    lines = [
        f"| row | {what} a | limit | old | new | switches a unit: old | new | x limit | new/old | verdict | rounds |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in verdicts:
        ratio = f"{each.ratio.median:.3f} ({each.ratio.low:.3f}-{each.ratio.high:.3f})"
        switches = [
            _number(each.samples[side].switches / each.samples[side].amount) if each.samples[side].switches else ""
            for side in (OLD, NEW)
        ]
        limit = each.costs.get(LIMIT)
        times = f"{each.costs[NEW] / limit:.1f}" if limit else ""
        cells = [each.row, each.unit, *(_cost(each, side, count=count) for side in (LIMIT, OLD, NEW)), *switches, times, ratio]
        lines.append(f"| {' | '.join(cells)} | {each.outcome.value} | {each.counted} |")
    return "\n".join(lines)


def rows_per_second(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Spark's reader as rows a CPU second: a sentence."""
    for each in verdicts:
        if each.unit == "row" and each.samples[OLD].user:
            per_s = {side: 1e6 / each.costs[side] for side in (OLD, NEW)}
            yield f"{each.row}: {per_s[OLD]:,.0f} rows a CPU second before, {per_s[NEW]:,.0f} now"


def to_json(verdicts: Sequence[Verdict], rounds: Rounds, about: Mapping[str, object], void: Sequence[str]) -> dict[str, object]:
    """All that was measured."""
    return {
        **about,
        "void": list(void),
        "rows": [
            {
                "row": each.row,
                "unit": each.unit,
                "medians": each.costs,
                "ratio": {"median": each.ratio.median, "low": each.ratio.low, "high": each.ratio.high},
                "coverage": round(each.ratio.coverage, 4),
                "verdict": each.outcome.value,
                "counted": each.counted,
            }
            for each in verdicts
        ],
        "rounds": [
            {row: {side: sample.to_json() for side, sample in sides.items()} for row, sides in each.items()} for each in rounds
        ],
    }
