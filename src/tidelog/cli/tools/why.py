"""``tidelog why GROUP``: why a consumer group makes no progress, of any Kafka cluster. It asks twice and compares.

Exit codes: 0 when nothing is wrong, 1 when the cluster could not be asked, 2 for wrong flags, 3 when a cause was found.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import click

from tidelog.cli import refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option
from tidelog.console.verdict import Finding, Verdict
from tidelog.model.printable import printable

STUCK = 3
PATIENCE_MS = 10_000
"""How long a coordinator may fail to answer until that is the finding: longer than one takes to move to another broker."""


@click.command()
@click.argument("group")
@bootstrap_option
@command_config_option
@click.option(
    "--seconds",
    type=click.FloatRange(0, 3600),
    default=6.0,
    show_default=True,
    help="The time between the two looks: longer than the group's commit interval, whose default is 5.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def command(group: str, bootstrap_server: str | None, command_config: str | None, seconds: float, as_json: bool) -> None:
    """Say why a consumer group is stuck: one cause with its evidence and a command that helps, then what is fine.

    It only reads. Exit code 0: nothing is wrong; 3: a cause was found.
    """
    from tidelog.cli.admin_session import AdminSession
    from tidelog.console.causes import diagnose
    from tidelog.console.collecting import sample
    from tidelog.console.group_facts import GroupFacts

    with (
        refusal.one_line("Error: "),
        AdminSession(refusal.required(bootstrap_server), command_config, patience_ms=PATIENCE_MS) as session,
    ):
        began = _now_ms()
        first = session.run(sample(group, began))
        if first.coordinator_error is None:
            time.sleep(seconds)
            last = session.run(sample(group, _now_ms()))
        else:
            last = replace(first, at_ms=_now_ms())  # it was asked again and again already
        verdict = diagnose(GroupFacts(group, first, last))
        if as_json:
            click.echo(json.dumps(verdict.as_json(), indent=2))
        else:
            where = f" --bootstrap-server {bootstrap_server}" + (f" --command-config {command_config}" if command_config else "")
            for line in text(verdict, where):
                click.echo(printable(line))
        sys.exit(0 if verdict.primary is None else STUCK)


def text(verdict: Verdict, where: str = "") -> Iterator[str]:
    """The lines for a person. ``where``: the flags that commands need to reach the same cluster."""
    state = f"{verdict.state}, " if verdict.state else ""
    yield f"{verdict.group_id}: {state}{verdict.lag} records behind, watched for {verdict.seconds:.0f} s"
    if verdict.primary is None:
        yield "Nothing is wrong." if all(each.certain for each in verdict.notes) else "Nothing is wrong for certain."
    else:
        yield from _finding("Cause", verdict.primary, where)
    for each in verdict.contributing:
        yield from _finding("Also", each, where)
    for each in verdict.notes:
        yield from _finding("No fault" if each.certain else "Not certain", each, where)
    if verdict.fine:
        yield "Checked and fine: " + "; ".join(verdict.fine)
    yield "Not visible from here: " + "; ".join(verdict.unseen)


def _finding(what: str, finding: Finding, where: str) -> Iterator[str]:
    yield f"{what} ({finding.cause}): {finding.title}"
    for line in finding.evidence:
        yield f"  {line}"
    yield f"  -> {finding.advice}"
    if finding.command:
        yield f"     {finding.command}{where}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
