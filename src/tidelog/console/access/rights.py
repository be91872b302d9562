"""What a user may do: grants by name pattern, and masks. Everything that no grant gives is denied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final


class Right(Enum):
    """What a route needs. Each is granted by itself."""

    VIEW = "view"
    """Names, numbers, settings."""
    PAYLOAD = "payload"
    """What records carry."""
    CHANGE = "change"


class About(Enum):
    """What kind of thing a route is about."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"
    """Brokers, quorum, transactions, ACLs, users, quotas."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Rights on what the patterns match (``*`` and ``?``; brackets are letters).

    ``cluster``: also on what belongs to no topic or group."""

    rights: frozenset[Right]
    clusters: tuple[str, ...] = ("*",)
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    cluster: bool = False

    def gives(self, right: Right, cluster_id: str, about: About, name: str) -> bool:
        """Whether it gives the right on that topic or group, or on the cluster."""
        if right not in self.rights or not _matches(cluster_id, self.clusters):
            return False
        if about is About.CLUSTER:
            return self.cluster
        return _matches(name, self.topics if about is About.TOPIC else self.groups)


@dataclass(frozen=True, slots=True)
class Mask:
    """Parts of records that are not shown, in topics that the patterns match.

    ``paths``: ``key``, ``value``, ``headers``, or inside of JSON ``value.card.number``; a step ``*`` is any name."""

    topics: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    clusters: tuple[str, ...] = ("*",)
    except_roles: frozenset[str] = frozenset()

    def hides(self, cluster_id: str, topic: str, roles: frozenset[str]) -> bool:
        """Whether it holds for a user with these roles."""
        return _matches(cluster_id, self.clusters) and _matches(topic, self.topics) and not self.except_roles & roles


EVERYTHING: Final = Grant(frozenset(Right), ("*",), ("*",), ("*",), True)


@dataclass(frozen=True, slots=True)
class Access:
    """One user's grants and masks. ``read_only``: no change, whatever is granted."""

    grants: Sequence[Grant] = ()
    masks: Sequence[Mask] = ()
    roles: frozenset[str] = frozenset()
    read_only: bool = False

    def may(self, right: Right, cluster_id: str, about: About, name: str = "") -> bool:
        """Whether the user has the right there."""
        if self.read_only and right is Right.CHANGE:
            return False
        return any(grant.gives(right, cluster_id, about, name) for grant in self.grants)

    def may_anything(self, right: Right, cluster_id: str) -> bool:
        """Whether the user has the right on something of the cluster."""
        if self.read_only and right is Right.CHANGE:
            return False
        return any(right in grant.rights and _matches(cluster_id, grant.clusters) for grant in self.grants)

    def sees(self, cluster_id: str) -> bool:
        """Whether anything of the cluster is granted."""
        return any(_matches(cluster_id, grant.clusters) for grant in self.grants)

    def rights(self) -> list[Right]:
        """The rights that some grant gives, on something."""
        return [
            right
            for right in Right
            if any(right in grant.rights for grant in self.grants) and not (self.read_only and right is Right.CHANGE)
        ]

    def hidden(self, cluster_id: str, topic: str, part: str) -> tuple[tuple[str, ...], ...]:
        """The paths inside of ``key``, ``value`` or ``headers`` that are masked; an empty path is the whole."""
        return tuple(
            path[1:] for mask in self.masks if mask.hides(cluster_id, topic, self.roles) for path in mask.paths if path[0] == part
        )

    def is_masked(self, cluster_id: str, topic: str) -> bool:
        """Whether anything in the topic's records is masked."""
        return any(mask.hides(cluster_id, topic, self.roles) for mask in self.masks)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return "*" in patterns or any(fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in patterns)
