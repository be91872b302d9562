"""What the demo shows while it runs: tables that are redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from demo.books import Line, Row
from demo.city import TOPICS

BAR = 24
HIGHEST = 5.0
LINES_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that can be seen at one moment. ``groups``: lag (None: not known) and what the group says, by group."""

    phase: str
    elapsed_s: float
    city_ms: int
    produced: dict[str, int] = field(default_factory=dict)
    landed: dict[str, int] = field(default_factory=dict)
    letters: dict[str, int] = field(default_factory=dict)
    groups: dict[str, tuple[int | None, str]] = field(default_factory=dict)
    surge: dict[str, float] = field(default_factory=dict)


class View(Protocol):
    """Where a board is shown. A context: it ends with what it began."""

    def __enter__(self) -> View: ...
    def __exit__(self, *error: object) -> None: ...
    def show(self, board: Board) -> None:
        """This is how things are now."""


class Terminal:
    """Tables in place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Terminal:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def show(self, board: Board) -> None:
        """Draws it."""
        self._live.update(drawn(board))


class Lines:
    """A line when the phase changes, and every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._phase = ""
        self._last = 0.0

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *error: object) -> None:
        """There is nothing to put back."""

    def show(self, board: Board) -> None:
        """Prints it when it is time to."""
        now = time.monotonic()
        if board.phase == self._phase and now - self._last < LINES_EVERY_S:
            return
        self._phase, self._last = board.phase, now
        self._console.print(spoken(board), highlight=False, markup=False, soft_wrap=True)


def view_for(console: Console, *, wanted: bool) -> View:
    """Tables on a terminal if they are wanted, else lines."""
    return Terminal(console) if wanted and console.is_terminal else Lines(console)


def clock(ms: int) -> str:
    """The time in the city."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S")


def spoken(board: Board) -> str:
    """A board in a line."""
    lags = " ".join(f"{group} {'?' if lag is None else lag}" for group, (lag, _) in board.groups.items())
    surge = " ".join(f"{zone} {value:.1f}x" for zone, value in sorted(board.surge.items()) if value > 1)
    parts = [
        f"{board.elapsed_s:5.1f} s  {board.phase}",
        f"produced {sum(board.produced.values()):,}  landed {sum(board.landed.values()):,}  "
        f"dead letters {sum(board.letters.values()):,}",
        f"lag {lags}" if lags else "",
        f"surge {surge}" if surge else "",
    ]
    return "  |  ".join(part for part in parts if part)


def drawn(board: Board) -> Panel:
    """A board as tables."""
    flow = Table("topic", title="topics into tables", title_justify="left", expand=True)
    for name in ("produced", "landed in bronze", "to come", "dead letters"):
        flow.add_column(name, justify="right")
    for topic in TOPICS:
        produced, landed = board.produced.get(topic, 0), board.landed.get(topic, 0)
        flow.add_row(topic, f"{produced:,}", f"{landed:,}", f"{max(0, produced - landed):,}", f"{board.letters.get(topic, 0):,}")
    groups = Table("group", title="consumer groups", title_justify="left", expand=True)
    groups.add_column("lag", justify="right")
    groups.add_column("says")
    for group, (lag, said) in board.groups.items():
        groups.add_row(group, "?" if lag is None else f"{lag:,}", said)
    surge = Table("zone", title="surge, from the topic that the pipeline writes", title_justify="left", expand=True)
    surge.add_column("now", justify="right")
    surge.add_column("")
    for zone, value in sorted(board.surge.items()):
        colour = "red" if value >= 3 else "yellow" if value >= 1.5 else "green"
        surge.add_row(zone, f"{value:.2f}x", Text("█" * max(1, round(value / HIGHEST * BAR)), style=colour))
    title = f"{board.phase}  ·  {board.elapsed_s:.0f} s  ·  {clock(board.city_ms)} in the city"
    return Panel(Group(flow, groups, surge), title=title)


def books_table(rows: list[Row], surge_rows: int) -> Table:
    """Where all records went."""
    names = ("produced", "bronze", "silver", "duplicates", "dead letters", "late (in silver)")
    table = Table("topic", title="where all records went", title_justify="left")
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        numbers = (row.produced, row.bronze, row.silver, row.duplicates, row.letters, row.late)
        table.add_row(row.topic, *(f"{number:,}" for number in numbers))
    table.add_row("surge", f"{surge_rows:,}", *[""] * (len(names) - 1))
    return table


def lines_table(lines: list[Line]) -> Table:
    """The comparisons and their results."""
    table = Table("holds", "statement", title="do they add up?", title_justify="left")
    table.add_column("left", justify="right")
    table.add_column("right", justify="right")
    for line in lines:
        mark, colour = ("yes", "green") if line.holds else ("NO", "bold red")
        table.add_row(Text(mark, style=colour), line.said, f"{line.left:,}", f"{line.right:,}")
    return table
