"""Settings of a share group: its own within the broker's bounds, else the broker's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidelog.broker.shares.group_settings import EARLIEST, LATEST, GroupSettings
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.image import GROUP_RESOURCE
from tidelog.replication.share.share_partition import ShareLimits


def settings(broker: dict[str, str] | None = None, **own: str) -> GroupSettings:
    configs = {(GROUP_RESOURCE, "g"): {name.replace("_", "."): value for name, value in own.items()}}
    host: Any = SimpleNamespace(config=BrokerConfig.from_properties(broker or {}), image=SimpleNamespace(configs=configs))
    return GroupSettings(host)


def test_a_group_without_settings_has_those_of_the_broker() -> None:
    assert settings().limits("g") == ShareLimits()
    assert settings({"group.share.delivery.count.limit": "7"}).limits("other").delivery_count == 7


def test_a_group_has_its_own_within_bounds() -> None:
    found = settings(
        share_delivery_count_limit="3",
        share_partition_max_record_locks="99999",
        share_record_lock_duration_ms="1",
        share_renew_acknowledge_enable="false",
    )
    assert found.limits("g") == ShareLimits(3, 4000, 15_000, renews=False)
    assert found.lock_ms("g") == 15_000


def test_isolation_is_read_uncommitted_unless_asked_for() -> None:
    assert not settings().committed_only("g")
    assert settings(share_isolation_level="read_committed").committed_only("g")


@pytest.mark.parametrize(
    ("text", "reset"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("by_duration:PT1H", 3_600_000),
        ("by_duration:P2DT3M4.5S", (2 * 24 * 3600 + 184) * 1000 + 500),
    ],
)
def test_a_partition_without_an_offset_begins_as_the_group_says(text: str, reset: str | int) -> None:
    assert settings(share_auto_offset_reset=text).reset("g") == reset
    assert settings().reset("g") == LATEST
