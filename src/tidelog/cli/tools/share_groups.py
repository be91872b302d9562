"""``tidelog share-groups``, also installed as ``kafka-share-groups``: the flags, words and columns of Kafka's tool.

Where Kafka's tool says that something failed and exits with 0, this one exits with 1. ``dead-letters`` is a command of ours.
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

NAME = "share-groups"
ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets")
TARGETS = ("to_earliest", "to_latest", "to_datetime")
STATES = ("Empty", "Stable", "Dead")
CONNECTION = ("bootstrap_server", "command_config")
"""Flags that may stand before ``dead-letters``."""


class _Commands(click.Group):
    """Kafka's flags; and a command of ours, which is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["dead-letters"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name != "dead-letters":
            return None
        from tidelog.cli.dead_letters.command import dead_letters

        return dead_letters


@click.group(NAME, cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@command_config_option
@click.option("--list", "list_", is_flag=True, help="List the share groups.")
@click.option("--describe", is_flag=True, help="Show start offsets and lag, or --members, or --state.")
@click.option("--delete", is_flag=True, help="Delete share groups that have no members, and their offsets.")
@click.option("--reset-offsets", is_flag=True, help="Move the start offsets of a share group that has no members.")
@click.option("--delete-offsets", is_flag=True, help="Delete the start offsets of a share group for topics.")
@click.option("--group", multiple=True, help="A share group; several may be given.")
@click.option("--all-groups", is_flag=True, help="All share groups.")
@click.option("--topic", multiple=True, metavar="TOPIC[:0,1]", help="A topic, or some of its partitions; several may be given.")
@click.option("--all-topics", is_flag=True, help="With --reset-offsets: all that the group has offsets of.")
@click.option("--members", is_flag=True, help="With --describe: the members.")
@click.option("--offsets", is_flag=True, help="With --describe: the offsets, as without it.")
@click.option("--state", is_flag=False, flag_value="", metavar="[STATE,...]", help="With --describe or --list: the states.")
@click.option("--verbose", is_flag=True, help="With --describe: more columns.")
@click.option("--timeout", type=int, help="Taken for Kafka's sake; request.timeout.ms of --command-config counts.")
@click.option("--to-earliest", is_flag=True, help="To the first record there is.")
@click.option("--to-latest", is_flag=True, help="Behind the last record.")
@click.option("--to-datetime", metavar="YYYY-MM-DDThh:mm:ss.sss", help="To that time; UTC without a zone.")
@click.option("--dry-run", is_flag=True, help="Only show what --reset-offsets would do.")
@click.option("--execute", is_flag=True, help="Do what --reset-offsets shows.")
@columns.output_option
@click.pass_context
def command(ctx: click.Context, /, list_: bool, **flags: Any) -> None:
    """List and describe share groups, move their start offsets, delete them; dead-letters: what they gave up."""
    flags["list"] = list_
    if ctx.invoked_subcommand is not None:
        _check_before(ctx.invoked_subcommand, flags)
        ctx.obj = flags
        return
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


def _check_before(name: str, flags: dict[str, Any]) -> None:
    """Checks that the flags of a command stand behind it."""
    own = {**flags, "output": None if flags["output"] == "table" else flags["output"]}
    wrong = [each for each, value in own.items() if value not in (None, False, ()) and each not in CONNECTION]
    if wrong:
        refusal.usage(f"{', '.join(map(flag, wrong))}: give the flags of {name} behind it.")


def _check(action: str, flags: dict[str, Any]) -> None:
    """Checks the flags that the action requires or excludes."""
    if action in {"describe", "delete"} and bool(flags["group"]) == flags["all_groups"]:
        refusal.usage(f"{flag(action)} needs either --group or --all-groups")
    group_actions.check_shown(action, flags)
    if action == "delete" and flags["topic"]:
        refusal.usage("--delete removes the whole group; for one --topic there is --delete-offsets.")
    if action == "delete_offsets" and (len(flags["group"]) != 1 or not flags["topic"]):
        refusal.usage("--delete-offsets needs one --group, and --topic")
    if action == "reset_offsets":
        _check_reset(flags)


def _check_reset(flags: dict[str, Any]) -> None:
    if len(flags["group"]) != 1:
        refusal.usage("--reset-offsets needs one --group")
    if flags["dry_run"] == flags["execute"]:
        refusal.usage("--reset-offsets needs either --execute or --dry-run")
    if bool(flags["topic"]) == flags["all_topics"]:
        refusal.usage("Say which offsets to reset: --topic or --all-topics.")
    if len(group_actions.chosen(TARGETS, flags)) != 1:
        refusal.usage(f"--reset-offsets needs one of {', '.join(map(flag, TARGETS))}")


def _list(session: Any, flags: dict[str, Any]) -> bool:
    return group_actions.print_groups(session, "share", STATES, flags)


def _describe(session: Any, flags: dict[str, Any]) -> bool:
    from tidelog.cli.tools import share_group_report as report
    from tidelog.client.admin import share_groups

    kind = "members" if flags["members"] else "state" if flags["state"] is not None else "offsets"
    shown: list[columns.Row] = []
    for group_id in named_groups(session, "share", flags):
        group = session.run(share_groups.describe(group_id))
        listed, rows = {"members": report.members, "state": report.states, "offsets": report.offsets}[kind](
            session, group, flags["verbose"]
        )
        shown += rows
        if flags["output"] == "json":
            continue
        if kind == "offsets" and not rows:
            print(f"\nShare group '{printable(group_id)}' has no offsets.", flush=True)
        elif kind != "offsets" and not group.members:
            print(f"\nShare group '{printable(group_id)}' has no members.", file=sys.stderr, flush=True)
        if rows:
            print("\n" + columns.table(listed, rows), flush=True)
    if flags["output"] == "json":
        print(columns.as_json(shown))
    return True


def _delete(session: Any, flags: dict[str, Any]) -> bool:
    from tidelog.client.admin import groups

    states = states_by_group(session, "share")
    failed: dict[str, str] = {}
    done = []
    for group_id in named_groups(session, "share", flags):
        if group_id not in states:
            failed[group_id] = "it is no share group"
            continue
        try:
            session.run(groups.delete(group_id))
        except CommandFailed as error:
            failed[group_id] = str(error)
        else:
            done.append(group_id)
    return group_actions.print_deleted("share", done, failed)


def _reset(session: Any, flags: dict[str, Any]) -> bool:
    from tidelog.cli.tools import share_group_report as report

    (group_id,) = flags["group"]
    (target,) = group_actions.chosen(TARGETS, flags)
    rows, failed = report.reset(
        session, group_id, target.replace("_", "-"), str(flags[target]), flags["topic"], execute=flags["execute"]
    )
    group_actions.print_new_offsets(rows, flags)
    for name, reason in failed.items():
        print(f"Error: {name}: {reason}", file=sys.stderr)
    return not failed


def _delete_offsets(session: Any, flags: dict[str, Any]) -> bool:
    from tidelog.client.admin import share_groups

    (group_id,) = flags["group"]
    topics = sorted(set(flags["topic"]))
    failed = session.run(share_groups.delete_offsets(group_id, topics))
    rows: list[columns.Row] = []
    for topic in topics:
        error = failed.get(topic)
        status = "Successful" if error is None else f"Error: {refusal.error_text(error.code, error.detail)}"
        rows.append({"topic": topic, "status": status})
    shown = [columns.Column("TOPIC", "topic", 15), columns.Column("STATUS", "status", 0, pad=False)]
    print(columns.as_json(rows) if flags["output"] == "json" else "\n" + columns.table(shown, rows))
    return not failed


def main() -> None:
    """``kafka-share-groups``."""
    entry.run(command, "kafka-share-groups")


if __name__ == "__main__":
    main()
