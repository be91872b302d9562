"""What a dashboard is: rows of panels, each with the questions that it puts to Prometheus."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """What a panel's numbers are, by Grafana's names."""

    COUNT = "short"
    BYTES = "bytes"
    BYTES_A_SECOND = "Bps"
    A_SECOND = "reqps"
    MS = "ms"
    SECONDS = "s"
    SHARE = "percentunit"


class Kind(StrEnum):
    """How a panel looks, by Grafana's names."""

    LINES = "timeseries"
    NUMBER = "stat"


@dataclass(frozen=True, slots=True)
class Query:
    """A question in PromQL. ``legend`` names a line by its labels, as in ``{{instance}}``."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph or number. ``doc`` says what the reader should make of it."""

    title: str
    queries: tuple[Query, ...]
    unit: Unit = Unit.COUNT
    kind: Kind = Kind.LINES
    doc: str = ""
    bad_from: float | None = None
    """A number is red from here on; None where no value is bad in itself."""
    bad_below: float | None = None
    """A number is red below this."""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice at the top of a dashboard: the values that ``label`` has in ``metric``."""

    name: str
    label: str
    metric: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    """``uid`` stays the same from release to release, so that links to the dashboard hold and an import replaces it."""

    uid: str
    title: str
    doc: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()

    @property
    def queries(self) -> tuple[str, ...]:
        """Every question, as it is written here: with ``$job`` and the variables."""
        return tuple(query.expr for row in self.rows for panel in row.panels for query in panel.queries)


def line(title: str, *queries: str | Query, unit: Unit = Unit.COUNT, doc: str = "", by: str = "{{instance}}") -> Panel:
    """A graph. ``by`` is the legend of questions without one."""
    made = tuple(each if isinstance(each, Query) else Query(each, by) for each in queries)
    return Panel(title, made, unit, Kind.LINES, doc)


def number(
    title: str,
    expr: str,
    *,
    unit: Unit = Unit.COUNT,
    doc: str = "",
    bad_from: float | None = None,
    bad_below: float | None = None,
) -> Panel:
    """A single number."""
    return Panel(title, (Query(expr),), unit, Kind.NUMBER, doc, bad_from, bad_below)
