"""``tidelog why-record GROUP TOPIC:PARTITION:OFFSET``: why a share group does not deliver a record, or what became of it.

Exit codes: 0 when nothing is wrong, 1 when the cluster could not be asked, 2 for wrong flags, 3 when a cause was found.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tidelog.cli import refusal
from tidelog.cli.connection_options import FILE, bootstrap_option, command_config_option
from tidelog.model.printable import printable

if TYPE_CHECKING:
    from tidelog.cli.why_record.causes import RecordVerdict
    from tidelog.console.verdict import Finding

FOUND = 3
ENDPOINT_VARIABLE = "TIDELOG_ENDPOINT"


@click.command("why-record")
@click.argument("group")
@click.argument("record", metavar="TOPIC:PARTITION:OFFSET")
@bootstrap_option
@command_config_option
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="HOST:PORT|URL",
    envvar=ENDPOINT_VARIABLE,
    help="tidelog.http.listener of a node; once for each node. The leader of the partition knows who holds the record. "
    f"[http://localhost:9644, unless {ENDPOINT_VARIABLE} names others]",
)
@click.option("--token-file", type=FILE, help="A file with a token that the nodes accept.")
@click.option("--user-file", type=FILE, help="A file with a line name:password that the nodes accept.")
@click.option("--ca-file", type=FILE, help="PEM with the authority of the nodes' certificates, for https.")
@click.option("--cert-file", type=FILE, help="PEM with a certificate and its key, where the nodes ask for one.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def command(
    group: str,
    record: str,
    bootstrap_server: str | None,
    command_config: str | None,
    endpoints: tuple[str, ...],
    token_file: str | None,
    user_file: str | None,
    ca_file: str | None,
    cert_file: str | None,
    as_json: bool,
) -> None:
    """Say why a share group does not deliver a record: one cause with its evidence, and a command that helps.

    It only reads. Exit code 0: nothing is wrong; 3: a cause was found.
    """
    from tidelog.cli.dead_letters.command import place
    from tidelog.model.ids import TopicPartition

    topic, partition, offset = place(record)
    bootstrap = refusal.required(bootstrap_server)
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.facts.endpoint import DEFAULT, Access
    from tidelog.cli.why_record.causes import decide
    from tidelog.cli.why_record.collecting import collect

    with refusal.one_line("Error: "), AdminSession(bootstrap, command_config) as session:
        access = Access(token_file, user_file, ca_file, cert_file)
        facts = collect(session, group, TopicPartition(topic, partition), offset, endpoints or (DEFAULT,), access)
    verdict = decide(facts)
    if as_json:
        click.echo(json.dumps(verdict.as_json(), indent=2))
    else:
        where = f" --bootstrap-server {bootstrap}" + (f" --command-config {command_config}" if command_config else "")
        for line in text(verdict, where):
            click.echo(printable(line))
    sys.exit(FOUND if verdict.primary.alarm else 0)


def text(verdict: RecordVerdict, where: str = "") -> Iterator[str]:
    """The lines for a person. ``where``: the flags that commands need to reach the same cluster."""
    facts = verdict.facts
    yield f"{facts.topic}:{facts.partition}:{facts.offset} for share group {facts.group}: {verdict.state}"
    yield from _finding("Cause" if verdict.primary.alarm else "Answer", verdict.primary, where)
    for each in verdict.contributing:
        yield from _finding("Also", each, where)
    if facts.unseen:
        yield "Not visible from here: " + "; ".join(facts.unseen)


def _finding(what: str, finding: Finding, where: str) -> Iterator[str]:
    sure = "" if finding.certain else ", not certain"
    yield f"{what} ({finding.cause}{sure}): {finding.title}"
    for line in finding.evidence:
        yield f"  {line}"
    yield f"  -> {finding.advice}"
    if finding.command:
        yield f"     {finding.command}{where}"
