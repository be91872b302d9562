"""How figures are written, and where in a page of Markdown."""

from __future__ import annotations

from pathlib import Path

from bench.pair.statistics import Interval


def shown(value: float | None) -> str:
    """Three digits; nothing for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def shown_ratio(found: Interval | None) -> str:
    """The median and its interval; nothing for None."""
    return "" if found is None else f"{found.median:.2f} ({found.low:.2f}-{found.high:.2f})"


def write_between_marks(page: Path, marks: tuple[str, str], text: str) -> None:
    """Put the text into the page. ValueError when it does not have the marks."""
    before, begin, rest = page.read_text().partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"{page} has no section between {marks[0]} and {marks[1]}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
