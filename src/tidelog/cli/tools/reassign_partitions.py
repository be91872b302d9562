"""``tidelog reassign-partitions``, also installed as ``kafka-reassign-partitions``: moves replicas by a JSON file.

Flags and lines are those of Kafka's tool. ``rebalance`` computes such a file itself and follows the move to its end.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import entry, refusal
from tidelog.cli.connection_options import command_config_option
from tidelog.cli.refusal import CommandFailed

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.controller_session import Session
    from tidelog.cli.tools.reassignment_json import Partition, Proposal

FILE = click.Path(exists=True, dir_okay=False)
ACTIONS = ("generate", "execute", "verify", "cancel", "list")
NEEDS = {
    "generate": ("topics_to_move_json_file", "broker_list"),
    "execute": ("reassignment_json_file",),
    "verify": ("reassignment_json_file",),
    "cancel": ("reassignment_json_file",),
    "list": (),
}
TAKES = {
    "generate": {"disable_rack_aware"},
    "execute": {
        "additional",
        "throttle",
        "replica_alter_log_dirs_throttle",
        "timeout",
        "disallow_replication_factor_change",
    },
    "verify": {"preserve_throttles"},
    "cancel": {"preserve_throttles"},
    "list": set(),
}
"""The optional flags of each action."""


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of one call."""

    topics_to_move_json_file: str | None
    broker_list: str | None
    reassignment_json_file: str | None
    disable_rack_aware: bool
    throttle: int
    replica_alter_log_dirs_throttle: int
    timeout: int
    additional: bool
    preserve_throttles: bool
    disallow_replication_factor_change: bool


@click.command("reassign-partitions", context_settings={"help_option_names": ["-h", "--help"]})
@refusal.zookeeper_option
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="The brokers to connect to first.")
@click.option("--bootstrap-controller", metavar="HOST:PORT,...", help="The controllers instead, for --list and --cancel.")
@command_config_option
@click.option("--generate", is_flag=True, help="Propose replicas for topics, and begin nothing.")
@click.option("--execute", is_flag=True, help="Begin to move replicas as the file says.")
@click.option("--verify", is_flag=True, help="Say how far it is; take the throttles away when it is done.")
@click.option("--cancel", is_flag=True, help="Take back what is under way.")
@click.option("--list", "list_", is_flag=True, help="Show what is under way.")
@click.option("--topics-to-move-json-file", type=FILE, help='With --generate: {"topics": [{"topic": "foo"}], "version": 1}')
@click.option("--broker-list", metavar="0,1,2", help="With --generate: where to.")
@click.option("--disable-rack-aware", is_flag=True, help="With --generate: racks do not matter.")
@click.option(
    "--reassignment-json-file",
    type=FILE,
    help='What --generate printed: {"partitions": [{"topic": "foo", "partition": 0, "replicas": [1, 2]}], "version": 1}',
)
@click.option("--throttle", type=int, default=-1, metavar="BYTES", help="With --execute: bytes per second between brokers.")
@click.option(
    "--replica-alter-log-dirs-throttle", type=int, default=-1, metavar="BYTES", help="The same, between log dirs of a broker."
)
@click.option("--timeout", type=int, default=10_000, metavar="MS", help="How long a move between log dirs may take to begin.")
@click.option("--additional", is_flag=True, help="With --execute: though others are under way; also changes their throttle.")
@click.option("--preserve-throttles", is_flag=True, help="With --verify and --cancel: leave the throttles.")
@click.option("--disallow-replication-factor-change", is_flag=True, help="With --execute: refuse another number of replicas.")
def command(bootstrap_server: str | None, bootstrap_controller: str | None, command_config: str | None, **flags: Any) -> None:
    """Move replicas between brokers, and between their log dirs."""
    from tidelog.cli.controller_session import session, target

    flags["list"] = flags.pop("list_")
    action = _action(flags)
    bootstrap, controllers = target(bootstrap_server, bootstrap_controller)
    if controllers and action not in {"cancel", "list"}:
        refusal.usage('Option "[bootstrap-controller]" goes with --list and --cancel only; give --bootstrap-server')
    options = Options(**{name: value for name, value in flags.items() if name not in ACTIONS})
    with refusal.one_line("Error: "), session(bootstrap, controllers, command_config) as connected:
        good = RUN[action](connected, options)
    sys.exit(0 if good else 1)


def _action(flags: Mapping[str, Any]) -> str:
    given = [action for action in ACTIONS if flags[action]]
    if len(given) != 1:
        refusal.usage(f"Give one action: {', '.join(f'--{action}' for action in ACTIONS)}")
    (action,) = given
    for name in NEEDS[action]:
        if flags[name] is None:
            refusal.usage(f'Missing required argument "[{name.replace("_", "-")}]"')
    defaults = {"throttle": -1, "replica_alter_log_dirs_throttle": -1, "timeout": 10_000}
    for name, value in flags.items():
        known = name in NEEDS[action] or name in TAKES[action] or name in ACTIONS
        if not known and value not in {None, False, defaults.get(name)}:
            refusal.usage(f"--{name.replace('_', '-')} does not belong to --{action}: leave it out")
    return action


