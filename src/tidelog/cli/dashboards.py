"""``tidelog dashboards``: files for Grafana and Prometheus, which show and watch the metrics of nodes."""

from __future__ import annotations

from pathlib import Path

import click

from tidelog.cli.refusal import CommandFailed, one_line
from tidelog.metrics.dashboards import grafana, rules
from tidelog.metrics.dashboards.alerts import ALERTS
from tidelog.metrics.dashboards.panels import DASHBOARDS

ALERT_FILE = "tidelog-alerts.yml"


def files(job: str) -> dict[str, str]:
    """The contents of each file, by its name."""
    return {f"{each.uid}.json": grafana.as_json(each) for each in DASHBOARDS} | {ALERT_FILE: rules.as_yaml(ALERTS, job)}


def write(out: Path, job: str, *, force: bool) -> list[Path]:
    """Writes the files into ``out``. CommandFailed, before anything is written, when one exists with other contents."""
    wanted = {out / name: text.encode() for name, text in files(job).items()}
    try:
        changed = [path for path, text in wanted.items() if path.exists() and path.read_bytes() != text]
        if changed and not force:
            raise CommandFailed(f"{changed[0]} exists with other contents: choose another folder, or replace it with --force")
        out.mkdir(parents=True, exist_ok=True)
        for path, text in wanted.items():
            path.write_bytes(text)
    except OSError as error:
        raise CommandFailed(f"{error.filename} cannot be written: {error.strerror}") from error
    return list(wanted)


@click.command("dashboards", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="The folder for the files.")
@click.option("--job", default="tidelog", show_default=True, help="job_name of the nodes in Prometheus, for the alert rules.")
@click.option("--force", is_flag=True, help="Replace files of these names.")
def command(out: Path, job: str, force: bool) -> None:
    """Write dashboards for Grafana and alert rules for Prometheus.

    Import each JSON file in Grafana (Dashboards, New, Import), and name the YAML file under rule_files in prometheus.yml.
    """
    with one_line("tidelog: "):
        for path in write(out, job, force=force):
            print(path)
