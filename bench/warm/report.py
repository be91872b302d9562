"""What a run says: each bar and whether it is met, what falls short, tables of costs, rates and latencies, and remarks."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

from bench.pair.report import GENERATOR_CORES, ratio
from bench.pair.sampling import LoadResult
from bench.pair.statistics import Interval, Outcome, interval
from bench.pair.voids import reasons
from bench.warm.bars import WORDS, Bar, Figure, either, judge
from bench.warm.measured import Measured
from bench.warm.page import shown, shown_ratio
from bench.warm.results import Record, Results
from bench.warm.rows import Load, Row
from bench.warm.sides import APACHE, LIMIT, NAMES, TIDELOG
from bench.warm.steady import is_steady, still_falling

GIB = 1 << 30
_LATENCIES = {Figure.P50: "consumed_p50_ms", Figure.P99: "consumed_p99_ms"}
_ALL = (LIMIT, TIDELOG, APACHE)
_UNITS = ("MiB", "s", "%")
"""Of rows without load."""
_BASES = {Figure.CPU: APACHE, Figure.LIMIT: LIMIT}


class Finding:
    """What the rounds of one row that count say; all rounds where none counts, for a row that is void."""

    def __init__(self, row: Row, record: Record) -> None:
        self.row, self.record = row, record
        self.counted = record.counted()
        self.rounds = [record.rounds[number] for number in self.counted or range(len(record.rounds))]

    @property
    def is_void(self) -> bool:
        """Too few rounds count to say anything."""
        return bool(list(reasons(len(self.record.rounds), {self.row.name: len(self.counted)})))

    def values(self, side: str, of: Callable[[Measured[LoadResult]], float]) -> list[float]:
        """Of each round in which the side has a sample."""
        return [of(each[side]) for each in self.rounds if side in each]

    def middle(self, side: str, of: Callable[[Measured[LoadResult]], float]) -> float | None:
        """The median; None where the side has no sample."""
        found = self.values(side, of)
        return statistics.median(found) if found else None

    def cost_ratio(self, base: str) -> Interval | None:
        """tidelog's cost over that of the other side; None over a limit that does not serve the row."""
        if base == LIMIT and self.row.control:
            return None
        both = [each for each in self.rounds if base in each and TIDELOG in each and each[base].sample.cost > 0]
        return interval([ratio(each[base].sample, each[TIDELOG].sample) for each in both]) if both else None

    def rate_ratio(self) -> Interval | None:
        """tidelog's rate over Kafka's."""
        both = [each for each in self.rounds if APACHE in each and TIDELOG in each and each[APACHE].load.rate]
        return interval([each[TIDELOG].load.rate / each[APACHE].load.rate for each in both]) if both else None

    def figure(self, of: Figure) -> Interval | None:
        """What a bar is on; None where it was not measured."""
        if of in _BASES:
            return self.cost_ratio(_BASES[of])
        if of is Figure.RATE:
            return self.rate_ratio()
        if of is Figure.RECORDS:
            found = self.values(TIDELOG, lambda each: each.load.rate * self.row.records)
        elif of is Figure.COST:
            found = self.values(TIDELOG, lambda each: each.sample.cost)
        else:
            found = self.values(TIDELOG, lambda each: each.load.latencies[_LATENCIES[of]])
        return interval(found) if found else None

    def outcome(self, bar: Bar) -> Outcome | None:
        """Whether the bar is met; None where it was not measured."""
        found = self.figure(bar.of)
        own = judge(bar, found) if found else None
        other = self.outcome(bar.instead) if bar.instead else None
        return either(own, other) if own and other else own or other


def findings(rows: Sequence[Row], results: Results) -> list[Finding]:
    """Of the rows that have a round, in the order of the table of rows."""
    return [Finding(row, results.records[row.name]) for row in rows if results.records.get(row.name, Record("", "")).rounds]


def _measured_text(finding: Finding, bar: Bar) -> str:
    found = finding.figure(bar.of)
    number = "" if found is None else f"{shown(found.median)} ({shown(found.low)}-{shown(found.high)})"
    return number if bar.instead is None else f"{number}, {_measured_text(finding, bar.instead)}"


