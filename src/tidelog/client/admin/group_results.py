"""What admin calls return of groups."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.client.calls import Partition


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group of any type; ``state`` and ``group_type`` are empty where the broker is too old to say."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group. ``epoch`` and ``target`` are None for members of the classic protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[Partition, ...]
    epoch: int | None = None
    target: tuple[Partition, ...] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A group of consumers. ``epoch`` and ``target_epoch`` are None for classic groups."""

    group_id: str
    state: str
    assignor: str
    members: tuple[Member, ...]
    epoch: int | None = None
    target_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset and the leader epoch that came with it, -1 without one."""

    offset: int
    leader_epoch: int
