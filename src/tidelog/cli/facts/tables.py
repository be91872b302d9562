"""The pages of facts of some nodes as rows of text: pure, so that a test needs no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tidelog.model.printable import printable

Page = Mapping[str, Any]
HIDDEN: Final = "(hidden)"
"""In place of a name that the reader may not see."""
SORTS: Final = {"time": "share", "requests": "requests", "in": "bytes_in", "out": "bytes_out"}
"""By what the clients are sorted, and the fact that holds it."""


class Column(NamedTuple):
    """``rank``: columns of high rank are left out first where a terminal is narrow."""

    title: str
    right: bool = True
    rank: int = 0


class Table(NamedTuple):
    """One table: a row has a text a column."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]


def tables(pages: Sequence[Page], sort: str, most: int) -> list[Table]:
    """All tables of these pages, one page a node; at most ``most`` rows of a list."""
    several = len(pages) > 1
    return [
        _nodes(pages),
        _apis(pages, several, most),
        _clients(pages, several, SORTS[sort], most),
        _topics(pages, several, most),
        _phases(pages, several, most),
    ]


def fitting(table: Table, width: int) -> Table:
    """The table without the columns for which a terminal of ``width`` characters has no room."""
    columns, rows = list(table.columns), [list(row) for row in table.rows]

    def needed() -> int:
        texts = ([column.title, *(row[at] for row in rows)] for at, column in enumerate(columns))
        return sum(max(map(len, each)) + 2 for each in texts)

    while needed() > width and max(column.rank for column in columns):
        at = max(range(len(columns)), key=lambda each: (columns[each].rank, each))
        del columns[at]
        for row in rows:
            del row[at]
    return Table(table.title, columns, rows)


# -- tables -----------------------------------------------------------------------------------------------------------------


def _nodes(pages: Iterable[Page]) -> Table:
    columns = (
        Column("node"),
        Column("roles", right=False, rank=5),
        Column("up", rank=4),
        Column("loop"),
        Column("memory", rank=2),
        Column("files", rank=5),
        Column("connections"),
        Column("parked", rank=1),
        Column("groups", rank=3),
        Column("open txns", rank=4),
        Column("partitions", rank=3),
        Column("under repl.", rank=1),
        Column("version", right=False, rank=6),
    )
    rows = []
    for page in pages:
        node, process, partitions = _of(page, "node"), _of(page, "process"), _of(page, "partitions")
        rows.append(
            [
                _count(node.get("id")),
                "+".join(node.get("roles") or ()),
                duration(node.get("uptime_seconds")),
                percent(_of(page, "loop").get("busy")),
                size(process.get("memory_bytes")),
                _count(process.get("open_files")),
                _count(_of(page, "connections").get("open")),
                _count(_sum(page, "parked", "requests")),
                _count(_sum(page, "groups", "count")),
                _count(_of(page, "transactions").get("open")),
                _count(partitions.get("count")),
                _count(partitions.get("under_replicated")),
                _text(node.get("version")),
            ]
        )
    return Table("Nodes", columns, rows)


def _apis(pages: Sequence[Page], several: bool, most: int) -> Table:
    columns = (*_node_column(several), Column("API", right=False), Column("loop"), Column("requests/s"))

    def row(api: Mapping[str, Any], seconds: float) -> list[str]:
        return [_text(api["api"]) or "logins, refused", percent(api["share"]), rate(api["requests"], seconds)]

    return Table("The loop's time by API", columns, _rows(pages, several, "loop", "apis", lambda api: api["share"], row, most))


def _clients(pages: Sequence[Page], several: bool, sort: str, most: int) -> Table:
    columns = (
        *_node_column(several),
        Column("client id", right=False),
        Column("principal", right=False, rank=3),
        Column("host", right=False, rank=2),
        Column("loop"),
        Column("requests/s"),
        Column("in/s", rank=1),
        Column("out/s", rank=1),
    )

    def row(client: Mapping[str, Any], seconds: float) -> list[str]:
        return [
            _text(client["client_id"]),
            _text(client["principal"]),
            _text(client["host"]),
            percent(client["share"]),
            rate(client["requests"], seconds),
            size(_a_second(client["bytes_in"], seconds)),
            size(_a_second(client["bytes_out"], seconds)),
        ]

    return Table("Busiest clients", columns, _rows(pages, several, "clients", "busiest", lambda client: client[sort], row, most))


