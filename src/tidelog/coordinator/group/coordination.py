"""Coordination: the groups of one coordinator, and what their rules share: settings, topics, chance, patterns to resolve.

Only the methods here change which groups there are. A request to one group goes by its kind (``kinds``); which class a group has
is asked here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.coordinator.group.classic.classic_group import ClassicGroup
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.coordinator.group.group_kind import Group
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.model.ids import random_uuid, uuid_to_text
from tidelog.model.ports import Rng

ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"


class Coordination:
    """See the module."""

    __slots__ = ("_groups", "_regex_jobs", "_rng", "_topics_created_version", "settings", "topics")

    def __init__(self, settings: GroupSettings, topics: TopicMetadata, rng: Rng, topics_created_version: int) -> None:
        """``topics_created_version``: offset of the image in which topics were last created."""
        self.settings = settings
        self.topics = topics
        self._rng = rng
        self._topics_created_version = topics_created_version
        self._groups: dict[str, Group] = {}
        self._regex_jobs: dict[str, None] = {}

    @property
    def rng(self) -> Rng:
        return self._rng

    # -- which groups there are ----------------------------------------------------------------------------------------------

    @property
    def groups(self) -> Mapping[str, Group]:
        """By their ids."""
        return self._groups

    def put(self, group: Group) -> None:
        """A new group, or another in the place of the one of that id."""
        self._groups[group.group_id] = group

    def drop(self, group_id: str) -> None:
        """The group is gone."""
        del self._groups[group_id]

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        """The group, if it is of the consumer protocol."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def classic(self, group_id: str) -> ClassicGroup | None:
        """The group, if it is of the classic protocol."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def new_member_id(self) -> str:
        """For a member that brought none."""
        return uuid_to_text(random_uuid(self._rng))

    # -- topics and patterns -------------------------------------------------------------------------------------------------

    @property
    def topics_created_version(self) -> int:
        """Offset of the image in which topics were last created: patterns resolved before it may match more."""
        return self._topics_created_version

    def topics_created(self) -> None:
        """There are new topics in today's image."""
        self._topics_created_version = self.topics.version

    def resolve_soon(self, group_id: str) -> None:
        """The group's patterns are to be resolved as soon as may be."""
        self._regex_jobs[group_id] = None

    def resolves_soon(self, group_id: str | None = None) -> bool:
        """Whether that group's patterns, or any, wait to be resolved."""
        return bool(self._regex_jobs) if group_id is None else group_id in self._regex_jobs

    def take_regex_job(self) -> ConsumerGroup | None:
        """A group whose patterns are resolved now; None when it is gone meanwhile. Only while ``resolves_soon``."""
        group_id = next(iter(self._regex_jobs))
        del self._regex_jobs[group_id]
        return self.consumer(group_id)

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
