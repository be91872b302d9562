"""The table of pipelines for docs/benchmarks.md."""

from __future__ import annotations

from statistics import median
from typing import Any

from bench.pipelines.jobs import CONNECTOR, HAND, PIPELINE
from tests.interop.nodes import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN = "<!-- pipelines: written by python -m bench.pipelines --write-page -->"
END = "<!-- end of pipelines -->"
LEAST_RATE, MOST_CPU, LEAST_OVER_CONNECTOR = 0.95, 1.05, 1.2


def _middle(values: list[float]) -> str:
    shown = [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in (median(values), min(values), max(values))]
    return f"{shown[0]} ({shown[1]}-{shown[2]})" if len(values) > 1 else shown[0]


def ratios(row: dict[str, Any], key: str, other: str) -> list[float]:
    """Of each round: the pipeline's number over the other side's."""
    pairs = zip(row["sides"][PIPELINE], row["sides"][other], strict=True)
    return [ours[key] / theirs[key] for ours, theirs in pairs]


def verdict(row: dict[str, Any]) -> str:
    """Which of the three goals a row meets; rows of small batches have none."""
    if row["small"]:
        return ""
    reached = (
        (median(ratios(row, "records_per_s", HAND)) >= LEAST_RATE, "rate"),
        (median(ratios(row, "cpu_s", HAND)) <= MOST_CPU, "CPU"),
        (median(ratios(row, "records_per_cpu_s", CONNECTOR)) >= LEAST_OVER_CONNECTOR, "connector"),
    )
    missed = [name for met, name in reached if not met]
    return f"**not met: {', '.join(missed)}**" if missed else "met"


def table(result: dict[str, Any]) -> str:
    """Markdown."""
    lines = [
        f"{result['date']} UTC, commit {result['commit']}, {result['records']:,} records, rounds: {result['rounds']}, "
        f"PySpark {result['pyspark']}. {result['machine']}.",
        "",
        "| what | side | records/s | CPU s | records per CPU s | CPU ms a batch | batch s, p50 and p99 | batches "
        "| jobs, stages a batch |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        for side, turns in row["sides"].items():
            cells = [
                _middle([turn[key] for turn in turns])
                for key in ("records_per_s", "cpu_s", "records_per_cpu_s", "cpu_ms_per_batch")
            ]
            taken = [f"{median([turn['batch_s'][index] for turn in turns if turn['batch_s']] or [0]):.3g}" for index in (0, 1)]
            work = [f"{median([turn[key] for turn in turns]):.3g}" for key in ("jobs_per_batch", "stages_per_batch")]
            count = f"{median([turn['batches'] for turn in turns]):.0f}"
            lines.append(f"| {row['name']} | {side} | {' | '.join(cells)} | {', '.join(taken)} | {count} | {', '.join(work)} |")
    lines += [
        "",
        "| the pipeline over | by hand: records/s | by hand: CPU s | connector: records per CPU s | goal |",
        "|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        over = (("records_per_s", HAND), ("cpu_s", HAND), ("records_per_cpu_s", CONNECTOR))
        cells = [_middle(ratios(row, key, other)) for key, other in over]
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {verdict(row)} |")
    return "\n".join(lines)


def write_page(result: dict[str, Any]) -> None:
    """Put the tables between the marks in docs/benchmarks.md."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(result)}\n\n{END}{after}")
