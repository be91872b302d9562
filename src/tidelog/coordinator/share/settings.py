"""Settings of the share coordinator, in ms and counts; defaults are Kafka's."""

from __future__ import annotations

from typing import NamedTuple


class ShareCoordinatorSettings(NamedTuple):
    """What ``share.coordinator.*`` says."""

    updates_per_snapshot: int = 500
    cold_after_ms: int = 300_000
    """A share partition without a write for this long gets a new snapshot, so that older records can be deleted."""
