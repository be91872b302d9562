"""What a run found: JSON with every sample, and a table in Markdown with medians, intervals and verdicts."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.pair.rounds import LIMIT, NEW, OLD
from bench.pair.sampling import Sample
from bench.pair.statistics import Interval, Outcome, interval, outcome, paired_ratios

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


def verdict(row: str, unit: str, rounds: Rounds) -> Verdict:
    """Of one row over all rounds."""
    by_side = {side: [each[row][side] for each in rounds] for side in rounds[0][row]}
    costs = {side: statistics.median(sample.cost for sample in samples) for side, samples in by_side.items()}
    middle = {side: sorted(samples, key=lambda sample: sample.cost)[len(samples) // 2] for side, samples in by_side.items()}
    found = interval(paired_ratios([each.cost for each in by_side[OLD]], [each.cost for each in by_side[NEW]]))
    return Verdict(row, unit, costs, middle, found, outcome(found))


def limits_and_noise(rounds: Rounds) -> tuple[dict[str, list[float]], dict[str, list[Sample]]]:
    """For the rules of ``voids``: the limit's costs, and all samples of which the noise is known, by row."""
    limits = {row: [each[row][LIMIT].cost for each in rounds] for row, sides in rounds[0].items() if LIMIT in sides}
    samples = {row: [sample for each in rounds for sample in each[row].values() if sample.noise is not None] for row in rounds[0]}
    return limits, {row: found for row, found in samples.items() if found}


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
        f"| row | {what} a | limit | old | new | switches a unit: old | new | x limit | new/old | verdict |",
        "|---|---|---|---|---|---|---|---|---|---|",
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
        lines.append(f"| {' | '.join(cells)} | {each.outcome.value} |")
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
            }
            for each in verdicts
        ],
        "rounds": [
            {row: {side: sample.to_json() for side, sample in sides.items()} for row, sides in each.items()} for each in rounds
        ],
    }
