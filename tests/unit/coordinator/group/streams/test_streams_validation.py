"""The form of a StreamsGroupHeartbeat."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.coordinator.group.streams.streams_driver import word_count
from tidelog.coordinator.group.streams.streams_validation import check_request
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.streams_group_heartbeat import (
    RequestTaskIds,
    StreamsGroupHeartbeatRequest,
    TaskOffset,
    TopicInfo,
)

TASKS = [RequestTaskIds("0", [0])]
JOIN: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 5,
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
    "topology": word_count(),
}
BEAT: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 3}


SILENT = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"))


@pytest.mark.parametrize("fields", [JOIN, BEAT, BEAT | {"member_epoch": -1}, JOIN | SILENT])
def test_what_is_well_formed(fields: dict[str, Any]) -> None:
    check_request(StreamsGroupHeartbeatRequest(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        BEAT | {"member_id": ""},
        BEAT | {"group_id": " "},
        BEAT | {"rack_id": ""},
        BEAT | {"instance_id": "i"},
        BEAT | {"task_offsets": [TaskOffset("0", 0, 1)]},
        BEAT | {"task_end_offsets": []},
        BEAT | {"member_epoch": -2},
        BEAT | {"member_epoch": -3},
        BEAT | {"topology": word_count()},
        BEAT | {"active_tasks": TASKS},
        BEAT | {"active_tasks": [], "standby_tasks": [], "warmup_tasks": TASKS},
        JOIN | {"rebalance_timeout_ms": -1},
        JOIN | {"topology": None},
        JOIN | {"active_tasks": TASKS},
        JOIN | {"standby_tasks": TASKS},
    ],
    ids=str,
)
def test_what_is_not(fields: dict[str, Any]) -> None:
    with pytest.raises(KafkaError) as refused:
        check_request(StreamsGroupHeartbeatRequest(**fields))
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_patterns_of_topics_are_refused() -> None:
    topology = word_count()
    topology.subtopologies[0].source_topic_regex.append("a.*")
    with pytest.raises(KafkaError) as refused:
        check_request(StreamsGroupHeartbeatRequest(**JOIN | {"topology": topology}))
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_the_broker_decides_the_partitions_of_a_changelog() -> None:
    topology = word_count()
    topology.subtopologies[1].state_changelog_topics.append(TopicInfo("more", 3))
    with pytest.raises(KafkaError) as refused:
        check_request(StreamsGroupHeartbeatRequest(**JOIN | {"topology": topology}))
    assert refused.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
