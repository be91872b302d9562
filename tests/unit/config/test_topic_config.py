"""Typed settings of a topic."""

from __future__ import annotations

import pytest

from tidelog.config.resolve import BrokerConfig


@pytest.mark.parametrize(
    ("policy", "compacted", "deletes"),
    [("delete", False, True), ("compact", True, False), ("compact,delete", True, True), ("", False, False)],
)
def test_a_cleanup_policy_says_what_happens_to_old_data(policy: str, compacted: bool, deletes: bool) -> None:
    topic = BrokerConfig.from_properties({}).topic_config({"cleanup.policy": policy})
    assert (topic.is_compacted, topic.deletes) == (compacted, deletes)


def test_whose_clock_stamps_records() -> None:
    config = BrokerConfig.from_properties({"log.message.timestamp.type": "LogAppendTime"})
    assert config.topic_config({}).log_append_time
    assert not config.topic_config({"message.timestamp.type": "CreateTime"}).log_append_time
