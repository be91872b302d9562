"""A share group's settings on the brokers that serve its partitions: its own, within the broker's bounds, else the broker's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidelog.broker.shares.dead_letter_plan import COPIES, TOPIC_NAME
from tidelog.coordinator.group.settings import Bounded
from tidelog.metadata.image import GROUP_RESOURCE, NO_CONFIGS
from tidelog.metadata.supported_features import DEAD_LETTERS_SHARE_VERSION, SHARE_VERSION
from tidelog.replication.share.share_partition import ShareLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidelog.broker.shares.ports import ShareHost

_DURATION = re.compile(r"by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?")
LATEST, EARLIEST = "latest", "earliest"


class GroupSettings:
    """The settings of all share groups, as the image has them now."""

    def __init__(self, broker: ShareHost) -> None:
        self._broker = broker
        config = broker.config
        self._delivery_count = Bounded(
            config.group_share_delivery_count_limit,
            config.group_share_min_delivery_count_limit,
            config.group_share_max_delivery_count_limit,
            "share.delivery.count.limit",
        )
        self._locks = Bounded(
            config.group_share_partition_max_record_locks,
            config.group_share_min_partition_max_record_locks,
            config.group_share_max_partition_max_record_locks,
            "share.partition.max.record.locks",
        )
        self._lock_ms = Bounded(
            config.group_share_record_lock_duration_ms,
            config.group_share_min_record_lock_duration_ms,
            config.group_share_max_record_lock_duration_ms,
            "share.record.lock.duration.ms",
        )

    def _own(self, group_id: str) -> Mapping[str, str]:
        return self._broker.image.configs.get((GROUP_RESOURCE, group_id), NO_CONFIGS)

    def limits(self, group_id: str) -> ShareLimits:
        """What bounds deliveries."""
        own = self._own(group_id)
        return ShareLimits(
            self._delivery_count.of(own.get(self._delivery_count.name)),
            self._locks.of(own.get(self._locks.name)),
            self.lock_ms(group_id),
            own.get("share.renew.acknowledge.enable", "true").lower() == "true",
            bool(own.get(TOPIC_NAME)) and self._broker.image.features.get(SHARE_VERSION, 0) >= DEAD_LETTERS_SHARE_VERSION,
        )

    def dead_letter_topic(self, group_id: str) -> str:
        """The name of the topic for what the group gives up; empty without one."""
        return self._own(group_id).get(TOPIC_NAME, "")

    def copies_dead_letters(self, group_id: str) -> bool:
        """Whether dead letters have key and value of the record."""
        return self._own(group_id).get(COPIES, "false").lower() == "true"

    def lock_ms(self, group_id: str) -> int:
        """How long a member holds a record."""
        return self._lock_ms.of(self._own(group_id).get(self._lock_ms.name))

    def committed_only(self, group_id: str) -> bool:
        """Whether records of open and aborted transactions are kept back."""
        return self._own(group_id).get("share.isolation.level") == "read_committed"

    def reset(self, group_id: str) -> str | int:
        """Where a partition without a start offset begins: LATEST, EARLIEST, or at a record not older than this many ms."""
        text = self._own(group_id).get("share.auto.offset.reset", LATEST)
        found = _DURATION.fullmatch(text)
        if found is None:
            return text
        days, hours, minutes = (int(each or 0) for each in found.groups()[:3])
        return int((((days * 24 + hours) * 60 + minutes) * 60 + float(found.group(4) or 0)) * 1000)
