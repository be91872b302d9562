"""What ``why-record`` knows of one record of a share group, as it was collected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidelog.client.admin.group_results import ShareMember
from tidelog.dead_letters.letter import Letter

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InLog:
    """The record in the log of its partition. ``first_offset``: where the log begins; the others are the ends for readers of all
    and of committed records. ``exists`` None: it could not be read."""

    first_offset: int
    high_watermark: int
    last_stable_offset: int
    exists: bool | None = None
    control: bool = False
    """It is the marker of a transaction, or another record that no member gets."""
    aborted: bool = False
    """Its transaction was aborted."""
    timestamp: int = -1


@dataclass(frozen=True, slots=True)
class Settings:
    """Of the group."""

    delivery_limit: int = 5
    max_locks: int = 2000
    committed_only: bool = False
    dead_letter_topic: str = ""


@dataclass(frozen=True, slots=True)
class RecordFacts:
    """All of it. ``state`` None: there is no such share group."""

    group: str
    topic: str
    partition: int
    offset: int
    log: InLog
    state: str | None = None
    members: tuple[ShareMember, ...] = ()
    settings: Settings = Settings()
    initialized: bool = False
    """Whether the group's coordinator knows the partition."""
    start_offset: int | None = None
    """As the share coordinator has it; None when nothing was stored yet."""
    leader: Json | None = None
    """What the leader says on its page of facts; None when that was not read."""
    stored: Json | None = None
    """What the share coordinator has stored, from its page; None when that was not read."""
    letter: tuple[str, Letter] | None = None
    """The dead letter of the record, and its topic."""
    unseen: tuple[str, ...] = ()
    """What could not be looked at, and why."""

    @property
    def share(self) -> Json | None:
        """The leader's share partition while it serves one that is loaded."""
        share: Json | None = None if self.leader is None else self.leader["share"]
        return share if share is not None and share["phase"] == "active" else None

    @property
    def start(self) -> int | None:
        """The first record that is not finished, as far as that is known."""
        if self.share is not None:
            return int(self.share["start_offset"])
        found = self.start_offset if self.stored is None else int(self.stored["start_offset"])
        return None if found is None or found < 0 else found

    @property
    def range(self) -> Json | None:
        """What is known of the record in flight: from the leader, else what is stored."""
        if self.share is not None:
            state: Json | None = self.share["state"]
            return state
        return None if self.stored is None else self.stored["state"]

    def holder(self, member_id: str) -> str:
        """A member as a person knows it."""
        for member in self.members:
            if member.member_id == member_id:
                return f"member {member_id} (client {member.client_id} at {member.host.lstrip('/')})"
        return f"member {member_id}, which is not in the group any more"