def bar_table(found: Sequence[Finding]) -> str:
    """Each bar, what was measured, and whether it is met."""
    lines = ["| row | bar | measured | |", "|---|---|---|---|"]
    for finding in found:
        for bar in finding.row.bars:
            outcome = finding.outcome(bar)
            word = "void" if finding.is_void else WORDS[outcome] if outcome else "not measured"
            lines.append(f"| {finding.row.name} | {bar.text()} | {_measured_text(finding, bar)} | {word} |")
    return "\n".join(lines)


def falls_short(found: Sequence[Finding], rows: Sequence[Row]) -> str:
    """A list of what is not met, open, void and not measured; first on the page."""
    lines = []
    for finding in found:
        for bar in finding.row.bars:
            outcome = finding.outcome(bar)
            if finding.is_void:
                lines.append(
                    f"- {finding.row.name}: void; measured {_measured_text(finding, bar)} where {bar.text()} is asked for."
                )
            elif outcome is not Outcome.PASS:
                word = {Outcome.FAIL: "**not met**", Outcome.UNDECIDED: "open"}.get(outcome or Outcome.UNDECIDED, "")
                lines.append(f"- {finding.row.name}: {word}: {bar.text()} is asked for, measured {_measured_text(finding, bar)}.")
    measured = {finding.row.name for finding in found}
    if missing := [row.name for row in rows if row.bars and row.name not in measured]:
        lines.append(f"- Not measured: {'; '.join(missing)}.")
    return "\n".join(lines) or "Every bar is met."


def _cost(finding: Finding, side: str) -> str:
    cost = finding.middle(side, lambda each: each.sample.cost)
    if cost is None:
        return ""
    user = finding.middle(side, lambda each: each.sample.user_share) or 0.0
    if not any(finding.values(side, lambda each: each.sample.user + each.sample.system)):
        return shown(cost)
    return f"{shown(cost)} ({shown(cost * user)} + {shown(cost * (1 - user))})"


def _a_gib(each: Measured[LoadResult]) -> float:
    return each.sample.cost / 1e6 * each.load.requests / (each.load.moved / GIB)


