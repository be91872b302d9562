"""``tidelog metadata-quorum``, also installed as ``kafka-metadata-quorum``: shows voters, leader and lag; adds and removes
voters."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import columns, entry, refusal
from tidelog.cli.controller_session import session, target, target_options
from tidelog.cli.refusal import CommandFailed
from tidelog.config.properties import parse
from tidelog.model.ids import METADATA_TOPIC, ZERO_UUID, uuid_from_text, uuid_to_text

if TYPE_CHECKING:
    from tidelog.cli.controller_session import Session

Flags = tuple[str | None, str | None, str | None]
"""Brokers or controllers, and a file of settings."""

CLIENT_PROTOCOL = "security.protocol"
"""A setting that clients have and nodes have not."""
TITLES = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")


@click.group("metadata-quorum", context_settings={"help_option_names": ["-h", "--help"]})
@target_options
@click.pass_context
def command(
    ctx: click.Context, bootstrap_server: str | None, bootstrap_controller: str | None, command_config: str | None
) -> None:
    """Show the state of the metadata quorum, and change who votes in it."""
    ctx.obj = bootstrap_server, bootstrap_controller, command_config


@command.command()
@click.option("--status", is_flag=True, help="The leader, and how far the quorum is.")
@click.option("--replication", is_flag=True, help="Each voter and observer, and how far it is behind.")
@click.option("--human-readable", is_flag=True, help="With --replication: times as how long ago.")
@columns.output_option
@click.pass_obj
def describe(flags: Flags, status: bool, replication: bool, human_readable: bool, output: str) -> None:
    """Show the quorum's status, or its replication."""
    if status and replication:
        refusal.usage("describe shows either --status or --replication: give one")
    if not status and not replication:
        refusal.usage("Say what to describe: --status or --replication")
    if human_readable and status:
        refusal.usage("--human-readable changes the times that --replication prints: leave it out with --status")
    bootstrap, controllers = target(flags[0], flags[1])
    with refusal.one_line("Error: "), session(bootstrap, controllers, flags[2]) as connected:
        partition, nodes = quorum(connected)
        now_ms = round(time.time() * 1000)  # noqa: TID251
        if status:
            _print_status(cluster_id(connected, controllers), partition, nodes, output)
        else:
            _print_replication(partition, now_ms if human_readable else None, output)


def quorum(session: Session) -> tuple[Any, list[Any]]:
    """The partition of the metadata log, and the voters' endpoints."""
    from tidelog.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData

    asked = [RequestTopicData(topic_name=METADATA_TOPIC, partitions=[RequestPartitionData(partition_index=0)])]
    response = session.ask(DescribeQuorumRequest(topics=asked))
    refusal.check(response.error_code, response.error_message)
    partition = response.topics[0].partitions[0]
    refusal.check(partition.error_code, partition.error_message)
    return partition, response.nodes


def cluster_id(session: Session, controllers: bool) -> str:
    """The cluster's id, as brokers or controllers report it."""
    from tidelog.cli.controller_session import CONTROLLERS
    from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest

    request = DescribeClusterRequest(endpoint_type=CONTROLLERS) if controllers else DescribeClusterRequest()
    response = session.ask(request)
    refusal.check(response.error_code, response.error_message)
    return str(response.cluster_id)


def _leader(partition: Any) -> Any:
    """The leader, or in its place the voter with the longest log: a leader that is being removed is no voter, but leads until
    the removal is committed."""
    return max(partition.current_voters, key=lambda voter: (voter.replica_id == partition.leader_id, voter.log_end_offset))


def _behind_ms(leader_ms: int, follower_ms: int) -> int:
    """-1 for a voter that has never fetched: its disk was replaced, and the replica with its id is now another one."""
    return leader_ms - follower_ms if min(leader_ms, follower_ms) >= 0 else -1


def _print_status(cluster: str, partition: Any, nodes: list[Any], output: str) -> None:
    leader = _leader(partition)
    # As in Kafka's tool, the first of the voters with the shortest log; without any lag the time is that of a voter without lag.
    slowest = min(partition.current_voters, key=lambda voter: voter.log_end_offset)
    lines: dict[str, Any] = {
        "ClusterId": cluster,
        "LeaderId": partition.leader_id,
        "LeaderEpoch": partition.leader_epoch,
        "HighWatermark": partition.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - slowest.log_end_offset,
        "MaxFollowerLagTimeMs": _behind_ms(leader.last_caught_up_timestamp, slowest.last_caught_up_timestamp),
        "CurrentVoters": [_replica(voter, nodes) for voter in partition.current_voters],
        "CurrentObservers": [_replica(observer, []) for observer in partition.observers],
    }
    if output == "json":
        print(columns.as_json(lines))
        return
    for name, value in lines.items():
        print(f"{name + ':':<24}{json.dumps(value) if isinstance(value, list) else value}")


