"""Heartbeats that are refused change nothing."""

from __future__ import annotations

from tests.unit.coordinator.group.streams.streams_driver import (
    ANN,
    StreamsDriver,
)
from tidelog.coordinator.group.streams.streams_answer import StatusCode, shortened, status
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse, Subtopology, TopicInfo, Topology


def test_a_refused_heartbeat_leaves_no_group_and_no_timer() -> None:
    driver = StreamsDriver()
    answer = driver.streams_beat(ANN, 3)
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_ID_NOT_FOUND, "")
    assert (driver.log, dict(driver.machine.groups)) == ([], {})
    driver.enter_streams(ANN)
    before = driver.streams().members
    assert driver.streams_beat(ANN, 9).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.streams().members == before


def test_a_refusal_of_many_or_long_names_can_be_sent() -> None:
    driver = StreamsDriver()
    unwritten = [TopicInfo(f"{number:04}-{'r' * 200}") for number in range(300)]
    answer = driver.enter_streams(ANN, topology=Topology(0, [Subtopology("0", ["in"], repartition_source_topics=unwritten)]))
    assert answer.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert StreamsGroupHeartbeatResponse.decode(answer.encode(0), 0).error_message == answer.error_message
    assert (answer.error_message or "").startswith("Nothing writes to the repartition topics 0000-rrr")


def test_a_status_that_grows_too_long_can_be_sent() -> None:
    told = status(StatusCode.MISSING_INTERNAL_TOPICS, "\u20ac" * 40_000)
    assert len(told.status_detail.encode()) < 32_767 and told.status_detail.endswith(" ...")
    assert shortened("short") == "short"
