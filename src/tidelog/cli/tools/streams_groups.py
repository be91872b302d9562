"""``tidelog streams-groups``, also installed as ``kafka-streams-groups``: the flags, words and columns of Kafka's tool.

Where Kafka's tool says that something failed and exits with 0, this one exits with 1. The tool, not the broker, deletes internal
topics, and only those whose names show that they belong to the group.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from tidelog.cli import columns, entry, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import group_actions
from tidelog.cli.tools.group_actions import flag, named_groups, states_by_group
from tidelog.model.printable import printable

NAME = "streams-groups"
ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets")
TARGETS = ("to_earliest", "to_latest", "to_current", "to_offset", "shift_by", "by_duration", "to_datetime", "from_file")
STATES = ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead")
FILE = click.Path(exists=True, dir_okay=False)


@click.command(NAME, context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@command_config_option
@click.option("--list", "list_", is_flag=True, help="List the streams groups.")
@click.option("--describe", is_flag=True, help="Show offsets and lag, or --members, or --state.")
@click.option("--delete", is_flag=True, help="Delete streams groups that have no members, and their offsets.")
@click.option("--reset-offsets", is_flag=True, help="Move the offsets of groups that have no members.")
@click.option("--delete-offsets", is_flag=True, help="Delete the offsets of a group for topics.")
@click.option("--group", multiple=True, help="A streams group: the application id; several may be given.")
@click.option("--all-groups", is_flag=True, help="All streams groups.")
@click.option("--input-topic", multiple=True, metavar="TOPIC[:0,1]", help="A topic that the group reads; several may be given.")
@click.option("--all-input-topics", is_flag=True, help="All topics that the group reads and has offsets of.")
@click.option("--members", is_flag=True, help="With --describe: the members and their tasks.")
@click.option("--offsets", is_flag=True, help="With --describe: the offsets, as without it.")
@click.option("--state", is_flag=False, flag_value="", metavar="[STATE,...]", help="With --describe or --list: the states.")
@click.option("--verbose", is_flag=True, help="With --describe: more columns.")
@click.option("--timeout", type=int, help="Taken for Kafka's sake; request.timeout.ms of --command-config counts.")
@click.option("--to-earliest", is_flag=True, help="To the first record there is.")
@click.option("--to-latest", is_flag=True, help="Behind the last record.")
@click.option("--to-current", is_flag=True, help="Where they are; to the end where there is none.")
@click.option("--to-offset", type=int, metavar="OFFSET", help="To that offset.")
@click.option("--shift-by", type=int, metavar="N", help="By so many records, back when negative.")
@click.option("--by-duration", metavar="PnDTnHnMnS", help="So far back in time.")
@click.option("--to-datetime", metavar="YYYY-MM-DDThh:mm:ss.sss", help="To that time; UTC without a zone.")
@click.option("--from-file", type=FILE, help="As a CSV file says: topic,partition,offset.")
@click.option(
    "--delete-internal-topic", multiple=True, metavar="TOPIC", help="With --reset-offsets: also delete this internal topic."
)
@click.option(
    "--delete-all-internal-topics", is_flag=True, help="With --reset-offsets or --delete: also delete all internal topics."
)
@click.option("--dry-run", is_flag=True, help="Only show what --reset-offsets would do.")
@click.option("--execute", is_flag=True, help="Do what --reset-offsets shows.")
@click.option("--export", is_flag=True, help="With --reset-offsets: print CSV for --from-file.")
@columns.output_option
def command(list_: bool, **flags: Any) -> None:
    """List and describe streams groups, move their offsets, delete them."""
    flags["list"] = list_
    action = group_actions.one_action(ACTIONS, flags)
    _check(action, flags)
    act = {
        "list": _list,
        "describe": _describe,
        "delete": _delete,
        "reset_offsets": _reset,
        "delete_offsets": _delete_offsets,
    }[action]
    group_actions.act(act, flags)


def _check(action: str, flags: dict[str, Any]) -> None:
    """Checks the flags that the action requires or excludes."""
    if action in {"describe", "delete", "reset_offsets"} and bool(flags["group"]) == flags["all_groups"]:
        refusal.usage(f"{flag(action)} needs either --group or --all-groups")
    group_actions.check_shown(action, flags)
    if action == "delete" and (flags["input_topic"] or flags["all_input_topics"]):
        refusal.usage("--delete removes the whole group; for one --input-topic there is --delete-offsets.")
    if action == "delete_offsets" and (len(flags["group"]) != 1 or bool(flags["input_topic"]) == flags["all_input_topics"]):
        refusal.usage("--delete-offsets needs one --group, and either --input-topic or --all-input-topics")
    if action != "reset_offsets" and (flags["dry_run"] or flags["execute"]):
        refusal.usage("--dry-run and --execute go with --reset-offsets.")
    if flags["delete_internal_topic"] and not (action == "reset_offsets" and flags["execute"]):
        refusal.usage("--delete-internal-topic goes with --reset-offsets --execute.")
    if flags["delete_all_internal_topics"] and not (action == "delete" or (action == "reset_offsets" and flags["execute"])):
        refusal.usage("--delete-all-internal-topics goes with --delete, or --reset-offsets --execute.")
    if action == "reset_offsets":
        _check_reset(flags)


def _check_reset(flags: dict[str, Any]) -> None:
    if flags["dry_run"] == flags["execute"]:
        refusal.usage("--reset-offsets needs either --execute or --dry-run")
    if len(group_actions.chosen(TARGETS, flags)) != 1:
        refusal.usage(f"--reset-offsets needs one of {', '.join(map(flag, TARGETS))}")
    if not flags["from_file"] and bool(flags["input_topic"]) == flags["all_input_topics"]:
        refusal.usage("Say which offsets to reset: --input-topic or --all-input-topics.")


def _list(session: Any, flags: dict[str, Any]) -> bool:
    return group_actions.print_groups(session, "streams", STATES, flags)


def _describe(session: Any, flags: dict[str, Any]) -> bool:
    from tidelog.cli.tools import streams_group_report as report
    from tidelog.client.admin import streams_groups

    kind = "members" if flags["members"] else "state" if flags["state"] is not None else "offsets"
    shown: list[columns.Row] = []
    for group_id in named_groups(session, "streams", flags):
        group = session.run(streams_groups.describe(group_id))
        listed, rows = {"members": report.members, "state": report.states, "offsets": report.offsets}[kind](
            session, group, flags["verbose"]
        )
        shown += rows
        if flags["output"] == "json":
            continue
        if not group.members:
            print(f"\nStreams group '{printable(group_id)}' has no members.", file=sys.stderr, flush=True)
        if rows:
            print("\n" + columns.table(listed, rows), flush=True)
    if flags["output"] == "json":
        print(columns.as_json(shown))
    return True


def _delete(session: Any, flags: dict[str, Any]) -> bool:
    from tidelog.cli.tools import streams_group_report as report
    from tidelog.client.admin import groups

    states = states_by_group(session, "streams")
    failed: dict[str, str] = {}
    done = []
    good = True
    for group_id in named_groups(session, "streams", flags):
        if group_id not in states:
            failed[group_id] = "it is no streams group"
            continue
        try:
            internal = report.internal_topics(session, group_id) if flags["delete_all_internal_topics"] else []
            session.run(groups.delete(group_id))
        except CommandFailed as error:
            failed[group_id] = str(error)
        else:
            done.append(group_id)
            good = _delete_topics(session, internal) and good
    return group_actions.print_deleted("streams", done, failed) and good


def _delete_topics(session: Any, topics: list[str]) -> bool:
    from tidelog.client.admin import topics as calls

    good = True
    for topic in topics:
        try:
            session.run(calls.delete(topic))
        except CommandFailed as error:
            print(f"Error: Internal topic {printable(topic)} was not deleted: {error}", file=sys.stderr)
            good = False
        else:
            print(f"Deleted internal topic {printable(topic)}.", file=sys.stderr)
    return good


def _reset(session: Any, flags: dict[str, Any]) -> bool:
    import time

    from tidelog.cli.tools import offset_reset
    from tidelog.cli.tools import streams_group_report as report

    (chosen,) = group_actions.chosen(TARGETS, flags)
    target = offset_reset.Target(chosen.replace("_", "-"), str(flags[chosen]))
    groups = named_groups(session, "streams", flags)
    now_ms = round(time.time() * 1000)  # noqa: TID251
    rows: list[columns.Row] = []
    good = True
    for group_id in groups:
        group = report.without_members(session, group_id)
        topics = [] if flags["from_file"] else report.input_topics(session, group, flags["input_topic"])
        new = offset_reset.plan(session, group_id, target, topics, now_ms)
        internal = report.internal_topics(session, group_id, flags["delete_internal_topic"])
        if flags["execute"]:
            offset_reset.carry_out(session, group_id, new)
            if flags["delete_all_internal_topics"] or flags["delete_internal_topic"]:
                good = _delete_topics(session, internal) and good
        rows += [
            {"group": group_id, "topic": topic, "partition": index, "new_offset": offset}
            for (topic, index), offset in sorted(new.items())
        ]
    group_actions.print_new_offsets(rows, flags, several=len(groups) > 1, width=30)
    return good


def _delete_offsets(session: Any, flags: dict[str, Any]) -> bool:
    from tidelog.cli.tools import streams_group_report as report
    from tidelog.client.admin import streams_groups

    (group_id,) = flags["group"]
    group = session.run(streams_groups.describe(group_id))
    return group_actions.delete_offsets(session, group_id, report.input_topics(session, group, flags["input_topic"]), flags)


def main() -> None:
    """``kafka-streams-groups``."""
    entry.run(command, "kafka-streams-groups")


if __name__ == "__main__":
    main()
