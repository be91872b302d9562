from __future__ import annotations

import pytest

from tests.alerts.histories import HISTORIES
from tests.unit.metrics.dashboards.questions import check
from tidelog.metrics.dashboards.alerts import ALERTS, Alert


@pytest.mark.parametrize("alert", ALERTS, ids=lambda each: each.name)
def test_an_alert_asks_for_what_a_node_serves(alert: Alert) -> None:
    check(alert.expr)


def test_every_alert_has_a_history() -> None:
    assert {each.name for each in ALERTS} == set(HISTORIES)
    assert len({each.name for each in ALERTS}) == len(ALERTS)
