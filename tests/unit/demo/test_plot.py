"""The plot of surges: a panel for each zone."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra demo is not installed")

from demo.city import ZONES
from demo.plot import draw, figure_of

SURGES = [
    {"zone": zone, "minute": 60_000 * minute, "surge": 1.0 + minute % 4}
    for minute in (2, 1, 3)
    for zone in ZONES
    if zone != "stadium"
]


def test_each_zone_has_a_panel_of_its_own_and_all_the_same_axes(tmp_path: Path) -> None:
    from matplotlib import pyplot as plt

    figure = figure_of(SURGES)
    panels = {axes.get_title(): axes for axes in figure.axes}
    assert tuple(panels) == ZONES
    assert [len(axes.lines) for axes in panels.values()] == [0 if zone == "stadium" else 1 for zone in ZONES]
    assert list(panels["airport"].lines[0].get_ydata()) == [2.0, 3.0, 4.0]
    assert len({axes.get_ylim() for axes in panels.values()}) == 1
    assert all(axes.get_legend() is None for axes in panels.values())
    plt.close(figure)
    draw([], tmp_path / "empty.png")
    assert (tmp_path / "empty.png").read_bytes().startswith(b"\x89PNG")
