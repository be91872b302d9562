"""``tidelog safe-to-stop NODE``: whether this broker can be stopped now without an outage. For rolling restarts and upgrades.

A node may stop when every partition that it holds keeps as many replicas in sync as ``min.insync.replicas`` requires, and the
metadata quorum keeps a majority that is up to date. What waiting cannot fix (a partition with a single replica) is reported
separately.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from tidelog.cli import columns, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession
    from tidelog.console.moving.layout import Seen

POLL_S = 0.5
SILENT_MS = 5_000
"""A voter that has not fetched for this long does not count."""
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a node should not stop yet, and what will be unavailable whenever it is stopped."""

    wait_for: tuple[str, ...] = ()
    unavoidable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VoterSeen:
    """A voter as the leader of the quorum sees it: the time since its last fetch, and whether it has all committed records."""

    id: int
    silent_ms: int
    caught_up: bool


class Reasons:
    """Collects messages; those about partitions are grouped by topic."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        """Messages that are not about a partition."""
        self._partitions: dict[tuple[str, str], list[int]] = {}

    def add(self, partition: tuple[str, int], what: str) -> None:
        """Adds a message about a partition."""
        self._partitions.setdefault((partition[0], what), []).append(partition[1])

    def all(self) -> tuple[str, ...]:
        """A message per topic and reason, then the others."""
        lines = []
        for (topic, what), indexes in self._partitions.items():
            name = f"{topic}-{indexes[0]}" if len(indexes) == 1 else f"{topic}, {len(indexes)} partitions"
            lines.append(f"{name}: {what}")
        return (*lines, *self.texts)


def judge(node: int, seen: Iterable[Seen], min_isr: Mapping[str, int], voters: Iterable[VoterSeen]) -> Verdict:
    """Whether ``node`` may stop. ``min_isr`` by topic; 1 where it is unknown."""
    wait_for = Reasons()
    unavoidable = Reasons()
    for each in seen:
        if node not in each.replicas:
            continue
        needed = max(1, min_isr.get(each.partition[0], 1))
        others = [broker for broker in each.replicas if broker != node]
        left = [broker for broker in each.in_sync if broker != node]
        if not others:
            unavoidable.add(each.partition, "no other replica: unavailable meanwhile")
        elif len(others) < needed:
            left_over = f"{len(others)} replica{'s' if len(others) > 1 else ''}"
            unavoidable.add(each.partition, f"{left_over} left, min.insync.replicas is {needed}: no acks=all meanwhile")
        elif len(left) < needed and node in each.in_sync:
            behind = ", ".join(str(broker) for broker in others if broker not in left)
            wait_for.add(each.partition, f"{len(left)} in sync without it, and {needed} needed: broker {behind} is behind")
    all_voters = list(voters)
    if any(voter.id == node for voter in all_voters):
        good = [voter for voter in all_voters if voter.id != node and voter.caught_up and voter.silent_ms < SILENT_MS]
        majority = len(all_voters) // 2 + 1
        if len(all_voters) < 3:
            unavoidable.texts.append("the metadata quorum has no majority without this node: nothing can be changed meanwhile")
        elif len(good) < majority:
            ids = ", ".join(str(voter.id) for voter in all_voters if voter.id != node and voter not in good)
            wait_for.texts.append(f"the metadata quorum would have no majority: voter {ids} is down or behind")
    return Verdict(wait_for.all(), unavoidable.all())


def read_verdict(session: AdminSession, node: int) -> Verdict:
    """Asks the cluster. CommandFailed when it does not provide the data."""
    from tidelog.cli.cluster.cluster_layout import min_isr_of, see
    from tidelog.cli.tools.metadata_quorum import quorum

    seen = see(session)
    partition, _ = quorum(session)
    latest = max([voter.last_fetch_timestamp for voter in partition.current_voters], default=0)
    voters = [
        VoterSeen(
            voter.replica_id,
            0 if voter.replica_id == partition.leader_id else latest - voter.last_fetch_timestamp,
            voter.log_end_offset >= partition.high_watermark,
        )
        for voter in partition.current_voters
    ]
    return judge(node, seen, min_isr_of(session, {each.partition[0] for each in seen if node in each.replicas}), voters)


def check_known(session: AdminSession, node: int) -> None:
    """CommandFailed for a node that the cluster does not have: a mistyped number must not look safe."""
    from tidelog.cli.cluster.cluster_layout import FENCED_FROM
    from tidelog.cli.tools.metadata_quorum import quorum
    from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest

    if session.version_of(DescribeClusterRequest.API_KEY) < FENCED_FROM:
        return  # brokers that are down are not listed
    cluster = session.ask(DescribeClusterRequest(include_fenced_brokers=True))
    refusal.check(cluster.error_code, cluster.error_message)
    partition, _ = quorum(session)
    known = {broker.broker_id for broker in cluster.brokers}
    known |= {replica.replica_id for replica in (*partition.current_voters, *partition.observers)}
    if node not in known:
        raise refusal.CommandFailed(f"The cluster has no node {node}; it has {', '.join(map(str, sorted(known)))}.")


def wait_until_safe(session: AdminSession, node: int, seconds: float) -> Verdict:
    """The verdict once there is nothing to wait for, or at the timeout."""
    deadline = time.monotonic() + seconds
    while True:
        verdict = read_verdict(session, node)
        if not verdict.wait_for or time.monotonic() >= deadline:
            return verdict
        time.sleep(POLL_S)


@click.command("safe-to-stop", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("node", type=click.IntRange(min=0))
@bootstrap_option
@command_config_option
@click.option("--wait", "seconds", type=click.FloatRange(min=0), default=0.0, metavar="SECONDS", help="Wait so long for it. [0]")
@columns.output_option
def command(node: int, bootstrap_server: str | None, command_config: str | None, seconds: float, output: str) -> None:
    """Say whether a broker may be stopped: exit code 0 when it may, 1 when it has to wait."""
    from tidelog.cli.admin_session import AdminSession

    bootstrap = refusal.required(bootstrap_server)
    with refusal.one_line("Error: "), AdminSession(bootstrap, command_config) as session:
        check_known(session, node)
        verdict = wait_until_safe(session, node, seconds)
    if output == "json":
        print(columns.as_json({"safe": not verdict.wait_for, "waitFor": verdict.wait_for, "unavoidable": verdict.unavoidable}))
    else:
        for text in _cut(verdict.unavoidable):
            print(f"Note: {text}")
        for text in _cut(verdict.wait_for):
            print(f"Wait: {text}")
        print(f"Node {node} may be stopped." if not verdict.wait_for else f"Node {node} should not be stopped yet.")
    sys.exit(1 if verdict.wait_for else 0)


def _cut(texts: tuple[str, ...]) -> list[str]:
    more = [f"... and {len(texts) - SHOWN} more"] if len(texts) > SHOWN else []
    return [*texts[:SHOWN], *more]


if __name__ == "__main__":
    command(prog_name="tidelog safe-to-stop")