def generate(session: AdminSession, options: Options) -> bool:
    """Proposes replicas striped over the brokers, as for a new topic."""
    import random

    from tidelog.cli.tools.reassignment_json import as_json, parse_topics
    from tidelog.cli.tools.reassignments import placed, replicas_of

    assert options.broker_list is not None
    topics = parse_topics(_read(options.topics_to_move_json_file))
    try:
        wanted = [int(word) for word in options.broker_list.split(",")]
    except ValueError as error:
        raise CommandFailed(f"--broker-list {options.broker_list}: brokers are numbers, joined by commas") from error
    if len(set(wanted)) != len(wanted):
        raise CommandFailed(f"Broker list contains duplicate entries: {options.broker_list}")
    current = replicas_of(session, topics)
    racks = {id_: None if options.disable_rack_aware else broker.rack for id_, broker in session.brokers().items()}
    hosts = {id_: broker.host for id_, broker in session.brokers().items()}
    proposed = propose(current, {broker: racks[broker] for broker in wanted if broker in racks}, hosts, random.SystemRandom())
    dirs = {replica: each.log_dir for replica, each in placed(session, current).items()}
    print(f"Current partition replica assignment\n{as_json(current, dirs)}\n")
    print(f"Proposed partition reassignment configuration\n{as_json(proposed, {})}")
    return True


def propose(
    current: Mapping[Partition, tuple[int, ...]], racks: Mapping[int, str | None], hosts: Mapping[int, str], rng: Any
) -> dict[Partition, tuple[int, ...]]:
    """Stripes each topic over these brokers from a random start; ``racks`` and ``hosts`` by broker. CommandFailed when there
    are too few brokers."""
    from tidelog.controller.replica_placement import InvalidReplicationFactor, UsableBroker, place

    if None in racks.values() and set(racks.values()) != {None}:
        raise CommandFailed(
            "Some brokers have no broker.rack, others have one. Set it on all, or add --disable-rack-aware to place replicas "
            "without regard to racks."
        )
    brokers = [UsableBroker(broker, rack, fenced=False, machine=hosts[broker]) for broker, rack in sorted(racks.items())]
    topics: dict[str, list[Partition]] = {}
    for partition in sorted(current):
        topics.setdefault(partition[0], []).append(partition)
    proposed: dict[Partition, tuple[int, ...]] = {}
    for partitions in topics.values():
        try:
            placements = place(brokers, len(partitions), len(current[partitions[0]]), rng)
        except InvalidReplicationFactor as error:
            raise CommandFailed(str(error)) from error
        proposed |= dict(zip(partitions, placements, strict=True))
    return proposed


def execute(session: AdminSession, options: Options) -> bool:
    """Starts the move."""
    from tidelog.cli.tools import reassignments, replication_throttles
    from tidelog.cli.tools.reassignment_json import as_json, parse_proposal
    from tidelog.console.moving.throttles import transfers

    proposal = parse_proposal(_read(options.reassignment_json_file))
    under_way = reassignments.ongoing(session)
    if under_way and not options.additional:
        print(
            "Cannot start: a reassignment is under way. Wait for it (--list shows it), or add --additional to start this one "
            "beside it. To change only the throttle, send the running reassignment again with --additional."
        )
        return False
    current = _current(session, proposal)
    dirs = {replica: each.log_dir for replica, each in reassignments.placed(session, current).items()}
    print(f"Current partition replica assignment\n\n{as_json(current, dirs)}\n")
    print("Save this to use as the --reassignment-json-file option during rollback")
    if options.throttle >= 0 or options.replica_alter_log_dirs_throttle >= 0:
        print(
            "Warning: The throttle stays until --verify runs after the end of the reassignment: repeat --verify until it says so."
        )
    if options.throttle >= 0:
        moves = transfers(current, proposal.replicas, under_way)
        replication_throttles.set_rate(session, moves, options.throttle)
        print(f"Replication between brokers is throttled to {options.throttle} B/s")
    if options.replica_alter_log_dirs_throttle >= 0:
        brokers = {broker for _, _, broker in proposal.log_dirs}
        replication_throttles.set_log_dir_rate(session, brokers, options.replica_alter_log_dirs_throttle)
        print(f"Moves between log directories are throttled to {options.replica_alter_log_dirs_throttle} B/s")
    failed = reassignments.alter(session, proposal.replicas, allow_factor_change=not options.disallow_replication_factor_change)
    if failed:
        print("Error reassigning partition(s):")
        print("\n".join(f"{topic}-{index}: {problem}" for (topic, index), problem in sorted(failed.items())))
        return False
    plural = "s" if len(proposal.replicas) > 1 else ""
    print(f"Successfully started partition reassignment{plural} for {reassignments.names(proposal.replicas)}")
    if proposal.log_dirs:
        from tidelog.cli.tools.log_dir_moves import begin

        begin(session, proposal.log_dirs, options.timeout)
    return True


