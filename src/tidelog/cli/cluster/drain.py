"""``tidelog drain NODE``: moves everything off a broker, so that it can be removed.

First the broker is cordoned (KIP-1066), so that it gets no new topics; then its replicas move, and leaders with them. A second
call resumes where the first stopped. A broker that is down can be drained as well: its replicas are copied from the others.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import refusal
from tidelog.cli.cluster.rebalance import carry_out, moving_options
from tidelog.cli.refusal import CommandFailed

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession
    from tidelog.console.moving.balance_plan import Move
    from tidelog.console.moving.layout import Layout


@click.command("drain", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("node", type=click.IntRange(min=0))
@moving_options
@click.option("--undo", is_flag=True, help="Let the broker take new replicas again; tidelog rebalance gives it its share.")
def command(node: int, bootstrap_server: str | None, command_config: str | None, undo: bool, **flags: Any) -> None:
    """Move all replicas and leaders off a broker."""
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.cluster.cluster_layout import read_layout

    bootstrap = refusal.required(bootstrap_server)
    with refusal.one_line("Error: "), AdminSession(bootstrap, command_config) as session:
        if undo:
            take_back(session, node)
            return
        layout = read_layout(session)
        moves = moves_off(layout, node)
        notes = [] if node in layout.racks else [f"Broker {node} is down: its replicas are copied from the others."]
        certain = flags["yes"] and not flags["dry_run"]
        if certain and node in layout.racks:
            cordon(session, layout, node)
        good = carry_out(session, layout, moves, notes, command_name=f"tidelog drain {node}", **flags)
        if good and not flags["dry_run"] and (flags["yes"] or not flags["as_json"]):
            if not certain and node in layout.racks:
                # Interactive: topics created meanwhile may lie here; a second call finds them.
                cordon(session, layout, node)
            print(after_text(layout, node), file=sys.stderr if flags["as_json"] else sys.stdout)
    sys.exit(0 if good else 1)


def moves_off(layout: Layout, node: int) -> list[Move]:
    """The plan. CommandFailed when a partition could not keep its replicas, or has no replica to copy from."""
    from tidelog.console.moving.balance_plan import CannotPlan
    from tidelog.console.moving.planning import drained

    try:
        return drained(layout, node)
    except CannotPlan as error:
        raise CommandFailed(str(error)) from error


def cordon(session: AdminSession, layout: Layout, node: int) -> None:
    """Makes the broker take no new replicas, where the cluster supports that."""
    from tidelog.cli.cluster.cluster_layout import set_cordon
    from tidelog.console.moving.layout import ALL_DIRS

    if node in layout.cordoned:
        return
    try:
        set_cordon(session, node, ALL_DIRS)
    except CommandFailed as error:
        print(f"Broker {node} cannot be cordoned ({error}); topics created from now on may use it.", file=sys.stderr)


def take_back(session: AdminSession, node: int) -> None:
    """Lets the broker take new replicas again."""
    from tidelog.cli.cluster.cluster_layout import set_cordon

    set_cordon(session, node, None)
    print(f"Broker {node} takes new replicas again. tidelog rebalance gives it its share.")


def after_text(layout: Layout, node: int) -> str:
    """The next steps for the user."""
    if node in layout.racks:
        return (
            f"Broker {node} holds nothing and gets nothing. Stop it, then forget it: kafka-cluster unregister --id {node}. "
            f"Or keep it: tidelog drain {node} --undo."
        )
    return f"Broker {node} holds nothing. Forget it: kafka-cluster unregister --id {node}."


if __name__ == "__main__":
    command(prog_name="tidelog drain")
