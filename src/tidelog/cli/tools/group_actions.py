"""What the tools for consumer groups, share groups and streams groups share: one action a call, and tables of results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tidelog.cli import columns, refusal
from tidelog.model.printable import printable

Flags: TypeAlias = dict[str, Any]
Act: TypeAlias = Callable[[Any, Flags], bool]
"""Does what the flags ask for in a session; whether all of it succeeded."""


def flag(name: str) -> str:
    """The flag of a parameter: ``--reset-offsets`` of ``reset_offsets``."""
    return "--" + name.replace("_", "-")


def chosen(names: Sequence[str], flags: Flags) -> list[str]:
    """Those of the parameters that were given; an offset of 0 is a value."""
    return [name for name in names if flags[name] is not None and flags[name] is not False]


def one_action(names: Sequence[str], flags: Flags) -> str:
    """The one that was given; ends the process with a usage error if it is not exactly one."""
    found = chosen(names, flags)
    if len(found) != 1:
        refusal.usage(f"Give one action: {', '.join(map(flag, names))}")
    return found[0]


def act(do: Act, flags: Flags) -> None:
    """Runs an action in a session with the cluster, and ends the process: with 1 when a part of it failed."""
    refusal.required(flags["bootstrap_server"])
    from tidelog.cli.admin_session import AdminSession

    with (
        refusal.one_line("Error: "),
        AdminSession(flags["bootstrap_server"], flags["command_config"]) as session,
    ):
        good = do(session, flags)
    sys.exit(0 if good else 1)


def check_shown(action: str, flags: Flags) -> None:
    """Checks the flags that choose what ``--describe`` and ``--list`` show."""
    if flags["state"] is not None and action not in {"list", "describe"}:
        refusal.usage("--state goes with --list or --describe.")
    if action == "describe" and flags["state"]:
        refusal.usage("--state takes values only with --list.")
    if action == "describe" and sum([flags["members"], flags["offsets"], flags["state"] is not None]) > 1:
        refusal.usage("--describe shows one thing: --members, --offsets or --state")
    if action != "describe" and (flags["members"] or flags["offsets"] or flags["verbose"]):
        refusal.usage("--members, --offsets and --verbose go with --describe.")


def states_by_group(session: Any, kind: str) -> dict[str, str]:
    """The states of all groups of a type, ``share`` or ``streams``."""
    from tidelog.cli.tools.group_state import list_groups

    found = list_groups(session)
    return {group.group_id: group.group_state for group in found if (group.group_type or "").lower() == kind}


def named_groups(session: Any, kind: str, flags: Flags) -> list[str]:
    """The groups of ``--group``, or all of the type."""
    return list(states_by_group(session, kind)) if flags["all_groups"] else sorted(set(flags["group"]))


def print_groups(session: Any, kind: str, known: Sequence[str], flags: Flags) -> bool:
    """``--list``, of the states that ``--state`` names; ``known`` are those of the type."""
    states = {word.strip().lower() for word in (flags["state"] or "").split(",") if word.strip()}
    if states - {state.lower() for state in known}:
        refusal.usage(f"{kind.capitalize()} groups have no state '{flags['state']}'. Those they have: {', '.join(known)}")
    rows = [{"group": group_id, "state": state} for group_id, state in states_by_group(session, kind).items()]
    rows = [row for row in rows if not states or row["state"].lower() in states]
    if flags["output"] == "json":
        print(columns.as_json(rows))
    elif flags["state"] is None:
        print("\n".join(printable(row["group"]) for row in rows), end="\n" if rows else "")
    else:
        print(columns.table([columns.Column("GROUP", "group", 15), columns.Column("STATE", "state", 0, pad=False)], rows))
    return True


def print_kept(what: str, failed: Mapping[str, str]) -> None:
    """The groups that could not be deleted, with a reason each."""
    print(f"\nError: These {what} are still there:")
    for group_id, reason in failed.items():
        print(f"* Group '{printable(group_id)}' could not be deleted due to: {reason}")


def print_deleted(kind: str, done: Sequence[str], failed: Mapping[str, str]) -> bool:
    """What became of ``--delete``; whether all were deleted."""
    names = ", ".join(f"'{printable(group_id)}'" for group_id in done)
    if failed:
        print_kept(f"{kind} groups", failed)
    if done or not failed:
        print("\n" * bool(failed) + f"Deleted {kind} groups: {names}")
    return not failed


def print_new_offsets(rows: list[columns.Row], flags: Flags, *, several: bool = False, width: int = 15) -> None:
    """What ``--reset-offsets`` sets, or would set. ``several``: lines of ``--export`` name the group."""
    if flags["output"] == "json":
        print(columns.as_json(rows))
    elif flags.get("export"):
        for row in rows:
            print(",".join(str(value) for name, value in row.items() if several or name != "group"))
    else:
        shown = [
            columns.Column("GROUP", "group", width),
            columns.Column("TOPIC", "topic", width),
            columns.Column("PARTITION", "partition", 10),
            columns.Column("NEW-OFFSET", "new_offset", 0, pad=False),
        ]
        print("\n" + columns.table(shown, rows))


def delete_offsets(session: Any, group_id: str, topics: Sequence[str], flags: Flags) -> bool:
    """``--delete-offsets`` of a group that commits offsets."""
    from tidelog.cli.tools import group_report

    code, rows = group_report.delete_offsets(session, group_id, topics)
    good = all(row["status"] == "Successful" for row in rows) and not code
    if code:
        print(f"Error: {refusal.error_text(code)}")
    elif good:
        print(f"Request succeeded for deleting offsets from group {group_id}.")
    else:
        print("Error: Some offsets are still there; STATUS below says why.")
    shown = [
        columns.Column("TOPIC", "topic", 15),
        columns.Column("PARTITION", "partition", 10),
        columns.Column("STATUS", "status", 15),
    ]
    print(columns.as_json(rows) if flags["output"] == "json" else "\n" + columns.table(shown, rows))
    return good
