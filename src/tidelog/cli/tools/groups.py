"""``tidelog groups``, also installed as ``kafka-groups``: lists groups of all types, in the columns of Kafka's tool."""

from __future__ import annotations

import click

from tidelog.cli import columns, entry, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option

TYPES = ("classic", "consumer", "share", "streams")
LEAST_WIDTH = 20


@click.command("groups", context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@command_config_option
@click.option("--list", "list_", is_flag=True, help="List the groups.")
@click.option("--group-type", type=click.Choice(TYPES, case_sensitive=False), help="Only groups of this type.")
@click.option("--protocol", help="Only groups of this protocol type.")
@click.option("--consumer", is_flag=True, help="Only groups of consumers, of either protocol.")
@click.option("--share", is_flag=True, help="Only share groups.")
@click.option("--streams", is_flag=True, help="Only streams groups.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="json: for programs.")
def command(
    bootstrap_server: str | None,
    command_config: str | None,
    list_: bool,
    group_type: str | None,
    protocol: str | None,
    consumer: bool,
    share: bool,
    streams: bool,
    output: str,
) -> None:
    """List the groups of all types."""
    bootstrap = refusal.required(bootstrap_server)
    if not list_:
        refusal.usage("Add --list: listing groups is all that this command does.")
    chosen = [name for name, value in {"consumer": consumer, "share": share, "streams": streams}.items() if value]
    if len(chosen) > 1 or (chosen and (group_type or protocol is not None)):
        others = [*chosen[1:], *(["group-type"] if group_type else []), *(["protocol"] if protocol is not None else [])]
        refusal.usage(f"--{chosen[0]} and --{others[0]} both select a kind of group: give one")
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.tools.group_state import list_groups

    with refusal.one_line("Error: Unable to list groups: "), AdminSession(bootstrap, command_config) as session:
        rows = []
        for group in list_groups(session):
            kind = (group.group_type or "classic").lower()
            if consumer and not (kind == "consumer" or (kind == "classic" and group.protocol_type in {"consumer", ""})):
                continue
            if (share or streams) and kind != chosen[0]:
                continue
            if (group_type and kind != group_type.lower()) or (protocol is not None and group.protocol_type != protocol):
                continue
            rows.append({"group": group.group_id, "type": kind.capitalize(), "protocol": group.protocol_type})
    if output == "json":
        print(columns.as_json(rows))
        return
    width = max([LEAST_WIDTH, *(len(row["group"]) for row in rows)])
    print(columns.table([columns.Column(name.upper(), name, width) for name in ("group", "type", "protocol")], rows))


def main() -> None:
    """``kafka-groups``."""
    entry.run(command, "kafka-groups")


if __name__ == "__main__":
    main()
