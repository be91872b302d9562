"""Settings of groups as a test writes them."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.testing.group_settings import GroupSettings


def test_names_and_values_are_handed_on_as_they_are() -> None:
    asked: list[tuple[str, Mapping[str, str | int | None]]] = []
    settings = GroupSettings(lambda group, config: asked.append((group, config)))
    settings.set("workers", share_delivery_count_limit=2, share_auto_offset_reset=None)
    assert asked == [("workers", {"share_delivery_count_limit": 2, "share_auto_offset_reset": None})]
