"""``tidelog consumer-groups``, also installed as ``kafka-consumer-groups``: the flags, words and columns of Kafka's tool.

Where Kafka's tool says that something failed and exits with 0, this one exits with 1.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from tidelog.cli import columns, entry, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import group_actions
from tidelog.model.printable import printable

NAME = "consumer-groups"
ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets", "validate_regex")
TARGETS = ("to_earliest", "to_latest", "to_current", "to_offset", "shift_by", "by_duration", "to_datetime", "from_file")
NO_EXECUTE = "WARN: This only shows the new offsets. Add --execute to commit them, or --dry-run to leave out this line."
FILE = click.Path(exists=True, dir_okay=False)


@click.command(NAME, context_settings={"help_option_names": ["-h", "--help"]})
@refusal.zookeeper_option
@bootstrap_option
@command_config_option
@click.option("--list", "list_", is_flag=True, help="List the groups of consumers.")
@click.option("--describe", is_flag=True, help="Show offsets and lag, or --members, or --state.")
@click.option("--delete", is_flag=True, help="Delete groups that have no members, and their offsets.")
@click.option("--reset-offsets", is_flag=True, help="Move the offsets of groups that have no members.")
@click.option("--delete-offsets", is_flag=True, help="Delete the offsets of a group for topics.")
@click.option("--validate-regex", metavar="REGEX", help="Whether a regular expression can be subscribed to.")
@click.option("--group", multiple=True, help="A group; several may be given.")
@click.option("--all-groups", is_flag=True, help="All groups of consumers.")
@click.option("--topic", multiple=True, metavar="TOPIC[:0,1]", help="A topic, or some of its partitions; several may be given.")
@click.option("--all-topics", is_flag=True, help="With --reset-offsets: all that the group has offsets of.")
@click.option("--members", is_flag=True, help="With --describe: the members.")
@click.option("--offsets", is_flag=True, help="With --describe: the offsets, as without it.")
@click.option("--state", is_flag=False, flag_value="", metavar="[STATE,...]", help="With --describe or --list: the states.")
@click.option("--type", "type_", is_flag=False, flag_value="", metavar="[TYPE,...]", help="With --list: classic, consumer.")
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
@click.option("--dry-run", is_flag=True, help="Only show what --reset-offsets would do.")
@click.option("--execute", is_flag=True, help="Do what --reset-offsets shows.")
@click.option("--export", is_flag=True, help="With --reset-offsets: print CSV for --from-file.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="json: for programs.")
def command(list_: bool, **flags: Any) -> None:
    """List and describe consumer groups, move their offsets, delete them."""
    flags["list"] = list_
    action = group_actions.one_action(ACTIONS, flags)
    _check(action, flags)
    if action == "validate_regex":
        _validate(flags["validate_regex"])
        return
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
        refusal.usage(f"{group_actions.flag(action)} needs either --group or --all-groups")
    if flags["type_"] is not None and action != "list":
        refusal.usage("Option [type] can only be used with [list]")
    if action == "describe" and sum([flags["members"], flags["offsets"], flags["state"] is not None]) > 1:
        refusal.usage("Option [describe] takes at most one of these options: [members], [offsets], [state]")
    if action == "delete_offsets" and (len(flags["group"]) != 1 or not flags["topic"]):
        refusal.usage("Option [delete-offsets] takes the following options: [topic], and one [group]")
    if action != "reset_offsets":
        return
    if flags["dry_run"] and flags["execute"]:
        refusal.usage("Option [reset-offsets] only accepts one of [execute], [dry-run]")
    if len(group_actions.chosen(TARGETS, flags)) != 1:
        names = ", ".join(f"[{name.replace('_', '-')}]" for name in TARGETS)
        refusal.usage(f"Option '[reset-offsets]' requires one of the following scenarios: {names}")
    if not flags["from_file"] and bool(flags["topic"]) == flags["all_topics"]:
        refusal.usage("Say which offsets to reset: --topic or --all-topics.")
    if not flags["execute"] and not flags["dry_run"]:
        print(NO_EXECUTE, file=sys.stderr)


def _validate(pattern: str) -> None:
    """Validates a pattern: the broker knows RE2's syntax, but what Python cannot parse either is certainly invalid."""
    import re

    try:
        re.compile(pattern)
    except re.error as error:
        print(f"The regular expression `{pattern}` is invalid: {error}.")
        sys.exit(1)
    print(f"The regular expression `{pattern}` is valid.")


def _groups(session: Any, flags: dict[str, Any]) -> list[str]:
    from tidelog.cli.tools.group_state import consumer_groups

    if not flags["all_groups"]:
        return list(flags["group"])
    return [group.group_id for group in consumer_groups(session)]