def _current(session: AdminSession, proposal: Proposal) -> dict[Partition, tuple[int, ...]]:
    """The current replicas of the proposal's partitions. CommandFailed when it names unknown brokers or partitions."""
    from tidelog.cli.tools.reassignments import UNKNOWN, replicas_of

    there = replicas_of(session, [topic for topic, _ in proposal.replicas])
    for brokers in proposal.replicas.values():
        for broker in brokers:
            if broker not in session.brokers():
                raise CommandFailed(f"Unknown broker id {broker}")
    for topic, index in proposal.replicas:
        if (topic, index) not in there:
            raise CommandFailed(refusal.error_text(UNKNOWN, f"Unable to find partition: {topic}-{index}"))
    return {partition: there[partition] for partition in proposal.replicas}


def verify(session: AdminSession, options: Options) -> bool:
    """Prints the progress of each partition in the file."""
    from tidelog.cli.tools import reassignments
    from tidelog.cli.tools.reassignment_json import parse_proposal

    proposal = parse_proposal(_read(options.reassignment_json_file))
    under_way = reassignments.ongoing(session)
    there = {
        (topic.name or "", part.partition_index): tuple(part.replica_nodes)
        for topic in session.metadata(sorted({topic for topic, _ in proposal.replicas}))
        for part in topic.partitions
    }
    print("Status of partition reassignment:")
    for partition, wanted in sorted(proposal.replicas.items()):
        name = "-".join(map(str, partition))
        now = there.get(partition, ())
        if partition in under_way:
            print(f"Reassignment of partition {name} is still in progress.")
        elif now == wanted:
            print(f"Reassignment of partition {name} is completed.")
        else:
            shown, asked = (",".join(map(str, each)) for each in (now, wanted))
            print(f"Partition {name} is not being reassigned and has the replicas {shown}, not {asked}.")
    print()
    moving = False
    if proposal.log_dirs:
        from tidelog.cli.tools.log_dir_moves import report

        moving = report(session, proposal.log_dirs)
    if not under_way and not moving and not options.preserve_throttles:
        _clear_throttles(session, proposal, [topic for topic, _ in there])
    return all(partition in there for partition in proposal.replicas)


def cancel(session: Session, options: Options) -> bool:
    """Cancels the reassignments and log dir moves of the file."""
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.tools import reassignments
    from tidelog.cli.tools.reassignment_json import parse_proposal

    proposal = parse_proposal(_read(options.reassignment_json_file))
    active = [partition for partition in sorted(reassignments.ongoing(session)) if partition in proposal.replicas]
    if active:
        failed = reassignments.alter(session, dict.fromkeys(active))
        for (topic, index), problem in sorted(failed.items()):
            raise CommandFailed(f"The reassignment of {topic}-{index} cannot be cancelled: {problem}")
        plural = "s" if len(active) > 1 else ""
        print(f"Successfully cancelled partition reassignment{plural} for: {reassignments.names(active)}")
    else:
        print("None of the partitions in the file is being reassigned: nothing to cancel.")
    if not isinstance(session, AdminSession):
        if proposal.log_dirs:
            raise CommandFailed("Moves between log dirs are known to brokers only: give --bootstrap-server to cancel them.")
    elif proposal.log_dirs:
        from tidelog.cli.tools.log_dir_moves import take_back

        take_back(session, proposal.log_dirs)
    else:
        print("No move of a replica between log directories is running: nothing to cancel.")
    if not options.preserve_throttles:
        _clear_throttles(session, proposal, [topic for topic, _ in proposal.replicas])
    return True


def list_ongoing(session: Session, options: Options) -> bool:
    """Prints all running reassignments."""
    from tidelog.cli.tools import reassignments

    found = reassignments.ongoing(session)
    if not found:
        print("No partition reassignments found.")
        return True
    print("Current partition reassignments:")
    for (topic, index), each in sorted(found.items()):
        line = f"{topic}-{index}: replicas: {','.join(map(str, each.replicas))}."
        line += f" adding: {','.join(map(str, each.adding))}." if each.adding else ""
        line += f" removing: {','.join(map(str, each.removing))}." if each.removing else ""
        print(line)
    return True


def _clear_throttles(session: Session, proposal: Proposal, topics: list[str]) -> None:
    """Clears the throttles of all brokers: a proposal that was changed meanwhile does not tell which ones had one."""
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.tools import replication_throttles

    brokers = {broker for replicas in proposal.replicas.values() for broker in replicas}
    if isinstance(session, AdminSession):
        brokers |= set(session.brokers())
    shown = ",".join(map(str, sorted(brokers)))
    print(f"Clearing broker-level throttles on broker{'s' if len(brokers) > 1 else ''} {shown}")
    replication_throttles.clear(session, brokers, ())
    named = sorted(set(topics))
    print(f"Clearing topic-level throttles on topic{'s' if len(named) > 1 else ''} {','.join(named)}")
    replication_throttles.clear(session, (), named)


def _read(path: str | None) -> str:
    assert path is not None
    return refusal.text_of(path)


RUN: dict[str, Any] = {"generate": generate, "execute": execute, "verify": verify, "cancel": cancel, "list": list_ongoing}


def main() -> None:
    """``kafka-reassign-partitions``."""
    entry.run(command, "kafka-reassign-partitions")


if __name__ == "__main__":
    main()
