"""``tidelog why GROUP``: why a group makes no progress, of any Kafka cluster. It asks twice and compares.

Exit codes: 0 when nothing is wrong, 1 when the cluster could not be asked, 2 for wrong flags, 3 when a cause was found.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from tidelog.cli import refusal
from tidelog.cli.connection_options import FILE, bootstrap_option, command_config_option
from tidelog.console.verdict import Finding, Verdict
from tidelog.model.printable import printable

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession
    from tidelog.console.group_facts import Sample

STUCK = 3
DENIALS_MS = 60_000
BETWEEN_S = 0.5
MOST_LOOKS = 600
ENDPOINT_VARIABLE = "TIDELOG_ENDPOINT"
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
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="HOST:PORT|URL",
    envvar=ENDPOINT_VARIABLE,
    help="tidelog.http.listener of a node; once for each node. Nodes know what no request of Kafka's protocol tells: who holds "
    f"records of a share group, who is throttled, how busy they are. [{ENDPOINT_VARIABLE}; none without]",
)
@click.option(
    "--schema-registry", metavar="URL", help="Ask there for the schemas of the next records, where their values begin with an id."
)
@click.option("--token-file", type=FILE, help="A file with a token that the nodes accept.")
@click.option("--user-file", type=FILE, help="A file with a line name:password that the nodes accept.")
@click.option("--ca-file", type=FILE, help="PEM with the authority of the nodes' certificates, for https.")
@click.option("--cert-file", type=FILE, help="PEM with a certificate and its key, where the nodes ask for one.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def command(
    group: str,
    bootstrap_server: str | None,
    command_config: str | None,
    seconds: float,
    endpoints: tuple[str, ...],
    schema_registry: str | None,
    token_file: str | None,
    user_file: str | None,
    ca_file: str | None,
    cert_file: str | None,
    as_json: bool,
) -> None:
    """Say why a group of consumers, share consumers or Kafka Streams is stuck: one cause with its evidence and a command that
    helps, then what is fine.

    It only reads. Exit code 0: nothing is wrong; 3: a cause was found.
    """
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.facts.endpoint import Access, Reader
    from tidelog.cli.node_pages import Nodes, nodes_at, with_nodes
    from tidelog.cli.schema_lookup import registry_at, with_schemas
    from tidelog.console.causes import diagnose
    from tidelog.console.collecting import sample
    from tidelog.console.denials import denials
    from tidelog.console.group_facts import GroupFacts

    with (
        refusal.one_line("Error: "),
        AdminSession(refusal.required(bootstrap_server), command_config, patience_ms=PATIENCE_MS) as session,
    ):
        reader = Reader(Access(token_file, user_file, ca_file, cert_file))

        registry = None if schema_registry is None else registry_at(schema_registry)

        def look(nodes: Nodes | None) -> Sample:
            found = session.run(sample(group, _now_ms()))
            found = with_nodes(found, group, endpoints, reader, nodes or nodes_at(endpoints, reader))
            if found.coordinator_error is None:
                topics = {topic for topic, _ in found.partitions} | found.missing_topics
                found = replace(found, denials=session.run(denials(group, topics, found.at_ms - DENIALS_MS)))
            return found if registry is None else with_schemas(found, registry)

        between: tuple[Sample, ...] = ()
        first = look(None)
        if first.coordinator_error is None or first.out_of_reach:
            between = watched(session, group, first, seconds)
            # A look fetches records itself: the fetches that nodes count between the looks are those of others.
            last = look(nodes_at(endpoints, reader))
        else:
            last = replace(first, at_ms=_now_ms())  # it was asked again and again already
        verdict = diagnose(GroupFacts(group, first, last, between))
        if as_json:
            click.echo(json.dumps(verdict.as_json(), indent=2))
        else:
            where = f" --bootstrap-server {bootstrap_server}" + (f" --command-config {command_config}" if command_config else "")
            for line in text(verdict, where):
                click.echo(printable(line))
        sys.exit(0 if verdict.primary is None else STUCK)


def watched(session: AdminSession, group: str, first: Sample, seconds: float) -> tuple[Sample, ...]:
    """Looks at the members of a consumer group, one a second, until the time is over."""
    from tidelog.console.collecting import members

    found: list[Sample] = []
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, BETWEEN_S))
        known = session.run(members(group, _now_ms())) if any(each.instance_id for each in first.members) else None
        if known is not None:
            found = [*found, known][-MOST_LOOKS:]
    return tuple(found)


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