def cost_table(found: Sequence[Finding]) -> str:
    """CPU a unit, by side."""
    lines = [
        "| row | CPU us a | C limit: all (user + system) | tidelog | Kafka | tidelog / Kafka | tidelog / limit "
        "| s a GiB: tidelog | Kafka | switches a unit: tidelog | Kafka | rounds |",
        "|" + "---|" * 12,
    ]
    for finding in found:
        row = finding.row
        bulk = isinstance(row, Load) and row.is_bulk
        gib = [shown(finding.middle(side, _a_gib)) if bulk else "" for side in (TIDELOG, APACHE)]
        switches = [
            shown(finding.middle(side, lambda each: each.sample.switches / each.load.requests)) for side in (TIDELOG, APACHE)
        ]
        cells = [row.name, row.unit, *("" if row.control and side == LIMIT else _cost(finding, side) for side in _ALL)]
        cells += [shown_ratio(finding.cost_ratio(side)) for side in (APACHE, LIMIT)]
        cells += [*gib, *switches, f"{len(finding.counted)} of {len(finding.record.rounds)}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def rate_table(found: Sequence[Finding]) -> str:
    """How much a second, by side, and what the generator used."""
    lines = [
        "| row | a second: C limit | tidelog | Kafka | tidelog / Kafka | MB/s: tidelog | Kafka "
        "| generator, cores, beside: C limit | tidelog | Kafka |",
        "|" + "---|" * 10,
    ]
    for finding in found:
        every = [side for side in _ALL if not (side == LIMIT and finding.row.control)]
        rates = [""] * (len(_ALL) - len(every)) + [shown(finding.middle(side, lambda each: each.load.rate)) for side in every]
        moved = [shown(finding.middle(side, lambda each: each.load.mb_per_s)) for side in (TIDELOG, APACHE)]
        generator = [""] * (len(_ALL) - len(every))
        generator += [shown(finding.middle(side, lambda each: each.sample.generator)) for side in every]
        cells = [finding.row.name, *rates, shown_ratio(finding.rate_ratio()), *moved, *generator]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def latency_table(found: Sequence[Finding]) -> str:
    """Percentiles of the rows that have them; empty without such rows."""
    names = " | ".join(NAMES[side] for side in _ALL)
    lines = [f"| ms | p50: {names} | p99: {names} | p99.9: {names} |", "|" + "---|" * 10]
    for finding in found:
        kinds = sorted({key for each in finding.rounds for one in each.values() for key in one.load.latencies})
        for what, text in (("acked", "until the Produce is answered"), ("consumed", "until a consumer has the record")):
            if not any(key.startswith(what) for key in kinds):
                continue
            cells = [f"{finding.row.name}, {text}"]
            for part in ("p50", "p99", "p999"):
                key = f"{what}_{part}_ms"
                for side in _ALL:
                    found_here = [
                        each[side].load.latencies[key]
                        for each in finding.rounds
                        if side in each and key in each[side].load.latencies
                    ]
                    cells.append(shown(statistics.median(found_here)) if found_here else "")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def standing_table(found: Sequence[Finding]) -> str:
    """Rows without load; empty without such rows."""
    lines = ["| row | | tidelog | Kafka | tidelog / Kafka |", "|---|---|---|---|---|"]
    for finding in found:
        costs = [shown(finding.middle(side, lambda each: each.sample.cost)) for side in (TIDELOG, APACHE)]
        lines.append(
            f"| {finding.row.name} | {finding.row.unit} | {' | '.join(costs)} | {shown_ratio(finding.cost_ratio(APACHE))} |"
        )
    return "\n".join(lines) if len(lines) > 2 else ""


def remarks(found: Sequence[Finding]) -> Iterator[str]:
    """What a reader of the tables should know."""
    if void := [finding.row.name for finding in found if finding.is_void]:
        yield (
            f"**Void**: {'; '.join(void)}. Fewer than seven of their rounds, or than two thirds, count, because the limit moved "
            "or others used the machine."
        )
    busy = []
    for finding in found:
        for side in _ALL[1:] if finding.row.control else _ALL:
            cores = finding.middle(side, lambda each: each.sample.generator)
            if cores is not None and cores > GENERATOR_CORES:
                busy.append(f"{finding.row.name}: {cores:.2f} beside {NAMES[side]}")
    if busy:
        yield f"The generator used more than half a core (cores): {'; '.join(busy)}."
    for finding in found:
        if any(not is_steady(costs) for costs in finding.record.warm if costs):
            yield f"{finding.row.name}: Kafka's last two runs before the first round still differed by 5 % or more."
        if still_falling(finding.values(APACHE, lambda each: each.sample.cost)):
            yield f"{finding.row.name}: Kafka cost less in the last third of the rounds than in the first by 5 % or more."
        for problem in finding.record.failed:
            yield f"{finding.row.name}: a round failed: {problem.splitlines()[0]}"
        if finding.row.note:
            yield f"{finding.row.name}: {finding.row.note}."


def origins(found: Sequence[Finding]) -> str:
    """When and of what: a sentence for each commit."""
    by_commit: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        by_commit.setdefault((finding.record.commit, finding.record.machine), []).append(finding)
    texts = []
    for (commit, machine), those in by_commit.items():
        dates = sorted(finding.record.date for finding in those)
        rows = "" if len(by_commit) == 1 else f" ({'; '.join(finding.row.name for finding in those)})"
        texts.append(f"Commit {commit}, until {dates[-1]} UTC{rows}. {machine}.")
    return " ".join(texts)


def document(found: Sequence[Finding]) -> str:
    """All tables, in Markdown."""
    loads = [finding for finding in found if finding.row.unit not in _UNITS]
    standing = [finding for finding in found if finding.row.unit in _UNITS]
    parts = [origins(found), bar_table(found)]
    if loads:
        parts += [cost_table(loads), rate_table(loads), latency_table(loads)]
    parts.append(standing_table(standing))
    parts.append("\n".join(f"- {line}" for line in remarks(found)))
    return "\n\n".join(part for part in parts if part)
