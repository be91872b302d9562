"""What the parts of a coordinator share."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.unit.coordinator.group.consumer_driver import image_of
from tidelog.coordinator.group.classic.classic_group import ClassicGroup
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE


def test_settings_come_from_the_group_then_from_the_cluster_then_from_the_broker() -> None:
    image = replace(
        image_of({}),
        configs={
            (GROUP_RESOURCE, "own"): {
                "consumer.session.timeout.ms": "50000",
                "consumer.heartbeat.interval.ms": "1",
                "consumer.assignment.interval.ms": "90000",
            },
            (BROKER_RESOURCE, ""): {"group.consumer.assignment.interval.ms": "2500"},
        },
    )
    c = Coordination(GroupSettings(), TopicMetadata(lambda: image), random.Random(1), 0)
    assert (c.session_timeout_ms("own"), c.session_timeout_ms("other")) == (50_000, 45_000)
    assert (c.heartbeat_interval_ms("own"), c.heartbeat_interval_ms("other")) == (5_000, 5_000), "5000 is the least"
    assert (c.assignment_interval_ms("own"), c.assignment_interval_ms("other")) == (15_000, 2_500), "15000 is the most"
    plain = Coordination(GroupSettings(), TopicMetadata(lambda: image_of({})), random.Random(1), 0)
    assert plain.assignment_interval_ms("other") == 1_000


def test_a_group_is_of_one_protocol() -> None:
    c = Coordination(GroupSettings(), TopicMetadata(lambda: image_of({})), random.Random(1), 0)
    c.put(ClassicGroup("old", 0))
    c.put(ConsumerGroup("new"))
    assert c.consumer("new") is c.groups["new"] and c.consumer("old") is None
    assert c.classic("old") is c.groups["old"] and c.classic("new") is None
    assert c.consumer("none") is c.classic("none") is None
    assert c.new_member_id() != c.new_member_id()


def test_patterns_wait_in_turn_and_a_group_that_is_gone_is_passed_over() -> None:
    c = Coordination(GroupSettings(), TopicMetadata(lambda: image_of({})), random.Random(1), 0)
    c.put(ConsumerGroup("there"))
    c.put(ConsumerGroup("gone"))
    c.resolve_soon("gone")
    c.resolve_soon("there", frozenset)
    c.drop("gone")
    assert c.resolves_soon("there") and c.resolves_soon()
    assert c.take_regex_job() == (None, None)
    assert c.take_regex_job() == (c.groups["there"], frozenset) and not c.resolves_soon()
