from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from tidelog.metrics.dashboards import grafana
from tidelog.metrics.dashboards.board import Dashboard, Row, number
from tidelog.metrics.dashboards.panels import DASHBOARDS


@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda each: each.uid)
def test_a_dashboard_is_laid_out_without_overlap_and_asks_the_chosen_source(board: Dashboard) -> None:
    model: dict[str, Any] = json.loads(grafana.as_json(board))
    panels = model["panels"]
    assert len(panels) == len(board.rows) + sum(len(row.panels) for row in board.rows)
    assert [each["id"] for each in panels] == list(range(1, len(panels) + 1))
    cells = Counter(
        (x, y)
        for place in (each["gridPos"] for each in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    )
    assert set(cells.values()) == {1}
    assert max(x for x, _ in cells) < 24
    names = {each["name"] for each in model["templating"]["list"]}
    assert {"datasource", "job"} <= names
    for panel in panels:
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            used = {name for each in panel["targets"] for name in re.findall(r"\$(\w+)", each["expr"])}
            assert used - {"__rate_interval"} <= names


@pytest.mark.parametrize(
    ("bad", "colors"),
    [({}, ["text"]), ({"bad_from": 1}, ["green", "red"]), ({"bad_below": 1}, ["red", "green"])],
)
def test_a_number_is_red_where_it_is_bad(bad: dict[str, float], colors: list[str]) -> None:
    board = Dashboard("uid", "title", "doc", (Row("row", (number("nodes", "up", **bad),)),))
    panel = json.loads(grafana.as_json(board))["panels"][1]
    assert [each["color"] for each in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]] == colors
