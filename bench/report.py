"""From the values of a run to a table: medians, ranges, ratios, and whether each row reaches the first step."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from pathlib import Path
from typing import Any

from bench.rows import IDEMPOTENT, TRANSACTIONAL

# The first step, in tidelog's number over Kafka's.
CPU_LIMIT = {"produce": 0.5, "requests": 0.5, "fetch": 1.0, "replicated": 0.5}
TIMED = ("latency", "requests", "replicated")
"""Kinds of rows that have percentiles."""
CPU_TITLE = {"node": "broker CPU s", "cluster": "CPU s of all nodes for a million records"}
LIMITS = {  # absolute ones
    "start to first answer": 0.5,
    "memory, idle": 60,
    "2,000 partitions: memory after the start": 150,
    "2,000 partitions: memory after that": 150,
}


def machine() -> str:
    """Processor, cores, memory, system, Python and Java."""
    cpu = next(
        (line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "?"
    )
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / (1 << 20)
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()[0]
    return (
        f"{os.cpu_count()} x {cpu}, {memory:.0f} GiB, Linux {platform.release().partition('-')[0]}, "
        f"Python {platform.python_version()}, {java.replace(chr(34), '')}, load {os.getloadavg()[0]:.1f} at the start"
    )


def values(result: dict[str, Any], side: str, row: str, key: str) -> list[float]:
    """A number in all rounds that have it."""
    return [one[side][row][key] for one in result["rounds"] if key in one.get(side, {}).get(row, {})]


def number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def middle(found: list[float]) -> str:
    """Median, and the range when there are several."""
    if not found:
        return "failed"
    text = number(statistics.median(found))
    return text if len(found) == 1 else f"{text} ({number(min(found))}-{number(max(found))})"


def ratio(result: dict[str, Any], row: str, key: str) -> float | None:
    """The first side's median over the last one's."""
    one, two = (values(result, side, row, key) for side in (result["sides"][0], result["sides"][-1]))
    if not one or not two or not statistics.median(two):
        return None
    return statistics.median(one) / statistics.median(two)


def verdict(result: dict[str, Any], row: dict[str, Any]) -> str:
    """What of the first step the row does not reach; "met" when nothing."""
    short = []
    main = ratio(result, row["name"], row["main"])
    if main is None:
        return "failed"
    if row["name"] in LIMITS:
        found = statistics.median(values(result, result["sides"][0], row["name"], row["main"]))
        if found > LIMITS[row["name"]]:
            short.append(f"over {LIMITS[row['name']]} {row['unit']}")
    if row["higher"] and main < 1:
        short.append(f"{main:.2f}x")
    if row["kind"] in TIMED:
        p99 = ratio(result, row["name"], "p99_ms")
        if p99 is not None and p99 > 1:
            short.append(f"p99 {p99:.2f}x")
    cpu = ratio(result, row["name"], "broker_cpu_s")
    per_unit = cpu / main if cpu is not None and row["kind"] == "requests" else cpu
    if row["kind"] in ("gap", "cpu") and main > 1:
        short.append(f"{main:.2f}x")
    limit = CPU_LIMIT.get(row["kind"])
    if limit is not None and per_unit is not None and per_unit > limit:
        short.append(f"CPU {per_unit:.2f}x")
    return ", ".join(short) or "met"


def cost_of_transactions(result: dict[str, Any]) -> list[str]:
    """What transactions cost each side: its transactional row over its idempotent one of the same shape."""
    plain, transactional = f"produce {IDEMPOTENT}", TRANSACTIONAL
    if not {plain, transactional} <= {row["name"] for row in result["rows"]}:
        return []
    lines = ["", "| transactional over idempotent, same records | throughput | broker CPU |", "|---|---|---|"]
    for side in (result["sides"][0], result["sides"][-1]):
        cells = []
        for key in ("mb_per_s", "broker_cpu_s"):
            # each round's own ratio: the two rows of a round ran under the same conditions
            pairs = zip(values(result, side, transactional, key), values(result, side, plain, key), strict=False)
            cells.append(middle([one / two for one, two in pairs if two]))
        lines.append(f"| {side} | " + " | ".join(cells) + " |")
    return lines


def table(result: dict[str, Any]) -> str:
    """Markdown: a line per row."""
    one, two = result["sides"][0], result["sides"][-1]
    lines = [
        f"{result['date']} UTC, commit {result['commit']}, {result['scale']} scale, rounds: {len(result['rounds'])}. "
        f"{result['machine']}.",
        "",
        f"| what | unit | {one} | {two} | ratio | {CPU_TITLE[result.get('group', 'node')]}: {one} | {two} | ratio | first step |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        name = row["name"]
        cells = [name, row["unit"], *(middle(values(result, side, name, row["main"])) for side in (one, two))]
        main, cpu = ratio(result, name, row["main"]), ratio(result, name, "broker_cpu_s")
        cells.append("" if main is None else f"{main:.2f}")
        has_cpu = values(result, one, name, "broker_cpu_s")
        cells += [middle(values(result, side, name, "broker_cpu_s")) if has_cpu else "" for side in (one, two)]
        cells += ["" if cpu is None else f"{cpu:.2f}", verdict(result, row)]
        lines.append("| " + " | ".join(cells) + " |")
    lines += cost_of_transactions(result)
    latencies = [row["name"] for row in result["rows"] if row["kind"] in TIMED]
    if latencies:
        lines += [
            "",
            f"| latency in ms | p50: {one} | {two} | p99: {one} | {two} | p99.9: {one} | {two} |",
            "|---|---|---|---|---|---|---|",
        ]
        for name in latencies:
            found = [middle(values(result, side, name, key)) for key in ("p50_ms", "p99_ms", "p999_ms") for side in (one, two)]
            lines.append("| " + " | ".join([name, *found]) + " |")
    if result.get("allocations"):
        lines += ["", "| in tidelog, per request | calls of Python's allocators | bytes asked for |", "|---|---|---|"]
        lines += [f"| {name} | {found['calls']:.0f} | {found['bytes']:,} |" for name, found in result["allocations"].items()]
    return "\n".join(lines)