def _topics(pages: Sequence[Page], several: bool, most: int) -> Table:
    columns = (
        *_node_column(several),
        Column("topic", right=False),
        Column("records/s"),
        Column("in/s"),
        Column("out/s"),
        Column("replication/s", rank=2),
        Column("requests/s", rank=1),
    )

    def row(topic: Mapping[str, Any], seconds: float) -> list[str]:
        return [
            _text(topic["topic"]),
            rate(topic["records_in"], seconds),
            *(size(_a_second(topic[name], seconds)) for name in ("bytes_in", "bytes_out", "replication_bytes")),
            rate(topic["requests"], seconds),
        ]

    def weight(topic: Mapping[str, Any]) -> int:
        return int(topic["bytes_in"] + topic["bytes_out"] + topic["replication_bytes"])

    return Table("Busiest topics", columns, _rows(pages, several, "topics", "busiest", weight, row, most))


def _phases(pages: Sequence[Page], several: bool, most: int) -> Table:
    """The p99 of each phase, those of the longest total first."""
    phases = ("total", "request queue", "local", "remote", "throttle", "response queue", "response send")
    ranks = (0, 2, 0, 0, 3, 2, 1)
    columns = (
        *_node_column(several),
        Column("p99 in ms", right=False),
        *(Column(phase, rank=rank) for phase, rank in zip(phases, ranks, strict=True)),
    )

    def p99(api: Mapping[str, Any]) -> dict[str, float | None]:
        return {phase["phase"]: phase["p99_ms"] for phase in api["phases"]}

    found = []
    for page in pages:
        for api in page.get("requests") or ():
            times = p99(api)
            if times.get("total") is not None:
                texts = [_text(api["api"]), *(milliseconds(times.get(phase)) for phase in phases)]
                found.append((times["total"] or 0.0, [*_node(page, several), *texts]))
    found.sort(key=lambda each: -each[0])
    return Table("Times of requests", columns, [row for _, row in found[:most]])


def _rows(
    pages: Sequence[Page],
    several: bool,
    section: str,
    entries: str,
    weight: Callable[[Mapping[str, Any]], float],
    row: Callable[[Mapping[str, Any], float], list[str]],
    most: int,
) -> list[list[str]]:
    """The entries of a list of all pages, the heaviest first."""
    found = []
    for page in pages:
        part = _of(page, section)
        for entry in part.get(entries) or ():
            found.append((weight(entry), [*_node(page, several), *row(entry, part["seconds"])]))
    found.sort(key=lambda each: -each[0])
    return [texts for _, texts in found[:most]]


def _node_column(several: bool) -> tuple[Column, ...]:
    return (Column("node"),) if several else ()


def _node(page: Page, several: bool) -> list[str]:
    return [_count(_of(page, "node").get("id"))] if several else []


def _of(page: Page, section: str) -> Mapping[str, Any]:
    """A section; empty where the page has none."""
    return page.get(section) or {}


def _sum(page: Page, section: str, fact: str) -> int | None:
    entries = page.get(section)
    return None if entries is None else sum(entry[fact] for entry in entries)


# -- texts ------------------------------------------------------------------------------------------------------------------


def _text(value: str | None) -> str:
    """A name, which may come from anyone who connects."""
    return HIDDEN if value is None else printable(value)


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _a_second(value: int, seconds: float) -> float:
    return value / seconds if seconds > 0 else 0.0


def rate(value: int, seconds: float) -> str:
    """So many a second."""
    number = _a_second(value, seconds)
    return f"{number:,.0f}" if number >= 10 or not number else f"{number:.1f}" if number >= 0.05 else "<0.1"


def percent(share: float | None) -> str:
    """A share of 0 to 1."""
    return "-" if share is None else f"{100 * share:.1f} %"


def size(value: float | None) -> str:
    """Bytes, in three digits or so."""
    if value is None:
        return "-"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def milliseconds(value: float | None) -> str:
    """Milliseconds, without the unit."""
    return "-" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def duration(seconds: float | None) -> str:
    """In the two largest units."""
    if seconds is None:
        return "-"
    whole = int(seconds)
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
