"""Moves replicas between the log dirs of their broker: start, report, cancel (the ``log_dirs`` of a reassignment file)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidelog.cli.refusal import CommandFailed, error_text
from tidelog.cli.tools.reassignment_json import Replica
from tidelog.cli.tools.reassignments import Placed, placed
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession

RETRY_S = 0.1
NOT_THERE_YET = frozenset({ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""A broker does not have a newly assigned replica immediately."""


def begin(session: AdminSession, wanted: Mapping[Replica, str], timeout_ms: int) -> None:
    """Asks each replica's broker to move it to the log dir. CommandFailed when one refuses, or does not begin in time."""
    deadline = time.monotonic() + timeout_ms / 1000
    waiting = dict(wanted)
    while True:
        for replica, code in _ask(session, waiting).items():
            topic, index, broker = replica
            if code == ErrorCode.NONE:
                path = waiting.pop(replica)
                print(f"Successfully started moving log directory to {path} for replica {topic}-{index} with broker {broker}")
            elif code not in NOT_THERE_YET:
                raise CommandFailed(f"Failed to alter dir for {topic}-{index}-{broker}: {error_text(code)}")
        if not waiting:
            return
        if time.monotonic() >= deadline:
            names = ", ".join(f"{topic}-{index}-{broker}" for topic, index, broker in sorted(waiting))
            raise CommandFailed(f"Their brokers did not have these replicas within {timeout_ms} ms (--timeout): {names}")
        time.sleep(RETRY_S)


def report(session: AdminSession, wanted: Mapping[Replica, str]) -> bool:
    """Prints where each replica is; returns whether any is still moving."""
    found = placed(session, _by_partition(wanted))
    moving = False
    for replica, path in sorted(wanted.items()):
        now = found.get(replica)
        moving = moving or (now is not None and now.future_dir is not None)
        print(state(replica, path, now))
    return moving


def state(replica: Replica, path: str, now: Placed | None) -> str:
    """One line about a replica whose target is ``path``."""
    name = f"{replica[0]}-{replica[1]}-{replica[2]}"
    if now is None:
        return f"Replica {name} is in no live log directory of its broker."
    if now.future_dir == path:
        return f"Reassignment of replica {name} is still in progress."
    if now.future_dir is not None:
        return f"Replica {name} is moving to log directory {now.future_dir}, not to {path}."
    if now.log_dir != path:
        return f"Replica {name} lies in log directory {now.log_dir} and is not moving to {path}."
    return f"Reassignment of replica {name} completed successfully."


def take_back(session: AdminSession, wanted: Mapping[Replica, str]) -> None:
    """Cancels running moves: each replica is asked to stay where it is."""
    found = placed(session, _by_partition(wanted))
    back = {replica: found[replica].log_dir for replica in wanted if replica in found and found[replica].future_dir is not None}
    if not back:
        print("No move of a replica between log directories is running: nothing to cancel.")
        return
    for (topic, index, broker), code in _ask(session, back).items():
        if code != ErrorCode.NONE:
            raise CommandFailed(f"The move of {topic}-{index}-{broker} cannot be cancelled: {error_text(code)}")
    names = ",".join(f"{topic}-{index}-{broker}" for topic, index, broker in sorted(back))
    print(f"Successfully cancelled moves for: {names}")


def _by_partition(wanted: Mapping[Replica, str]) -> dict[tuple[str, int], list[int]]:
    result: dict[tuple[str, int], list[int]] = {}
    for topic, index, broker in sorted(wanted):
        result.setdefault((topic, index), []).append(broker)
    return result


def _ask(session: AdminSession, wanted: Mapping[Replica, str]) -> dict[Replica, int]:
    """The error code for each replica; one request per broker."""
    by_broker: dict[int, dict[str, dict[str, list[int]]]] = {}
    for (topic, index, broker), path in sorted(wanted.items()):
        by_broker.setdefault(broker, {}).setdefault(path, {}).setdefault(topic, []).append(index)
    codes: dict[Replica, int] = {}
    for broker, dirs in by_broker.items():
        asked = [
            AlterReplicaLogDir(
                path=path,
                topics=[AlterReplicaLogDirTopic(name=topic, partitions=indexes) for topic, indexes in topics.items()],
            )
            for path, topics in dirs.items()
        ]
        response = session.connection(broker).ask(AlterReplicaLogDirsRequest(dirs=asked))
        codes |= {
            (topic.topic_name, part.partition_index, broker): part.error_code
            for topic in response.results
            for part in topic.partitions
        }
    return codes
