"""Surge by zone over the evening, as a PNG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from demo.city import ZONES


def draw(surges: Iterable[Mapping[str, Any]], file: Path) -> None:
    """One line for each zone. ``surges``: the values of the topic."""
    import matplotlib as mpl

    mpl.use("Agg")  # there may be no screen
    from matplotlib import dates
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 5), layout="constrained")
    found = sorted(surges, key=lambda row: row["minute"])
    for zone in ZONES:
        points = [(datetime.fromtimestamp(row["minute"] / 1000, UTC), row["surge"]) for row in found if row["zone"] == zone]
        if points:
            times, values = zip(*points, strict=True)
            axes.plot(times, values, label=zone, marker=".", linewidth=1.5)
    axes.set_title("Surge by zone and minute")
    axes.set_ylabel("bookings for each free driver, from 1 to 5")
    axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M", tz=UTC))  # type: ignore[no-untyped-call]
    axes.grid(alpha=0.3)
    if found:
        axes.legend(loc="upper left", ncols=3)
    figure.savefig(file, dpi=120)
    plt.close(figure)
