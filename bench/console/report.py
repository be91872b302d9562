"""The page of results, from the samples of all runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.console.clusters import KINDS, TIDELOG

TITLES = {TIDELOG: "tidelog", "apache": "Apache Kafka 4.3.1"}
HEAD = """# The console on a large cluster

Written by `make bench-console`; the samples are in `benchmarks-console.json` beside this page.

**Method.** Three nodes on one machine, broker and controller in each, every topic with one replica, Kafka's defaults.
The cluster is filled through Kafka's protocol; each group has committed offsets in all partitions of one topic and no
member. `tidelog console` is a process of its own. CPU is that of whole processes, from the kernel's scheduler: other
processes of the machine change it little. Times are those of a clock, and they change much. The longest turn is the CPU
time of the console's event loop between two turns of a timer of 10 ms: so long all other requests wait. No test asserts
any of these figures."""
API_METHOD = """Each read of the API on a fresh console that knows nothing of the cluster (*first*: with the connections to the
brokers), and once more at once (*again*). The brokers' CPU is that of all three.
Sizes are those of the answer as sent and before gzip."""


def page(results: Mapping[str, Any]) -> str:
    """The page in Markdown."""
    parts = [HEAD]
    for kind in KINDS:
        if kind in results:
            parts.append("\n".join(_cluster(results[kind])))
    return "\n\n".join(parts) + "\n"


def _cluster(found: Mapping[str, Any]) -> Iterator[str]:
    topics, partitions, groups = found["counted"]
    yield f"## {TITLES[found['kind']]}"
    yield ""
    heap = f" Heap of each node: {found['heap']}." if found["kind"] != TIDELOG else ""
    yield (
        f"{topics:,} topics, {partitions:,} partitions, {groups:,} groups, internal topics included.{heap} Creating the topics "
        f"took {found['filled_s']['topics_s']:.0f} s, the groups {found['filled_s']['groups_s']:.0f} s."
    )
    if "api" in found:
        yield from ["", "### Calls of the API", "", API_METHOD, "", _about(found["api"]), ""]
        yield from api_table(found["api"]["calls"])


def _about(part: Mapping[str, Any]) -> str:
    note = f" {part['note']}" if part["note"] else ""
    return f"{part['date']} UTC, commit {part['commit']}, {part['machine']}.{note}"


def api_table(calls: Mapping[str, Any]) -> Iterator[str]:
    """A row for each call."""
    yield (
        "| call | first, ms | console CPU, ms | longest turn, ms | brokers' CPU, ms | requests | sent, KB | plain, KB "
        "| again, ms | console CPU, ms | memory, MB |"
    )
    yield "|---|" + "---|" * 10
    for name, row in calls.items():
        first, again = row["first"], row["again"]
        cells = [
            name + (" (incomplete: " + ", ".join(first["missing"]) + ")" if first["missing"] else ""),
            f"{first['ms']:,.0f}",
            f"{first['console_cpu_s'] * 1000:,.0f}",
            f"{first['longest_turn_cpu_ms']:,.0f}",
            f"{sum(first['brokers_cpu_s'].values()) * 1000:,.0f}",
            f"{sum(first['requests'].values()):,}",
            f"{first['wire_bytes'] / 1000:,.1f}",
            f"{first['plain_bytes'] / 1000:,.1f}",
            f"{again['ms']:,.0f}",
            f"{again['console_cpu_s'] * 1000:,.0f}",
            f"{row['memory_mb']:,.0f}",
        ]
        yield f"| {' | '.join(cells)} |"
