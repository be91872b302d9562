from __future__ import annotations

from tidelog.client.admin.results import ResourceType


def test_resource_types_have_kafkas_numbers() -> None:
    assert [(each.name, each.value) for each in ResourceType] == [
        ("TOPIC", 2),
        ("BROKER", 4),
        ("BROKER_LOGGER", 8),
        ("CLIENT_METRICS", 16),
        ("GROUP", 32),
    ]
