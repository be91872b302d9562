"""``tidelog top``: what nodes do now, from their facts: the event loop's time by API, the busiest clients and topics, times.

In a terminal it draws over itself until Ctrl-C. Into a pipe or a file it writes one page after the other as text.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import click

from tidelog.cli.connection_options import FILE
from tidelog.cli.facts.endpoint import DEFAULT, Access, Page, Reader
from tidelog.cli.facts.tables import SORTS, Table, fitting, tables
from tidelog.cli.refusal import CommandFailed, one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

ENDPOINT_VARIABLE = "TIDELOG_ENDPOINT"
MOST_NODES = 16
"""Nodes that are read at the same time."""
FIRST_WAIT_S = 1.1
"""Between the first page of a node, which may cover hours, and the next one."""


class Nodes:
    """The nodes that are watched."""

    def __init__(self, endpoints: Sequence[str], access: Access) -> None:
        self._endpoints = endpoints
        self._reader = Reader(access)

    def read(self) -> tuple[list[Page], list[str]]:
        """The pages, and what is wrong with the endpoints that gave none."""
        with ThreadPoolExecutor(min(MOST_NODES, len(self._endpoints))) as pool:
            found = list(pool.map(self._read, self._endpoints))
        pages = [page for each in found if not isinstance(each, str) for page in each]
        return pages, [each for each in found if isinstance(each, str)]

    def recent(self) -> tuple[list[Page], list[str]]:
        """As ``read``, with numbers of the last seconds: asks again where they would be of a long time."""
        pages, problems = self.read()
        if any((page.get("loop") or {}).get("seconds", 0) > 20 for page in pages):
            time.sleep(FIRST_WAIT_S)
            pages, problems = self.read()
        return pages, problems

    def _read(self, endpoint: str) -> list[Page] | str:
        try:
            return self._reader.read(endpoint)
        except CommandFailed as problem:
            return str(problem)


@click.command()
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="HOST:PORT|URL",
    envvar=ENDPOINT_VARIABLE,
    help=f"tidelog.http.listener of a node; once for each node. {DEFAULT} unless {ENDPOINT_VARIABLE} names others.",
)
@click.option("--once", is_flag=True, help="Print one page as text.")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON, a line for each node and reading.")
@click.option("--interval", type=click.FloatRange(0.5, 3600), default=2.0, show_default=True, help="Seconds between readings.")
@click.option("--sort", type=click.Choice(list(SORTS)), default="time", show_default=True, help="What the clients are sorted by.")
@click.option("--rows", type=click.IntRange(1, 50), help="Rows of each list; as many as fit, and 10 outside of a terminal.")
@click.option("--token-file", type=FILE, help="A file with a token that the nodes accept.")
@click.option("--user-file", type=FILE, help="A file with a line name:password that the nodes accept.")
@click.option("--ca-file", type=FILE, help="PEM with the authority of the nodes' certificates, for https.")
@click.option("--cert-file", type=FILE, help="PEM with a certificate and its key, where the nodes ask for one.")
def command(
    endpoints: tuple[str, ...],
    once: bool,
    as_json: bool,
    interval: float,
    sort: str,
    rows: int | None,
    token_file: str | None,
    user_file: str | None,
    ca_file: str | None,
    cert_file: str | None,
) -> None:
    """Show what nodes do now: which share of the loop each API takes, the busiest clients and topics, times of requests.

    The nodes serve it at their setting tidelog.http.listener. Numbers a second are of the last seconds.
    """
    with one_line("tidelog top: "), contextlib.suppress(KeyboardInterrupt):
        nodes = Nodes(endpoints or (DEFAULT,), Access(token_file, user_file, ca_file, cert_file))
        if as_json:
            _print_json(nodes, once=once, interval=interval)
        elif once or not sys.stdout.isatty():
            _print_pages(nodes, sort, rows or 10, once=once, interval=interval)
        else:
            _draw(nodes, sort, rows, interval)


def _print_json(nodes: Nodes, *, once: bool, interval: float) -> None:
    pages, problems = nodes.recent()
    while True:
        _complain(pages, problems)
        for page in pages:
            click.echo(json.dumps(page, separators=(",", ":")))
        if once:
            return
        time.sleep(interval)
        pages, problems = nodes.read()


def _print_pages(nodes: Nodes, sort: str, rows: int, *, once: bool, interval: float) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    pages, problems = nodes.recent()
    while True:
        _complain(pages, problems)
        for part in parts(pages, sort, rows, console.width):
            console.print(part)
        if once:
            return
        time.sleep(interval)
        pages, problems = nodes.read()


def _complain(pages: Sequence[Page], problems: Sequence[str]) -> None:
    """CommandFailed when no node gave a page; otherwise each problem is a line on stderr."""
    if not pages:
        raise CommandFailed("\n".join(problems))
    for problem in problems:
        click.echo(problem, err=True)


def _draw(nodes: Nodes, sort: str, rows: int | None, interval: float) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False)
    pages, problems = nodes.recent()
    _complain(pages, ())
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            most = rows or _room(console, len(pages), len(problems))
            foot = Text("Ctrl-C ends it", style="dim", no_wrap=True)
            missing = [Text(problem, style="red", no_wrap=True, overflow="ellipsis") for problem in problems]
            live.update(Group(*parts(pages, sort, most, console.width), *missing, foot), refresh=True)
            time.sleep(interval)
            pages, problems = nodes.read()


def _room(console: Console, nodes: int, problems: int) -> int:
    """Rows for each of the four lists, below the nodes; a table has two lines besides its rows."""
    return max(1, (console.height - nodes - problems - 1 - 5 * 2 - 5) // 4)


def parts(pages: Sequence[Page], sort: str, rows: int, width: int) -> Iterator[RenderableType]:
    """What is drawn for these pages: tables of at most ``width`` characters."""
    from rich.padding import Padding

    for table in tables(pages, sort, rows):
        yield Padding(_drawn(fitting(table, width)), (0, 0, 1, 0))


def _drawn(table: Table) -> RenderableType:
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=None, pad_edge=False, title=Text(table.title, style="bold"), title_justify="left")
    for column in table.columns:
        drawn.add_column(
            Text(column.title, style="dim"), justify="right" if column.right else "left", no_wrap=True, overflow="ellipsis"
        )
    for row in table.rows:
        # As Text: a name is not read as markup.
        drawn.add_row(*map(Text, row))
    return drawn
