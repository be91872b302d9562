"""A log's settings are Kafka's, with Kafka's defaults."""

import dataclasses

import pytest

from tidelog.storage.log_config import LogConfig


def test_the_defaults_delete_by_age_and_keep_what_the_producer_sends() -> None:
    config = LogConfig()
    assert (config.delete, config.compact, config.log_append_time) == (True, False, False)
    assert (config.segment_bytes, config.max_message_bytes, config.index_interval_bytes) == (1073741824, 1048588, 4096)


@pytest.mark.parametrize(
    ("policy", "delete", "compact"), [("delete", True, False), ("compact", False, True), ("compact,delete", True, True)]
)
def test_the_cleanup_policy_says_who_removes_records(policy: str, delete: bool, compact: bool) -> None:
    config = LogConfig(cleanup_policy=frozenset(policy.split(",")))
    assert (config.delete, config.compact) == (delete, compact)


def test_log_append_time_is_the_timestamp_type_of_that_name() -> None:
    assert LogConfig(message_timestamp_type="LogAppendTime").log_append_time


def test_settings_do_not_change_under_a_log() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        LogConfig().segment_bytes = 5  # type: ignore[misc]
