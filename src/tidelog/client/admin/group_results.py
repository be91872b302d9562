"""Results of admin calls about groups."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.client.calls import Partition


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group of any type; ``state`` and ``group_type`` are empty if the broker is too old to report them."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group. ``epoch`` and ``target`` are None in the classic protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[Partition, ...]
    epoch: int | None = None
    target: tuple[Partition, ...] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group. ``epoch`` and ``target_epoch`` are None for classic groups."""

    group_id: str
    state: str
    assignor: str
    members: tuple[Member, ...]
    epoch: int | None = None
    target_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset and its leader epoch, -1 if it has none."""

    offset: int
    leader_epoch: int
