"""The table of Spark's half for docs/benchmarks.md."""

from __future__ import annotations

from statistics import median
from typing import Any

from bench.spark.rows import CONNECTOR
from tests.interop.nodes import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN = "<!-- spark: written by python -m bench.spark --write-page -->"
END = "<!-- end of spark -->"
MICRO_GOAL_MS, REAL_TIME_GOAL_MS = 300, 10


def _middle(values: list[float]) -> str:
    shown = [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in (median(values), min(values), max(values))]
    return f"{shown[0]} ({shown[1]}-{shown[2]})"


def ratios(row: dict[str, Any], side: str) -> list[float]:
    """Of each round: this side over the connector."""
    ours, theirs = (([turn["krec_per_cpu_s"] for turn in row["sides"][name]]) for name in (side, CONNECTOR))
    return [one / two for one, two in zip(ours, theirs, strict=True)]


def table(result: dict[str, Any]) -> str:
    """Markdown."""
    lines = [
        f"{result['date']} UTC, commit {result['commit']}, {result['records']:,} records a row, rounds: {result['rounds']}, "
        f"PySpark {result['pyspark']}. {result['machine']}.",
        "",
        "| what | side | thousand records per CPU second | over the connector | goal |",
        "|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        last = list(row["sides"])[-1]
        for side, turns in row["sides"].items():
            over = "" if side == CONNECTOR else _middle(ratios(row, side))
            goal = ""
            if side == last:
                reached = median(ratios(row, side)) >= row["goal"]
                goal = f"{row['goal']:g}: " + ("met" if reached else "**not met**")
            lines.append(f"| {row['name']} | {side} | {_middle([turn['krec_per_cpu_s'] for turn in turns])} | {over} | {goal} |")
    if result["latency"]:
        lines += ["", "| topic to topic, 200 records/s | p50 ms | p99 ms | goal (p50) |", "|---|---|---|---|"]
        for mode, turns in result["latency"].items():
            limit = REAL_TIME_GOAL_MS if mode == "real-time" else MICRO_GOAL_MS
            reached = median([turn["p50_ms"] for turn in turns]) <= limit
            goal = "" if mode == "micro-connector" else f"{limit}: " + ("met" if reached else "**not met**")
            cells = [_middle([turn[key] for turn in turns]) for key in ("p50_ms", "p99_ms")]
            lines.append(f"| {mode} | {cells[0]} | {cells[1]} | {goal} |")
    if result["cluster"]:
        lines += ["", "| standalone cluster | records | CPU us a record | wall s |", "|---|---|---|---|"]
        for name, turns in result["cluster"].items():
            cells = [_middle([turn[key] for turn in turns]) for key in ("records", "cpu_us_per_record", "wall_s")]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write_page(result: dict[str, Any]) -> None:
    """Put the table between the marks in docs/benchmarks.md."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(result)}\n\n{END}{after}")
