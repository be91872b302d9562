from __future__ import annotations

import yaml

from tidelog.metrics.dashboards import rules
from tidelog.metrics.dashboards.alerts import ALERTS


def test_the_rules_are_yaml_of_one_job() -> None:
    group = yaml.safe_load(rules.as_yaml(ALERTS, 'my "own" job'))["groups"][0]
    assert [each["alert"] for each in group["rules"]] == [each.name for each in ALERTS]
    for written, alert in zip(group["rules"], ALERTS, strict=True):
        assert r'job="my \"own\" job"' in written["expr"]
        assert "$job" not in written["expr"]
        assert written["annotations"] == {"summary": alert.summary, "description": alert.todo}
        assert written["labels"] == {"severity": alert.severity}
