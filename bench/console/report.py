"""The page of results, from the samples of all runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from bench.console.clusters import KINDS, TIDELOG
from bench.pair.statistics import interval, paired_ratios

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

PAGES_METHOD = """Headless Chromium, a browser context of its own (no cache) for each visit, {rounds} rounds over all pages. The
first round meets a console that knows nothing of the cluster when it begins; median and longest are those of the later
rounds. *Usable*: the heading and what the page is about are there, and nothing says that it is loading; by the page's own
clock, since the navigation began. The thread's CPU is what the page's main thread has worked by then."""
OPEN_METHOD = """One browser with that page in front for {seconds:.0f} s after it was usable, which reads again by itself.
Requests are those of the console to all brokers; CPU of a broker is all that it does, and what is added is the sum over the
brokers less that with no page open."""
SEARCH_METHOD = """One producer sends {rate} records of 184 bytes a second with acks=all, each by itself. Beside it, in every
other period, the console searches a topic of {records:,} records from its beginning for a text that none has, again and
again. Periods take turns, and so does which is first."""
PAINT_MS, USABLE_MS, FRAME_MS, MEMORY_MB = 300, 500, 50, 150
"""The goals."""


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
    if "pages" in found:
        yield ""
        yield from _pages(found["pages"])
    if "search" in found:
        yield ""
        yield from _search(found["search"])


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


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _pages(part: Mapping[str, Any]) -> Iterator[str]:
    visits = [each for each in part["samples"] if each["kind"] == "page"]
    rounds = 1 + max(each["round"] for each in visits)
    yield from ["### Pages", "", PAGES_METHOD.format(rounds=rounds), "", _about(part), ""]
    yield "| page | paint, ms | usable, ms: fresh console | median | longest | thread's CPU, ms | usable in 500 ms |"
    yield "|---|" + "---|" * 6
    for name in dict.fromkeys(each["name"] for each in visits):
        own = [each for each in visits if each["name"] == name]
        later = [each["usable"] for each in own if each["round"]] or [each["usable"] for each in own]
        paints = [each["paint"] for each in own if each["paint"] is not None]
        middle = statistics.median(later)
        refused = next((each["refused"] for each in own if each["refused"]), "")
        cells = [
            name + (f" (refused: {refused})" if refused else ""),
            _figure(statistics.median(paints) if paints else None),
            _figure(own[0]["usable"]),
            _figure(middle),
            _figure(max(later)),
            _figure(statistics.median(each["cpu"] for each in own)),
            "yes" if middle <= USABLE_MS else "no",
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    paints = [each["paint"] for each in visits if each["paint"] is not None]
    met = sum(paint <= PAINT_MS for paint in paints)
    yield f"First paint within {PAINT_MS} ms: {met} of {len(paints)} visits, median {statistics.median(paints):.0f} ms."
    yield ""
    frames = [max(each["frames"]) for each in part["samples"] if each["kind"] == "scroll"]
    worked = [max(each["cpu"]) for each in part["samples"] if each["kind"] == "scroll"]
    middles = [statistics.median(each["frames"]) for each in part["samples"] if each["kind"] == "scroll"]
    yield (
        f"Scrolling through all topics in 150 steps (goal: no frame over {FRAME_MS} ms): the longest frame of each round "
        f"{', '.join(f'{each:.0f}' for each in frames)} ms, the middle one {statistics.median(middles):.0f} ms; in one step the "
        f"page's thread worked at most {', '.join(f'{each:.0f}' for each in worked)} ms."
    )
    yield ""
    yield f"The console's memory was at most {part['memory_mb']:.0f} MB (goal: {MEMORY_MB})."
    yield from ["", "### An open page", "", OPEN_METHOD.format(seconds=part["seconds"]), ""]
    nodes = sorted(next(iter(part["open"].values()))["brokers_cpu_s"])
    yield f"| page | requests/s | console, % of a core | {' | '.join(f'broker {each}, %' for each in nodes)} | brokers added, % |"
    yield "|---|" + "---|" * (3 + len(nodes))
    idle = sum(part["open"]["no page"]["brokers_cpu_s"].values()) / part["open"]["no page"]["seconds"]
    for name, row in part["open"].items():
        shares = [row["brokers_cpu_s"][each] / row["seconds"] for each in nodes]
        cells = [
            name,
            f"{sum(row['requests'].values()) / row['seconds']:.2f}",
            f"{100 * row['console_cpu_s'] / row['seconds']:.2f}",
            *(f"{100 * share:.2f}" for share in shares),
            f"{100 * (sum(shares) - idle):.2f}",
        ]
        yield f"| {' | '.join(cells)} |"


def _search(part: Mapping[str, Any]) -> Iterator[str]:
    rounds = part["rounds"]
    yield from ["### Produce beside a search", "", SEARCH_METHOD.format(**part), "", _about(part), ""]
    yield "| | p50, ms | p99, ms | p99 of each round | console's CPU, % of a core | brokers' CPU, % |"
    yield "|---|---|---|---|---|---|"
    for name in ("without", "with"):
        own = [each[name] for each in rounds]
        cells = [
            f"{name} a search",
            f"{statistics.median(each['p50_ms'] for each in own):.1f}",
            f"{statistics.median(each['p99_ms'] for each in own):.1f}",
            ", ".join(f"{each['p99_ms']:.1f}" for each in own),
            f"{100 * statistics.median(each['console_cpu_s'] / each['seconds'] for each in own):.0f}",
            f"{100 * statistics.median(sum(each['brokers_cpu_s'].values()) / each['seconds'] for each in own):.0f}",
        ]
        yield f"| {' | '.join(cells)} |"
    ratios = interval(paired_ratios([each["without"]["p99_ms"] for each in rounds], [each["with"]["p99_ms"] for each in rounds]))
    yield ""
    yield (
        f"p99 with over without, round by round: {ratios.median:.2f} ({ratios.low:.2f} to {ratios.high:.2f}, which covers the "
        f"median with a probability of {ratios.coverage:.0%}). {sum(each['with']['searches'] for each in rounds)} searches came "
        "to their end."
    )
