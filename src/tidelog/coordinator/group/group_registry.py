"""Coordination: the groups of one coordinator and what their rules share: settings, topics, randomness, patterns to resolve.

Only the methods here add and remove groups. A request to one group is handled by its kind (``kinds``); only this module checks
the class of a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from tidelog.coordinator.group.classic.classic_group import ClassicGroup
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.coordinator.group.group_kind import Group
from tidelog.coordinator.group.settings import Bounded, GroupSettings
from tidelog.coordinator.group.topic_metadata import Describable, TopicMetadata
from tidelog.model.ids import random_uuid, uuid_to_text
from tidelog.model.ports import Rng

G = TypeVar("G")

ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"
SHARE_ASSIGNMENT_INTERVAL = "group.share.assignment.interval.ms"


class Coordination:
    __slots__ = ("_groups", "_regex_jobs", "_rng", "_topics_created_version", "settings", "topics")

    def __init__(self, settings: GroupSettings, topics: TopicMetadata, rng: Rng, topics_created_version: int) -> None:
        """``topics_created_version``: offset of the image in which topics were last created."""
        self.settings = settings
        self.topics = topics
        self._rng = rng
        self._topics_created_version = topics_created_version
        self._groups: dict[str, Group] = {}
        self._regex_jobs: dict[str, Describable | None] = {}

    @property
    def rng(self) -> Rng:
        return self._rng

    # -- which groups there are ----------------------------------------------------------------------------------------------

    @property
    def groups(self) -> Mapping[str, Group]:
        """Groups by id."""
        return self._groups

    def put(self, group: Group) -> None:
        """Adds a group, or replaces the one with its id."""
        self._groups[group.group_id] = group

    def drop(self, group_id: str) -> None:
        """Removes the group."""
        del self._groups[group_id]

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        """The group, if it is of the consumer protocol."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def of_class(self, group_id: str, kind: type[G]) -> G | None:
        """The group, if it is of that class: for protocols whose modules are not imported before their first group."""
        group = self._groups.get(group_id)
        return group if isinstance(group, kind) else None

    def classic(self, group_id: str) -> ClassicGroup | None:
        """The group, if it is of the classic protocol."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def new_member_id(self) -> str:
        """The id for a member that sent none."""
        return uuid_to_text(random_uuid(self._rng))

    # -- topics and patterns -------------------------------------------------------------------------------------------------

    @property
    def topics_created_version(self) -> int:
        """Offset of the image in which topics were last created: patterns resolved before it may match more topics now."""
        return self._topics_created_version

    def topics_created(self) -> None:
        """Records that the current image has new topics."""
        self._topics_created_version = self.topics.version

    def resolve_soon(self, group_id: str, describable: Describable | None = None) -> None:
        """Marks the group's patterns to be resolved as soon as possible. They match only topics that are ``describable`` for the
        member whose request caused it; None: any topic. The result is shared by the group, as in Kafka."""
        self._regex_jobs[group_id] = describable

    def resolves_soon(self, group_id: str | None = None) -> bool:
        """Whether the patterns of that group, or of any, are to be resolved."""
        return bool(self._regex_jobs) if group_id is None else group_id in self._regex_jobs

    def take_regex_job(self) -> tuple[ConsumerGroup | None, Describable | None]:
        """The next group whose patterns to resolve, None when it was removed meanwhile, and the topics that they may match. Only
        while ``resolves_soon``."""
        group_id = next(iter(self._regex_jobs))
        describable = self._regex_jobs.pop(group_id)
        return self.consumer(group_id), describable

    # -- settings that a group may have of its own ---------------------------------------------------------------------------

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member may be silent before it is removed."""
        own = self.topics.group_configs(group_id).get("consumer.session.timeout.ms")
        return self.settings.consumer_session_timeout.of(own)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """The heartbeat interval sent to members."""
        own = self.topics.group_configs(group_id).get("consumer.heartbeat.interval.ms")
        return self.settings.consumer_heartbeat_interval.of(own)

    def assignment_interval_ms(self, group_id: str) -> int:
        """The minimum time between two targets; the broker's value can be changed at run time."""
        own = self.topics.group_configs(group_id).get("consumer.assignment.interval.ms")
        if own is None:
            dynamic = self.topics.cluster_config(ASSIGNMENT_INTERVAL)
            if dynamic is not None:
                return int(dynamic)
        return self.settings.consumer_assignment_interval.of(own)

    def share_setting(self, group_id: str, setting: Bounded) -> int:
        """The value for a share group."""
        return setting.of(self.topics.group_configs(group_id).get(setting.name))

    def share_assignment_interval_ms(self, group_id: str) -> int:
        """The minimum time between two targets of a share group; the broker's value can be changed at run time."""
        setting = self.settings.share_assignment_interval
        dynamic = self.topics.cluster_config(SHARE_ASSIGNMENT_INTERVAL)
        if dynamic is not None and setting.name not in self.topics.group_configs(group_id):
            return int(dynamic)
        return self.share_setting(group_id, setting)
