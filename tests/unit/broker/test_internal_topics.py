"""The topics of the coordinators: their replicas and settings."""

from __future__ import annotations

import pytest

from tests.unit.broker.apis.groups.test_find_coordinator import found, several
from tidelog.coordinator.partition_for_key import partition_of
from tidelog.model.errors import ErrorCode as E


@pytest.mark.parametrize(("kind", "name", "min_isr"), [(0, "__consumer_offsets", None), (1, "__transaction_state", "2")])
def test_an_internal_topic_has_the_replicas_that_its_settings_demand(kind: int, name: str, min_isr: str | None) -> None:
    world = several(3)
    assert found(world, kind).error_code == E.COORDINATOR_NOT_AVAILABLE
    world.runtime.run_spawned()
    partitions = world.broker.image.topics.by_name[name].partitions
    assert [sorted(each.replicas) for each in partitions] == [[1, 2, 3]] * 2
    assert world.broker.image.topic_configs(name).get("min.insync.replicas") == min_isr
    answer = found(world, kind)
    assert (answer.error_code, answer.node_id) == (0, partitions[partition_of("x", 2)].leader)
