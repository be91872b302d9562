"""``tidelog rebalance``: spreads replicas, bytes and leaders over the brokers, with a plan that is shown before anything
moves.

All state is in the cluster: after an interruption, the next call plans the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidelog.cli import columns, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.sizes import rate
from tidelog.console.sizes import size_text, time_text

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession
    from tidelog.console.moving.balance_plan import Move
    from tidelog.console.moving.layout import Layout

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_THROTTLE = "50M"
SHOWN_MOVES = 20
"""Longer plans are shown in full only by ``--json``."""


def moving_options(command: F) -> F:
    """The flags of commands that move replicas."""
    for option in (
        click.option("--yes", "-y", is_flag=True, help="Move without asking."),
        click.option("--json", "as_json", is_flag=True, help="The plan for programs. Moves only together with --yes."),
        click.option("--dry-run", is_flag=True, help="Show the plan, and move nothing."),
        click.option(
            "--concurrent", type=click.IntRange(min=1), default=10, show_default=True, help="How many partitions move at a time."
        ),
        click.option(
            "--throttle",
            callback=rate,
            metavar="RATE",
            default=DEFAULT_THROTTLE,
            show_default=True,
            help="Bytes per second that each broker gives and takes for it, such as 50M; or none.",
        ),
        command_config_option,
        bootstrap_option,
    ):
        command = option(command)
    return command


@click.command("rebalance", context_settings={"help_option_names": ["-h", "--help"]})
@moving_options
@click.option("--broker-list", metavar="0,1,2", help="Only these brokers hold replicas afterwards. [all]")
@click.option(
    "--tolerance", type=click.IntRange(0, 100), default=10, show_default=True, help="How many percent bytes may stay apart."
)
@click.option("--ignore-racks", is_flag=True, help="Racks do not matter.")
def command(
    bootstrap_server: str | None,
    command_config: str | None,
    broker_list: str | None,
    tolerance: int,
    ignore_racks: bool,
    **flags: Any,
) -> None:
    """Spread replicas, bytes and leaders evenly over the brokers."""
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.cluster.cluster_layout import read_layout
    from tidelog.console.moving.balance_plan import CannotPlan, plan

    bootstrap = refusal.required(bootstrap_server)
    with refusal.one_line("Error: "), AdminSession(bootstrap, command_config) as session:
        layout = read_layout(session)
        targets = targets_of(layout, broker_list)
        racks = {broker: None if ignore_racks else layout.racks[broker] for broker in targets}
        notes = notes_on(layout, racks, ignore_racks)
        try:
            moves = plan(layout.held(), racks, machines=layout.hosts, tolerance=tolerance / 100)
        except CannotPlan as error:
            raise CommandFailed(str(error)) from error
        good = carry_out(session, layout, moves, notes, command_name="tidelog rebalance", all_leaders=True, **flags)
    sys.exit(0 if good else 1)


def targets_of(layout: Layout, broker_list: str | None) -> list[int]:
    """The brokers that will hold replicas. CommandFailed when one that is listed, or that holds some now, is down."""
    if broker_list is not None:
        try:
            wanted = sorted({int(word) for word in broker_list.split(",")})
        except ValueError as error:
            raise CommandFailed(f"--broker-list {broker_list}: brokers are numbers, joined by commas") from error
        for broker in wanted:
            if broker in layout.down:
                raise CommandFailed(f"Broker {broker} of --broker-list is down. Start it, or leave it out of the list.")
            if broker not in layout.racks:
                known = ", ".join(map(str, sorted({*layout.racks, *layout.down})))
                raise CommandFailed(f"Broker {broker} of --broker-list is not known; the cluster has {known}.")
        return wanted
    if layout.down:
        names = ", ".join(map(str, sorted(layout.down)))
        raise CommandFailed(
            f"Broker {names} is registered, and down: its replicas can neither stay nor be counted on. Start it and call this "
            f"again, move its replicas away for good (tidelog drain {min(layout.down)}), or name the others by --broker-list."
        )
    return [broker for broker in sorted(layout.racks) if broker not in layout.cordoned]


def notes_on(layout: Layout, racks: dict[int, str | None], ignored: bool) -> list[str]:
    """Notes for the reader of the plan."""
    from tidelog.console.moving.layout import drifted

    notes = []
    nameless = [broker for broker, rack in sorted(racks.items()) if rack is None]
    if nameless and len(nameless) < len(racks) and not ignored:
        notes.append(f"Racks do not count: broker {', '.join(map(str, nameless))} has none (broker.rack).")
    for broker in layout.cordoned:
        if broker not in racks:
            notes.append(f"Broker {broker} was drained and gets nothing; tidelog drain {broker} --undo takes it back.")
    strayed = sum(drifted(each) for each in layout.seen)
    if strayed:
        notes.append(f"{_partitions(strayed)} led by another than the preferred leader: leadership goes back.")
    if layout.under_way:
        notes.append(f"{_partitions(len(layout.under_way))} on the way already; the plan counts them where they go.")
    return notes


def carry_out(
    session: AdminSession,
    layout: Layout,
    moves: Sequence[Move],
    notes: Sequence[str],
    *,
    command_name: str,
    all_leaders: bool = False,
    throttle: int | None,
    concurrent: int,
    dry_run: bool,
    as_json: bool,
    yes: bool,
) -> bool:
    """Shows the plan, asks, executes it, and prints the result. False when it was stopped or not confirmed."""
    from tidelog.cli.cluster.move_runner import MoveRunner, reporter
    from tidelog.cli.tools.replication_throttles import clear, limited_brokers
    from tidelog.console.moving.layout import drifted

    if as_json:
        print(columns.as_json(plan_values(layout, moves)))
    else:
        print("\n".join([*plan_lines(layout, moves, throttle), *notes]))
    if dry_run or (as_json and not yes):
        return True
    runner = MoveRunner(
        session,
        moves,
        layout.under_way,
        throttle=throttle,
        concurrent=concurrent,
        all_leaders=all_leaders,
        report=reporter(),
    )
    strayed = all_leaders and any(drifted(each) for each in layout.seen)
    if not moves and not layout.under_way and not strayed:
        if limited := limited_brokers(session):
            # An earlier call was killed before it could clear its throttles.
            clear(session, limited, {each.partition[0] for each in layout.seen})
            print(f"Throttles that were left on broker {', '.join(map(str, limited))} are taken away.", file=sys.stderr)
        return True
    if (moves or strayed) and not yes and not _agreed():
        return False
    done = runner.run()
    say = print if not as_json else (lambda text: print(text, file=sys.stderr))
    if sys.stderr.isatty():
        print(file=sys.stderr)
    progress = runner.progress
    if done:
        say(f"Done: {_partitions(progress.total)}, {size_text(progress.done_bytes)} moved. Throttles are taken away.")
    else:
        say(
            f"Stopped: {progress.done} of {_partitions(progress.total)} done, the rest is as it was, throttles are taken away. "
            f"{command_name} goes on from here."
        )
    return done


def _agreed() -> bool:
    if not sys.stdin.isatty():
        print("Nothing was moved: give --yes to move without being asked.", file=sys.stderr)
        return False
    return click.confirm("Move?", default=False)


def _partitions(count: int) -> str:
    return f"{count} partition{'s' if count != 1 else ''}"


def plan_lines(layout: Layout, moves: Sequence[Move], throttle: int | None) -> list[str]:
    """The plan as text: the current and future load of each broker, the moves, and the minimum duration."""
    from tidelog.console.moving.balance_plan import applied, loads

    held = layout.held()
    replicas = sum(len(each.replicas) for each in held)
    lines = [f"Cluster {layout.cluster_id}: {len(layout.racks)} brokers, {_partitions(len(held))}, {replicas} replicas."]
    before, after = loads(held, layout.racks), loads(applied(held, moves), layout.racks)
    rows = [
        {
            "broker": f"{broker} (down)" if broker in layout.down else str(broker),
            "rack": layout.racks.get(broker),
            "replicas": _change(before[broker].replicas, after[broker].replicas if broker in after else 0),
            "leaders": _change(before[broker].leaders, after[broker].leaders if broker in after else 0),
            "data": _change(size_text(before[broker].size), size_text(after[broker].size if broker in after else 0)),
        }
        for broker in sorted(before)
    ]
    titles = (("BROKER", "broker", 10), ("RACK", "rack", 10), ("REPLICAS", "replicas", 12), ("LEADERS", "leaders", 12))
    shown = [*(columns.Column(title, key, width) for title, key, width in titles), columns.Column("DATA", "data", 4, pad=False)]
    lines += [line.rstrip() for line in columns.table(shown, rows).splitlines()]
    moving = [move for move in moves if move.coming]
    if not moves:
        return [*lines, "Nothing has to move."]
    total = sum(move.bytes_moved for move in moving)
    copies = sum(len(move.coming) for move in moving)
    lines.append(f"{copies} replica{'s' if copies != 1 else ''} of {_partitions(len(moving))} to copy: {size_text(total)}.")
    if len(moves) > len(moving):
        lines.append(f"{_partitions(len(moves) - len(moving))} with another preferred leader only.")
    if total and throttle is not None:
        busiest = max(_taken(moving).values())
        lines.append(f"At {size_text(throttle)}/s for each broker: {time_text(busiest / throttle)} at least.")
    for move in moves[:SHOWN_MOVES]:
        before_text, after_text = (",".join(map(str, each)) for each in (move.before, move.after))
        lines.append(f"  {move.partition[0]}-{move.partition[1]}: {before_text} -> {after_text}  {size_text(move.bytes_moved)}")
    if len(moves) > SHOWN_MOVES:
        lines.append(f"  ... and {len(moves) - SHOWN_MOVES} more (--json shows all)")
    return lines


def _taken(moves: Sequence[Move]) -> dict[int, int]:
    """The bytes that each broker receives."""
    result: dict[int, int] = {}
    for move in moves:
        for broker in move.coming:
            result[broker] = result.get(broker, 0) + move.size
    return result


def _change(before: object, after: object) -> str:
    return str(before) if before == after else f"{before} -> {after}"


def plan_values(layout: Layout, moves: Sequence[Move]) -> dict[str, Any]:
    """The plan as data; ``partitions`` has the form of a reassignment file."""
    from tidelog.console.moving.balance_plan import applied, loads

    held = layout.held()
    before, after = loads(held, layout.racks), loads(applied(held, moves), layout.racks)

    def values(load: Any) -> dict[str, int]:
        return {"replicas": load.replicas, "leaders": load.leaders, "bytes": load.size}

    return {
        "clusterId": layout.cluster_id,
        "brokers": [
            {"broker": broker, "rack": layout.racks.get(broker), "before": values(before[broker]), "after": values(after[broker])}
            for broker in sorted(layout.racks)
        ],
        "bytesMoved": sum(move.bytes_moved for move in moves),
        "version": 1,
        "partitions": [
            {
                "topic": move.partition[0],
                "partition": move.partition[1],
                "replicas": list(move.after),
                "before": list(move.before),
                "bytesMoved": move.bytes_moved,
            }
            for move in moves
        ],
    }


if __name__ == "__main__":
    command(prog_name="tidelog rebalance")
