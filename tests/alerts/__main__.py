"""``python -m tests.alerts [--promtool PATH]``: promtool checks the rules, runs every history, and parses every panel's question.

The same histories under another job must leave every rule quiet.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.alerts.histories import HISTORIES, History
from tidelog.metrics.dashboards import rules
from tidelog.metrics.dashboards.alerts import ALERTS
from tidelog.metrics.dashboards.panels import DASHBOARDS

JOB = "tidelog"


def cases(alert: str, history: History) -> list[dict[str, object]]:
    """Three of promtool's tests: it fires, it is quiet, and another job does not concern it."""
    other = {name.replace(f'job="{JOB}"', 'job="other"'): values for name, values in history.fires.items()}
    made = []
    for kind, series, count in (("fires", history.fires, 1), ("quiet", history.quiet, 0), ("other job", other, 0)):
        question = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
        if alert == "TidelogNoActiveController" and kind == "other job":
            continue  # no series at all has no sum
        made.append(
            {
                "name": f"{alert} {kind}",
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [
                    {
                        "expr": question,
                        "eval_time": f"{history.minutes}m",
                        "exp_samples": [{"labels": "{}", "value": count}],
                    }
                ],
            }
        )
    return made


def panels() -> dict[str, object]:
    """Every question of a dashboard as a recording rule, with what Grafana fills in."""
    found = []
    for board in DASHBOARDS:
        for number, expr in enumerate(board.queries):
            for name in ("job", *(each.name for each in board.variables)):
                expr = expr.replace(f"${name}", ".*")
            found.append({"record": f"{board.uid.replace('-', '_')}_{number}", "expr": expr.replace("$__rate_interval", "1m")})
    return {"groups": [{"name": "panels", "rules": found}]}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.alerts", description=__doc__)
    parser.add_argument("--promtool", default=shutil.which("promtool"))
    args = parser.parse_args()
    if args.promtool is None:
        parser.error("promtool is not on the PATH: install Debian's package prometheus, or name it with --promtool")
    missing = {each.name for each in ALERTS} ^ set(HISTORIES)
    if missing:
        parser.error(f"alerts and histories differ: {', '.join(sorted(missing))}")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "alerts.yml").write_text(rules.as_yaml(ALERTS, JOB))
        (home / "panels.yml").write_text(json.dumps(panels()))
        tests = [case for alert in ALERTS for case in cases(alert.name, HISTORIES[alert.name])]
        (home / "tests.yml").write_text(json.dumps({"rule_files": ["alerts.yml"], "evaluation_interval": "1m", "tests": tests}))
        steps = (["check", "rules", "alerts.yml", "panels.yml"], ["test", "rules", "tests.yml"])
        failed = [step for step in steps if subprocess.run([args.promtool, *step], cwd=home, check=False).returncode]
    questions = sum(len(board.queries) for board in DASHBOARDS)
    print(f"{len(ALERTS)} alerts, {len(tests)} histories, {questions} questions: {'FAILED' if failed else 'as they should be'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
