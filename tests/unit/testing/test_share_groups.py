"""A work queue in a test: share groups of ``tidelog.testing``, with librdkafka's share consumer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka.admin import AdminClient, ConfigResource

from tidelog.testing import Broker

PATIENCE_S = 30.0
OWN = 8
"""The source of a setting that a group has of its own."""


def work(broker: Broker, decide: Callable[[str, int], AcknowledgeType], jobs: int) -> list[tuple[str, int]]:
    """Value and delivery of each record that a worker got until it had ``jobs`` of them."""
    got: list[tuple[str, int]] = []
    settings = {"group.id": "workers", "share.acknowledgement.mode": "explicit", "log_level": 0}
    with ShareConsumer(settings | {"bootstrap.servers": broker.bootstrap_servers}) as worker:
        worker.subscribe(["jobs"])
        while len(got) < jobs:
            messages = list(worker.poll(timeout=PATIENCE_S))
            assert messages, f"no record came after {got}"
            for message in messages:
                got.append((message.value().decode(), message.delivery_count()))
                worker.acknowledge(message, decide(*got[-1]))
            worker.commit_sync(PATIENCE_S)
    return got


def own_settings(broker: Broker) -> set[str]:
    """The settings that the group ``workers`` has of its own."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (described,) = admin.describe_configs([ConfigResource(ConfigResource.Type.GROUP, "workers")]).values()
    return {name for name, entry in described.result(PATIENCE_S).items() if entry.source == OWN}


def test_a_failed_job_is_delivered_again_until_its_limit() -> None:
    with Broker() as broker:
        broker.group_settings.set("workers", share_auto_offset_reset="earliest", share_delivery_count_limit=2)
        broker.produce("jobs", "good", "bad")
        got = work(broker, lambda job, _: AcknowledgeType.RELEASE if job == "bad" else AcknowledgeType.ACCEPT, 3)
        assert sorted(got) == [("bad", 1), ("bad", 2), ("good", 1)]
        broker.produce("jobs", "next")
        assert work(broker, lambda _, __: AcknowledgeType.ACCEPT, 1) == [("next", 1)], "what was given up does not come back"
        assert broker.groups() == ["workers"]


def test_a_reset_forgets_a_share_group_and_its_settings() -> None:
    with Broker() as broker:
        for round_ in ("first", "second"):
            broker.group_settings.set("workers", share_auto_offset_reset="earliest", share_delivery_count_limit=3)
            broker.produce("jobs", round_)
            assert work(broker, lambda _, __: AcknowledgeType.ACCEPT, 1) == [(round_, 1)]
            assert "share.delivery.count.limit" in own_settings(broker)
            broker.reset()
            assert broker.groups() == []
            assert "share.delivery.count.limit" not in own_settings(broker)


@pytest.mark.parametrize("process", [False, True])
def test_settings_of_a_group_are_checked(process: bool) -> None:
    with Broker(process=process) as broker:
        with pytest.raises(ValueError, match=r"group workers was not configured: .*share\.delivery\.count\.limit"):
            broker.group_settings.set("workers", share_delivery_count_limit=1)
        broker.group_settings.set("workers", share_delivery_count_limit=4)
        broker.group_settings.set("workers", share_delivery_count_limit=None)
