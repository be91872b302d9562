"""What a run under TLS found: tables in Markdown, remarks that a reader needs, and JSON with every sample."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.pair.report import GENERATOR_CORES, ratio
from bench.pair.statistics import Interval, interval
from bench.pair.voids import counted, reasons
from bench.secure.rounds import GIB
from bench.secure.rows import RATE, Row, TlsLoad
from bench.secure.sides import APACHE, COPYING, LIMIT, PLAINTEXT, SSL, TIDELOG
from bench.warm.measured import Measured
from bench.warm.page import shown, shown_ratio
from bench.warm.steady import still_falling

Rounds = Sequence[Mapping[str, Mapping[str, Measured[TlsLoad]]]]
MARKS = ("<!-- secure: written by make bench-tls -->", "<!-- end of secure -->")
SIDES = {LIMIT: "C limit", TIDELOG: "tidelog", APACHE: "Kafka, warm"}
_WAYS = (
    ("tidelog, sendfile", PLAINTEXT, TIDELOG),
    ("tidelog, plaintext, copied", PLAINTEXT, COPYING),
    ("tidelog, TLS", SSL, TIDELOG),
    ("Kafka, sendfile", PLAINTEXT, APACHE),
    ("Kafka, TLS", SSL, APACHE),
    ("C limit, sendfile", PLAINTEXT, LIMIT),
    ("C limit, TLS", SSL, LIMIT),
)


class Findings:
    """All rounds of a run, and what the rounds that count say."""

    def __init__(self, rows: Sequence[Row], rounds: Rounds) -> None:
        self.rows = rows
        self.rounds = rounds
        self._counted = {row.name: self._count(row) for row in rows}

    def _count(self, row: Row) -> list[int]:
        samples = [each[row.name] for each in self.rounds]
        limits = [each[LIMIT].sample.cost for each in samples if LIMIT in each]
        noise = [[one.sample.noise for one in each.values() if one.sample.noise is not None] for each in samples]
        return counted(limits, noise)

    def void(self) -> list[str]:
        """The rows that say nothing, because too few of their rounds count."""
        found = {row.name: self.counts(row) for row in self.rows}
        return [name for name, count in found.items() if list(reasons(len(self.rounds), {name: count}))]

    def counts(self, row: Row) -> int:
        """How many rounds of the row count."""
        return len(self._counted[row.name])

    def samples(self, row: Row, side: str) -> list[Measured[TlsLoad]]:
        """Those of the rounds that count; all where none does, for a run that is void."""
        numbers = self._counted[row.name] or range(len(self.rounds))
        return [self.rounds[number][row.name][side] for number in numbers if side in self.rounds[number][row.name]]

    def middle(self, row: Row, side: str, value: Callable[[Measured[TlsLoad]], float]) -> float | None:
        """The median; None where the side has no sample."""
        found = [value(each) for each in self.samples(row, side)]
        return statistics.median(found) if found else None

    def ratio(self, one: tuple[Row, str], other: tuple[Row, str]) -> Interval | None:
        """The cost of one over that of the other, over the rounds in which both count; None where there is none."""
        numbers = [each for each in self._counted[one[0].name] if each in self._counted[other[0].name]]
        pairs = [
            (self.rounds[number][other[0].name][other[1]].sample, self.rounds[number][one[0].name][one[1]].sample)
            for number in numbers or range(len(self.rounds))
            if one[1] in self.rounds[number][one[0].name] and other[1] in self.rounds[number][other[0].name]
        ]
        return interval([ratio(base, cost) for base, cost in pairs]) if pairs else None

    def row(self, kind: str, listener: str) -> Row | None:
        """The row of this kind and listener, when it was measured."""
        return next((row for row in self.rows if (row.kind, row.listener) == (kind, listener)), None)


def _cost(findings: Findings, row: Row, side: str) -> str:
    cost = findings.middle(row, side, lambda each: each.sample.cost)
    share = findings.middle(row, side, lambda each: each.sample.user_share)
    if cost is None or share is None:
        return ""
    return f"{shown(cost)} ({shown(cost * share)} + {shown(cost * (1 - share))})"


def _rate(findings: Findings, row: Row, side: str) -> str:
    by_bytes = row.unit == "GiB"
    return shown(findings.middle(row, side, lambda each: each.load.mb_per_s if by_bytes else each.load.rate))


def cost_table(findings: Findings) -> str:
    """Rates and CPU of each row."""
    names = " | ".join(SIDES.values())
    lines = [
        f"| row | MB/s, or a second: {names} | CPU s a GiB, or us a record or connection, user + system: {names} "
        "| CPU, tidelog / Kafka | CPU, tidelog / limit | rounds |",
        "|---" * (2 + 2 * len(SIDES) + 2) + "|",
    ]
    for row in findings.rows:
        cells = [row.name, *(_rate(findings, row, side) for side in SIDES), *(_cost(findings, row, side) for side in SIDES)]
        ratios = [shown_ratio(findings.ratio((row, TIDELOG), (row, side))) for side in (APACHE, LIMIT)]
        lines.append(f"| {' | '.join([*cells, *ratios])} | {findings.counts(row)} of {len(findings.rounds)} |")
    return "\n".join(lines)


def latency_table(findings: Findings) -> str:
    """The paced rows' percentiles; empty without such rows."""
    rows = [row for row in findings.rows if row.kind == "paced"]
    names = " | ".join(SIDES.values())
    lines = [
        f"| ms at {RATE:,} records/s, one a request | p50: {names} | p99: {names} | p99.9: {names} |",
        "|---" * (1 + 3 * len(SIDES)) + "|",
    ]
    for row in rows:
        for what, until in (("acked", "until the Produce is answered"), ("consumed", "until a consumer has the record")):
            cells = [f"{row.listener}, {until}"]
            for part in ("p50", "p99", "p999"):
                key = f"{what}_{part}_ms"
                cells += [shown(findings.middle(row, side, lambda each, key=key: each.load.latencies[key])) for side in SIDES]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) if rows else ""


