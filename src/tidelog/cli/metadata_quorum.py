"""``tidelog metadata-quorum``, also installed as ``kafka-metadata-quorum``: who votes, who leads, who lags."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import columns, refusal
from tidelog.model.ids import METADATA_TOPIC, ZERO_UUID, uuid_to_text

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession

TITLES = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")


@click.group("metadata-quorum", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="The brokers to connect to first.")
@click.option("--bootstrap-controller", metavar="HOST:PORT,...", help="The controllers to connect to instead.")
@click.option("--command-config", type=click.Path(exists=True, dir_okay=False), help="A file with settings of the client.")
@click.pass_context
def command(
    ctx: click.Context, bootstrap_server: str | None, bootstrap_controller: str | None, command_config: str | None
) -> None:
    """Show the state of the metadata quorum."""
    if bootstrap_server and bootstrap_controller:
        refusal.usage("Only one of --bootstrap-server and --bootstrap-controller can be given")
    ctx.obj = (refusal.required(bootstrap_server or bootstrap_controller), command_config)


@command.command()
@click.option("--status", is_flag=True, help="The leader, and how far the quorum is.")
@click.option("--replication", is_flag=True, help="Each voter and observer, and how far it is behind.")
@click.option("--human-readable", is_flag=True, help="With --replication: times as how long ago.")
@columns.output_option
@click.pass_obj
def describe(target: tuple[str, str | None], status: bool, replication: bool, human_readable: bool, output: str) -> None:
    """Show the quorum's status, or its replication."""
    from tidelog.cli.admin_session import AdminSession

    if status and replication:
        refusal.usage("Only one of --status or --replication should be specified with describe sub-command")
    if not status and not replication:
        refusal.usage("One of --status or --replication must be specified with describe sub-command")
    if human_readable and status:
        refusal.usage("The option --human-readable is only supported along with --replication")
    with refusal.one_line("Error: "), AdminSession(*target) as session:
        partition, nodes = _quorum(session)
        now_ms = round(time.time() * 1000)  # noqa: TID251
        if status:
            _print_status(session, partition, nodes, output)
        else:
            _print_replication(partition, now_ms if human_readable else None, output)


def _quorum(session: AdminSession) -> tuple[Any, list[Any]]:
    """The partition of the metadata log, and the voters' endpoints."""
    from tidelog.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData

    asked = [RequestTopicData(topic_name=METADATA_TOPIC, partitions=[RequestPartitionData(partition_index=0)])]
    response = session.ask(DescribeQuorumRequest(topics=asked))
    refusal.check(response.error_code, response.error_message)
    partition = response.topics[0].partitions[0]
    refusal.check(partition.error_code, partition.error_message)
    return partition, response.nodes


def _print_status(session: AdminSession, partition: Any, nodes: list[Any], output: str) -> None:
    from tidelog.protocol.messages.metadata import MetadataRequest

    cluster = session.ask(MetadataRequest(topics=[], allow_auto_topic_creation=False)).cluster_id
    (leader,) = (voter for voter in partition.current_voters if voter.replica_id == partition.leader_id)
    followers = [voter for voter in partition.current_voters if voter is not leader]
    lag = max([leader.log_end_offset - voter.log_end_offset for voter in followers], default=0)
    times = [leader.last_caught_up_timestamp - voter.last_caught_up_timestamp for voter in followers]
    lines: dict[str, Any] = {
        "ClusterId": cluster,
        "LeaderId": partition.leader_id,
        "LeaderEpoch": partition.leader_epoch,
        "HighWatermark": partition.high_watermark,
        "MaxFollowerLag": lag,
        "MaxFollowerLagTimeMs": max(times, default=0),
        "CurrentVoters": [_replica(voter, nodes) for voter in partition.current_voters],
        "CurrentObservers": [_replica(observer, []) for observer in partition.observers],
    }
    if output == "json":
        print(columns.as_json(lines))
        return
    for name, value in lines.items():
        print(f"{name + ':':<24}{json.dumps(value) if isinstance(value, list) else value}")


def _replica(replica: Any, nodes: list[Any]) -> dict[str, Any]:
    """Kafka shows a directory where there is one, and endpoints where they are known."""
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
    """``now_ms`` turns times into how long ago; None leaves them."""
    (leader,) = (voter for voter in partition.current_voters if voter.replica_id == partition.leader_id)
    followers = [voter for voter in partition.current_voters if voter is not leader]
    roles = [
        (leader, "Leader"),
        *((voter, "Follower") for voter in followers),
        *((each, "Observer") for each in partition.observers),
    ]

    def when(timestamp: int) -> str:
        return str(timestamp) if now_ms is None or timestamp < 0 else f"{now_ms - timestamp} ms ago"

    rows = [
        (
            str(replica.replica_id),
            uuid_to_text(replica.replica_directory_id),
            str(replica.log_end_offset),
            str(leader.log_end_offset - replica.log_end_offset),
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


def main() -> None:
    """``kafka-metadata-quorum``."""
    command(prog_name="kafka-metadata-quorum")


if __name__ == "__main__":
    main()