def _replica(replica: Any, nodes: list[Any]) -> dict[str, Any]:
    """Kafka shows a directory if there is one, and endpoints if they are known."""
    shown: dict[str, Any] = {"id": replica.replica_id}
    if replica.replica_directory_id != ZERO_UUID:
        shown["directoryId"] = uuid_to_text(replica.replica_directory_id)
    endpoints = [
        f"{point.name}://{point.host}:{point.port}"
        for node in nodes
        if node.node_id == replica.replica_id
        for point in node.listeners
    ]
    if endpoints:
        shown["endpoints"] = endpoints
    return shown


def _print_replication(partition: Any, now_ms: int | None, output: str) -> None:
    """``now_ms`` converts times to ages; None prints them unchanged."""
    end = _leader(partition).log_end_offset
    voters = sorted(partition.current_voters, key=lambda voter: voter.replica_id != partition.leader_id)
    roles = [
        *((voter, "Leader" if voter.replica_id == partition.leader_id else "Follower") for voter in voters),
        *((each, "Observer") for each in partition.observers),
    ]

    def when(timestamp: int) -> str:
        return str(timestamp) if now_ms is None or timestamp < 0 else f"{now_ms - timestamp} ms ago"

    rows = [
        (
            str(replica.replica_id),
            uuid_to_text(replica.replica_directory_id),
            str(replica.log_end_offset),
            str(end - replica.log_end_offset),
            when(replica.last_fetch_timestamp),
            when(replica.last_caught_up_timestamp),
            role,
        )
        for replica, role in roles
    ]
    if output == "json":
        times = () if now_ms is not None else ("LastFetchTimestamp", "LastCaughtUpTimestamp")
        numbers = {"NodeId", "LogEndOffset", "Lag", *times}
        named = [dict(zip(TITLES, row, strict=True)) for row in rows]
        print(columns.as_json([{name: int(text) if name in numbers else text for name, text in row.items()} for row in named]))
        return
    widths = [max(len(row[column]) for row in (TITLES, *rows)) for column in range(len(TITLES))]
    for row in (TITLES, *rows):
        print("".join(text.ljust(width) + "\t" for text, width in zip(row, widths, strict=True)))


@command.command("add-controller")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.pass_obj
def add_controller(flags: Flags, dry_run: bool) -> None:
    """Make a controller a voter; --command-config is its own server.properties, and its log dirs are formatted."""
    from tidelog.cli.tools.new_voter import read_voter
    from tidelog.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener

    bootstrap, controllers = target(flags[0], flags[1])
    properties = flags[2]
    if properties is None:
        refusal.usage("add-controller reads the new controller's own configuration: name its file with --command-config.")
    with refusal.one_line(""):
        voter = read_voter(properties)
        shown = ", ".join(f"{point.name}://{point.host}:{point.port}" for point in voter.endpoints)
        line = f"controller {voter.voter_id} with directory id {uuid_to_text(voter.directory_id)} and endpoints: {shown}"
        if dry_run:
            print(f"DRY RUN of adding {line}")
            return
        # The file configures the node; it has settings for this connection only where they are added to it.
        settings = properties if CLIENT_PROTOCOL in parse(refusal.text_of(properties)) else None
        with session(bootstrap, controllers, settings) as connected:
            request = AddRaftVoterRequest(
                cluster_id=cluster_id(connected, controllers),
                timeout_ms=connected.timeout_ms,
                voter_id=voter.voter_id,
                voter_directory_id=voter.directory_id,
                listeners=[Listener(name=point.name, host=point.host, port=point.port) for point in voter.endpoints],
            )
            response = connected.ask(request)
        refusal.check(response.error_code, response.error_message)
        print(f"Added {line}")


@command.command("remove-controller")
@click.option("--controller-id", "-i", type=int, required=True, help="The voter's node id.")
@click.option("--controller-directory-id", "-d", required=True, help="The id of its metadata directory, as describe shows it.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.pass_obj
def remove_controller(flags: Flags, controller_id: int, controller_directory_id: str, dry_run: bool) -> None:
    """Take a voter's vote; its node goes on as an observer until it is stopped."""
    from tidelog.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest

    bootstrap, controllers = target(flags[0], flags[1])
    with refusal.one_line(""):
        try:
            directory = uuid_from_text(controller_directory_id)
        except ValueError as error:
            raise CommandFailed(f"Failed to parse --controller-directory-id: {error}") from error
        line = f" KRaft controller {controller_id} with directory id {controller_directory_id}"
        if dry_run:
            print(f"DRY RUN of removing {line}")
            return
        with session(bootstrap, controllers, flags[2]) as connected:
            request = RemoveRaftVoterRequest(
                cluster_id=cluster_id(connected, controllers), voter_id=controller_id, voter_directory_id=directory
            )
            response = connected.ask(request)
        refusal.check(response.error_code, response.error_message)
        print(f"Removed {line}")


def main() -> None:
    """``kafka-metadata-quorum``."""
    entry.run(command, "kafka-metadata-quorum")


if __name__ == "__main__":
    main()
