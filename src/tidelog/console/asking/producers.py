"""The producers of a topic's partitions (KIP-664), and users with SCRAM credentials (KIP-554)."""

from __future__ import annotations

from typing import Any

from tidelog.client.admin.topics import check, leaders
from tidelog.client.calls import Ask, Call, Each, Node
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tidelog.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_NONE = -1


def producers(topic: str) -> Call[tuple[list[dict[str, Any]], list[tuple[str, str]]]]:
    """A row for each producer of each partition; and (partition, error) of those that could not be asked."""
    there = yield from leaders([topic])
    by_leader: dict[int, list[int]] = {}
    for (_, index), leader in there.items():
        by_leader.setdefault(leader, []).append(index)
    answers = yield Each([_at(topic, leader, indexes) for leader, indexes in by_leader.items()])
    rows: list[dict[str, Any]] = []
    failed: list[tuple[str, str]] = []
    for part in sorted((each for answer in answers for each in answer), key=lambda each: each.partition_index):
        if part.error_code != ErrorCode.NONE:
            failed.append((f"{topic}-{part.partition_index}", ErrorCode(part.error_code).name))
        rows += [_row(part.partition_index, each) for each in part.active_producers]
    return rows, failed


def _at(topic: str, leader: int, indexes: list[int]) -> Call[list[Any]]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=indexes)])
    answer = yield Ask(request, Node(leader))
    return [part for found in answer.topics for part in found.partitions]


def _row(partition: int, found: Any) -> dict[str, Any]:
    began = found.current_txn_start_offset
    return {
        "partition": partition,
        "producer_id": str(found.producer_id),
        "epoch": found.producer_epoch,
        "last_sequence": found.last_sequence,
        "last_ms": None if found.last_timestamp == _NONE else str(found.last_timestamp),
        "transaction_start": None if began == _NONE else str(began),
        "coordinator_epoch": found.coordinator_epoch,
    }


def scram_users() -> Call[list[dict[str, Any]]]:
    """The users with SCRAM credentials; what they are derived from is never shown. KafkaError."""
    answer = yield Ask(DescribeUserScramCredentialsRequest(users=None))
    check(answer.error_code, answer.error_message)
    return [
        {
            "name": found.user,
            "mechanisms": [
                {"name": MECHANISMS.get(each.mechanism, str(each.mechanism)), "iterations": each.iterations}
                for each in found.credential_infos
            ],
        }
        for found in sorted(answer.results, key=lambda each: each.user)
        if found.error_code == ErrorCode.NONE
    ]