def _list(session: Any, flags: dict[str, Any]) -> bool:
    from tidelog.cli.tools.group_state import consumer_groups

    states = _words(flags["state"], STATES, "state")
    types = _words(flags["type_"], TYPES, "type")
    rows = [
        {"group": group.group_id, "type": (group.group_type or "classic").capitalize(), "state": group.group_state}
        for group in consumer_groups(session)
    ]
    rows = [row for row in rows if (not states or row["state"].lower() in states) and (not types or row["type"].lower() in types)]
    shown = [columns.Column("GROUP", "group", 32)]
    if flags["type_"] is not None:
        shown.append(columns.Column("TYPE", "type", 20))
    if flags["state"] is not None:
        shown.append(columns.Column("STATE", "state", 20))
    if flags["output"] == "json":
        print(columns.as_json(rows))
    elif len(shown) == 1:
        print("\n".join(printable(row["group"]) for row in rows), end="\n" if rows else "")
    else:
        print(columns.table(shown, rows))
    return True


STATES = ("Empty", "Dead", "Reconciling", "CompletingRebalance", "Assigning", "PreparingRebalance", "Stable")
TYPES = ("Classic", "Consumer")


def _words(text: str | None, known: tuple[str, ...], what: str) -> set[str]:
    words = {word.strip().lower() for word in (text or "").split(",") if word.strip()}
    if words - {word.lower() for word in known}:
        refusal.usage(f"Invalid {what} list '{text}'. Valid {what}s are: {', '.join(known)}")
    return words


def _describe(session: Any, flags: dict[str, Any]) -> bool:
    from tidelog.cli.tools import group_report, group_state

    kind = "members" if flags["members"] else "state" if flags["state"] is not None else "offsets"
    report = {"members": group_report.members, "state": group_report.states, "offsets": group_report.offsets}[kind]
    shown: list[columns.Row] = []
    for group_id in _groups(session, flags):
        group = group_state.describe(session, group_id)
        listed, rows = report(session, group, flags["verbose"])
        shown += rows
        if flags["output"] == "json":
            continue
        if not group.members:
            print(f"\nConsumer group '{printable(group_id)}' has no active members.", file=sys.stderr, flush=True)
        elif group.state in group_state.REBALANCING:
            print(f"\nWarning: Consumer group '{printable(group_id)}' is rebalancing.", file=sys.stderr, flush=True)
        if rows or kind == "members":
            print("\n" + columns.table(listed, rows), flush=True)
        for row in rows:
            if "held_by" in row:
                print(f"\n{group_report.held_text(row)}", file=sys.stderr, flush=True)
    if flags["output"] == "json":
        print(columns.as_json(shown))
    return True


def _delete(session: Any, flags: dict[str, Any]) -> bool:
    from tidelog.model.errors import ErrorCode
    from tidelog.protocol.messages.delete_groups import DeleteGroupsRequest

    failed, done = {}, []
    for group_id in _groups(session, flags):
        request = DeleteGroupsRequest(groups_names=[group_id])
        (result,) = session.ask_coordinator(group_id, request, lambda answer: answer.results[0].error_code).results
        if result.error_code == ErrorCode.NONE:
            done.append(group_id)
        else:
            failed[group_id] = refusal.error_text(result.error_code)
    names = ", ".join(f"'{printable(group_id)}'" for group_id in done)
    if not failed:
        print(f"Deletion of requested consumer groups ({names}) was successful.")
        return True
    group_actions.print_kept("groups", failed)
    if done:
        print(f"\nThese consumer groups were deleted successfully: {names}")
    return False


def _reset(session: Any, flags: dict[str, Any]) -> bool:
    import time

    from tidelog.cli.tools import group_state, offset_reset

    (chosen,) = group_actions.chosen(TARGETS, flags)
    target = offset_reset.Target(chosen.replace("_", "-"), str(flags[chosen]))
    groups = _groups(session, flags)
    now_ms = round(time.time() * 1000)  # noqa: TID251
    rows: list[columns.Row] = []
    good = True
    for group_id in groups:
        try:
            state = group_state.describe(session, group_id).state
        except CommandFailed:
            state = group_state.DEAD
        if state not in {group_state.EMPTY, group_state.DEAD}:
            print(
                f"\nError: Group '{group_id}' is {state}: its members would overwrite the new offsets. Stop them first.",
                file=sys.stderr,
            )
            good = False
            continue
        new = offset_reset.plan(session, group_id, target, flags["topic"], now_ms)
        if flags["execute"]:
            offset_reset.carry_out(session, group_id, new)
        rows += [
            {"group": group_id, "topic": topic, "partition": index, "new_offset": offset}
            for (topic, index), offset in sorted(new.items())
        ]
    group_actions.print_new_offsets(rows, flags, several=len(groups) > 1)
    return good


def _delete_offsets(session: Any, flags: dict[str, Any]) -> bool:
    (group_id,) = flags["group"]
    return group_actions.delete_offsets(session, group_id, flags["topic"], flags)


def main() -> None:
    """``kafka-consumer-groups``."""
    entry.run(command, "kafka-consumer-groups")


if __name__ == "__main__":
    main()
