"""Surge by zone over the evening, as a PNG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from demo.city import ZONES

COLUMNS = 3


def draw(surges: Iterable[Mapping[str, Any]], file: Path) -> None:
    """Writes the plot. ``surges``: the values of the topic."""
    from matplotlib import pyplot as plt

    figure = figure_of(surges)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def figure_of(surges: Iterable[Mapping[str, Any]]) -> Any:
    """A panel for each zone, all with the same axes: six lines in one hide each other."""
    import matplotlib as mpl

    mpl.use("Agg")  # there may be no screen
    from matplotlib import dates
    from matplotlib import pyplot as plt

    rows = -(-len(ZONES) // COLUMNS)
    figure, panels = plt.subplots(
        rows, COLUMNS, figsize=(10, 2.5 * rows), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    found = sorted(surges, key=lambda row: row["minute"])
    for zone, axes in zip(ZONES, panels.flat, strict=False):
        points = [(datetime.fromtimestamp(row["minute"] / 1000, UTC), row["surge"]) for row in found if row["zone"] == zone]
        if points:
            times, values = zip(*points, strict=True)
            axes.plot(times, values, marker=".", linewidth=1.5)
        axes.set_title(zone)
        axes.set_ylim(0.8, 5.2)
        axes.xaxis.set_major_locator(dates.AutoDateLocator(maxticks=5))  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M", tz=UTC))  # type: ignore[no-untyped-call]
        axes.grid(alpha=0.3)
    for axes in panels.flat[len(ZONES) :]:
        axes.set_visible(False)
    figure.suptitle("Surge by zone and minute")
    figure.supylabel("bookings for each free driver, from 1 to 5")
    return figure
