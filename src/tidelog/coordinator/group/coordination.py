"""What the parts of one coordinator share: its groups, what it goes by, what it has to look at again."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidelog.coordinator.group.classic.classic_group import ClassicGroup
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.model.ids import random_uuid, uuid_to_text
from tidelog.model.ports import Rng

ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"

Group = ClassicGroup | ConsumerGroup


@dataclass(slots=True)
class Coordination:
    """Groups of both protocols by their ids. ``regex_jobs`` are groups whose patterns are to be looked up as soon as may be;
    ``new_topics_version`` is the image in which topics were last created."""

    settings: GroupSettings
    topics: TopicMetadata
    rng: Rng
    new_topics_version: int
    groups: dict[str, Group] = field(default_factory=dict)
    regex_jobs: dict[str, None] = field(default_factory=dict)

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        """The group, if it is of the consumer protocol."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def classic(self, group_id: str) -> ClassicGroup | None:
        """The group, if it is of the classic protocol."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def new_member_id(self) -> str:
        """For a member that brought none."""
        return uuid_to_text(random_uuid(self.rng))

    # -- settings that a group may have of its own ---------------------------------------------------------------------------

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member may be silent."""
        own = self.topics.group_configs(group_id).get("consumer.session.timeout.ms")
        return self.settings.consumer_session_timeout.of(own)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often a member is told to show life."""
        own = self.topics.group_configs(group_id).get("consumer.heartbeat.interval.ms")
        return self.settings.consumer_heartbeat_interval.of(own)

    def assignment_interval_ms(self, group_id: str) -> int:
        """The least time between two targets; the broker's value can be changed while it runs."""
        own = self.topics.group_configs(group_id).get("consumer.assignment.interval.ms")
        if own is None:
            dynamic = self.topics.cluster_config(ASSIGNMENT_INTERVAL)
            if dynamic is not None:
                return int(dynamic)
        return self.settings.consumer_assignment_interval.of(own)
