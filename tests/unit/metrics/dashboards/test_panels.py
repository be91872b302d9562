from __future__ import annotations

import pytest

from tests.unit.metrics.dashboards.questions import METRICS, check, labels_of
from tidelog.metrics.dashboards.board import Query
from tidelog.metrics.dashboards.panels import DASHBOARDS

QUERIES = {
    f"{board.uid}: {panel.title} {number}": query
    for board in DASHBOARDS
    for row in board.rows
    for panel in row.panels
    for number, query in enumerate(panel.queries)
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_panel_asks_for_what_a_node_serves(query: Query) -> None:
    check(query.expr, query.legend)


def test_uids_and_variables_are_unique_and_served() -> None:
    assert len({each.uid for each in DASHBOARDS}) == len(DASHBOARDS)
    for board in DASHBOARDS:
        for variable in board.variables:
            assert variable.label in labels_of(METRICS[variable.metric])
