"""Dashboards as the JSON that Grafana imports (schema 39, Grafana 10.4 and later)."""

from __future__ import annotations

import json
from typing import Any, Final

from tidelog.metrics.dashboards.board import Dashboard, Kind, Panel, Unit, Variable

_WIDTH: Final = 24
"""Columns of Grafana's grid."""
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_NUMBER_SIZE: Final = (4, 4)
_GRAPH_SIZE: Final = (8, 8)


def as_json(board: Dashboard) -> str:
    """The file of a dashboard. The data source and the job are chosen at its top."""
    return json.dumps(_model(board), indent=2) + "\n"


def _model(board: Dashboard) -> dict[str, Any]:
    return {
        "uid": board.uid,
        "title": board.title,
        "description": board.doc,
        "tags": ["tidelog", "kafka"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [_data_source(), *map(_choice, (_JOB, *board.variables))]},
        "panels": _panels(board),
        "links": [{"type": "dashboards", "title": "tidelog", "tags": ["tidelog"], "keepTime": True, "includeVars": True}],
    }


_JOB: Final = Variable("job", "job", "tidelog_info")


def _data_source() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}}


def _choice(variable: Variable) -> dict[str, Any]:
    of_job = "" if variable is _JOB else '{job=~"$job"}'
    return {
        "name": variable.name,
        "label": variable.name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": f"label_values({variable.metric}{of_job}, {variable.label})", "refId": variable.name},
        "refresh": 2,  # when the time range changes: topics and groups come and go
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _panels(board: Dashboard) -> list[dict[str, Any]]:
    """All rows and panels, laid out from left to right and down."""
    found: list[dict[str, Any]] = []
    y = 0
    for row in board.rows:
        found.append({"id": len(found) + 1, "type": "row", "title": row.title, "gridPos": _place(0, y, _WIDTH, 1), "panels": []})
        y += 1
        x = height = 0
        for panel in row.panels:
            width, tall = _NUMBER_SIZE if panel.kind is Kind.NUMBER else _GRAPH_SIZE
            if x + width > _WIDTH:
                x, y, height = 0, y + height, 0
            found.append(_panel(panel, len(found) + 1, _place(x, y, width, tall)))
            x, height = x + width, max(height, tall)
        y += height
    return found


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + index), "datasource": _SOURCE, "expr": query.expr, "legendFormat": query.legend or "__auto"}
        for index, query in enumerate(panel.queries)
    ]
    defaults: dict[str, Any] = {"unit": panel.unit.value, "thresholds": _thresholds(panel)}
    options: dict[str, Any] = {}
    if panel.kind is Kind.NUMBER:
        # No series is an answer too: a cluster without fenced brokers may have no such number yet.
        defaults["noValue"] = "-"
        options = {"colorMode": "value", "reduceOptions": {"calcs": ["lastNotNull"]}}
    else:
        if panel.unit in {Unit.COUNT, Unit.BYTES, Unit.BYTES_A_SECOND, Unit.A_SECOND}:
            defaults["min"] = 0
        options = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    return {
        "id": number,
        "type": panel.kind.value,
        "title": panel.title,
        "description": panel.doc,
        "datasource": _SOURCE,
        "gridPos": place,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
    }


def _thresholds(panel: Panel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "text", "value": None}]
    if panel.bad_from is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.bad_from}]
    elif panel.bad_below is not None:
        steps = [{"color": "red", "value": None}, {"color": "green", "value": panel.bad_below}]
    return {"mode": "absolute", "steps": steps}
