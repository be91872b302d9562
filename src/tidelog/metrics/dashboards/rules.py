"""Alert rules as the YAML that Prometheus reads."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tidelog.metrics.dashboards.alerts import Alert


def as_yaml(alerts: Iterable[Alert], job: str) -> str:
    """A rules file with one group. ``job``: the job_name under which Prometheus scrapes the nodes."""
    lines = ["groups:", "  - name: tidelog", "    rules:"]
    for alert in alerts:
        lines += [
            f"      - alert: {alert.name}",
            f"        expr: {_text(for_job(alert.expr, job))}",
            f"        for: {alert.since}",
            f"        labels: {{severity: {alert.severity.value}}}",
            "        annotations:",
            f"          summary: {_text(alert.summary)}",
            f"          description: {_text(alert.todo)}",
        ]
    return "\n".join(lines) + "\n"


def for_job(expr: str, job: str) -> str:
    """``expr`` about this job. Quotes and backslashes are PromQL's."""
    return expr.replace("$job", job.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))


def _text(text: str) -> str:
    """A string of JSON, which is one of YAML."""
    return json.dumps(text, ensure_ascii=False)