def sendfile_table(findings: Findings) -> str:
    """What each step away from sendfile costs a fetch; empty where not both listeners were measured."""
    lines = ["| fetch of 1 MiB | MB/s | CPU s a GiB, user + system | CPU, over its sendfile |", "|---|---|---|---|"]
    for name, listener, side in _WAYS:
        row, first = findings.row("fetch", listener), findings.row("fetch", PLAINTEXT)
        if row is None or first is None:
            return ""
        base = TIDELOG if side == COPYING else side
        ratio = shown_ratio(findings.ratio((row, side), (first, base))) if (listener, side) != (PLAINTEXT, base) else ""
        lines.append(f"| {name} | {_rate(findings, row, side)} | {_cost(findings, row, side)} | {ratio} |")
    return "\n".join(lines)


def remarks(findings: Findings, warm: Mapping[str, object]) -> Iterator[str]:
    """What a reader of the tables should know."""
    every = [one for each in findings.rounds for sides in each.values() for one in sides.values()]
    ciphers = sorted({one.load.cipher for one in every} - {"none"})
    yield f"Cipher of all connections under TLS: {', '.join(ciphers) or 'none was made'}; certificates on P-256."
    ratios = {row.name: found for row in findings.rows if (found := findings.ratio((row, TIDELOG), (row, APACHE)))}
    above = [f"{name} ({found.median:.2f})" for name, found in ratios.items() if found.median > 1]
    if ratios:
        yield f"Rows above Kafka's CPU: {', '.join(above) or 'none'}."
    busy = []
    for row in findings.rows:
        for side in row.sides:
            cores = findings.middle(row, side, lambda each: each.sample.generator)
            if cores is not None and cores > GENERATOR_CORES:
                busy.append(f"{row.name}: {cores:.1f} beside {side}")
    if busy:
        yield f"The generator used more than half a core in (cores): {'; '.join(busy)}."
    for row in findings.rows:
        for side in row.sides if row.kind == "resumed" else ():
            part = findings.middle(row, side, lambda each: each.load.resumed / each.load.requests)
            if part is not None and part < 0.95:
                yield f"{row.name}: {side} resumed {part:.0%} of the connections that asked for it."
    for name, said in warm.items():
        if isinstance(said, dict) and not said["steady"]:
            yield f"{name}: Kafka's last two runs before the first round still differed by 5 % or more."
    for row in findings.rows:
        if still_falling([each.sample.cost for each in findings.samples(row, APACHE)]):
            yield f"{row.name}: Kafka cost less in the last third of the rounds than in the first by 5 % or more."


def document(findings: Findings, about: str, warm: Mapping[str, object], more: Sequence[str]) -> str:
    """All of it, in Markdown."""
    void = findings.void()
    why = "fewer than seven of their rounds, or than two thirds, count, because the limit moved or others used the machine"
    parts = [
        about,
        f"**Void** are the rows {'; '.join(void)}: {why}." if void else "",
        cost_table(findings),
        latency_table(findings),
    ]
    parts += [sendfile_table(findings), "\n".join(f"- {line}" for line in [*remarks(findings, warm), *more])]
    return "\n\n".join(part for part in parts if part)


def to_json(findings: Findings, about: str, warm: Mapping[str, object], more: Sequence[str]) -> dict[str, object]:
    """All that was measured."""
    return {
        "about": about,
        "void": findings.void(),
        "gib": GIB,
        "warm": warm,
        "more": list(more),
        "counted": {row.name: findings.counts(row) for row in findings.rows},
        "rounds": [
            {row: {side: one.to_json() for side, one in sides.items()} for row, sides in each.items()} for each in findings.rounds
        ],
    }
