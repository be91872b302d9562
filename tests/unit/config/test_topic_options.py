"""The topic table."""

from __future__ import annotations

from tidelog.config.topic_options import TOPIC_OPTIONS


def test_only_the_segment_size_for_tests_is_internal() -> None:
    assert len(TOPIC_OPTIONS) == 35
    assert [name for name, option in TOPIC_OPTIONS.items() if option.internal] == ["internal.segment.bytes"]


def test_tiered_storage_cannot_be_asked_for() -> None:
    assert [name for name, option in TOPIC_OPTIONS.items() if option.refuses] == ["remote.storage.enable"]
