"""The feature levels that tidelog supports, in one table (KIP-584, KIP-1022).

The maximum of a feature is the highest level that tidelog implements completely. The table decides which levels format writes,
what brokers and controllers register, what ApiVersions answers and which directories are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
ELR_VERSION = "eligible.leader.replicas.version"
DEAD_LETTERS_SHARE_VERSION = 2
"""The level of share.version from which groups may have dead-letter queues (KIP-1191)."""
GROUP_PRINCIPALS = "tidelog.group.principals"
"""Registered, never finalized, by nodes whose authorizer counts ACLs for groups and roles. Apache Kafka's controllers take
registrations with features that they do not know."""


class Feature(NamedTuple):
    """The supported levels, and the level of a new cluster whose metadata.version is at least ``default_from``. A new cluster
    whose metadata.version is at least ``newest_from`` has the highest supported one."""

    name: str
    min_level: int
    max_level: int
    default_level: int
    default_from: int = 0
    needs_metadata_version: int = 0
    """The metadata.version required for any level above 0."""
    newest_from: int | None = None

    def default_at(self, metadata_version: int) -> int:
        """The level of a new cluster."""
        if self.newest_from is not None and metadata_version >= self.newest_from:
            return self.max_level
        return self.default_level if metadata_version >= self.default_from else 0


FEATURES: Mapping[str, Feature] = {
    feature.name: feature
    for feature in (
        # New clusters stay at 4.3-IV0: nodes of Kafka 4.3 may join them and open their directories.
        Feature(METADATA_VERSION, 7, 31, 30),
        Feature(KRAFT_VERSION, 0, 1, 0),
        Feature(ELR_VERSION, 0, 1, 1, default_from=26, needs_metadata_version=23),
        Feature(GROUP_VERSION, 0, 1, 1, default_from=22),
        Feature(SHARE_VERSION, 0, 2, 1, default_from=28, newest_from=31),
        Feature(STREAMS_VERSION, 0, 1, 1, default_from=29),
        Feature(TRANSACTION_VERSION, 0, 2, 2, default_from=24),
    )
}

METADATA_VERSIONS: Mapping[str, int] = {
    "3.3-IV3": 7,
    "3.4-IV0": 8,
    "3.5-IV0": 9,
    "3.5-IV1": 10,
    "3.5-IV2": 11,
    "3.6-IV0": 12,
    "3.6-IV1": 13,
    "3.6-IV2": 14,
    "3.7-IV0": 15,
    "3.7-IV1": 16,
    "3.7-IV2": 17,
    "3.7-IV3": 18,
    "3.7-IV4": 19,
    "3.8-IV0": 20,
    "3.9-IV0": 21,
    "4.0-IV0": 22,
    "4.0-IV1": 23,
    "4.0-IV2": 24,
    "4.0-IV3": 25,
    "4.1-IV0": 26,
    "4.1-IV1": 27,
    "4.2-IV0": 28,
    "4.2-IV1": 29,
    "4.3-IV0": 30,
    "4.4-IV0": 31,
}
"""Release names of metadata.version levels, as ``--release-version`` takes them."""

LEVELS_WITH_NEW_RECORDS = frozenset({8, 11, 13, 14, 15, 17, 23, 30})
"""Levels of metadata.version that added records or record fields which lower levels do not know. A cluster at or above one of
them cannot be downgraded below it. Matches Apache Kafka 4.3.1, queried level by level."""

IN_CONTROLLED_SHUTDOWN_MV = 7
MIGRATION_MV = 8
TRANSACTIONS_MV = 13
SCRAM_MV = 11
DELEGATION_TOKENS_MV = 14
NO_EPOCH_BUMP_MV = 12
DIRECTORIES_MV = 17
CONTROLLER_REGISTRATION_MV = 15
ELR_MV = 23
CORDONED_DIRS_MV = 30
"""The metadata.version from which records have these fields; from NO_EPOCH_BUMP_MV on a shrunk ISR needs no new leader epoch."""


class UnsupportedFeatureLevel(Exception):
    """A directory or a request needs a feature level that tidelog does not implement."""


def supported_ranges() -> dict[str, tuple[int, int]]:
    """What a tidelog node returns from ApiVersions: every feature, including those that are only at 0."""
    return {feature.name: (feature.min_level, feature.max_level) for feature in FEATURES.values()}


def registered_ranges() -> dict[str, tuple[int, int]]:
    """What a tidelog node registers."""
    return supported_ranges() | {GROUP_PRINCIPALS: (0, 1)}


def default_levels(metadata_version: int | None = None) -> dict[str, int]:
    """The levels of a new cluster, without those at 0: Kafka writes no record for level 0."""
    newest = FEATURES[METADATA_VERSION].default_level if metadata_version is None else metadata_version
    levels = {f.name: level for f in FEATURES.values() if (level := f.default_at(newest)) > 0}
    levels.pop(KRAFT_VERSION, None)
    return levels | {METADATA_VERSION: newest}


def metadata_version_from_name(name: str) -> int:
    """The level for ``4.3-IV0``, or ``4.3`` (the newest level of that release). ValueError lists the known ones."""
    if name in METADATA_VERSIONS:
        return METADATA_VERSIONS[name]
    levels = [level for known, level in METADATA_VERSIONS.items() if known.partition("-")[0] == name]
    if not levels:
        raise ValueError(f"Unknown metadata.version '{name}'. Supported metadata.version are: {', '.join(METADATA_VERSIONS)}")
    return max(levels)


def metadata_version_name(level: int) -> str:
    """``4.3-IV0`` for 30; the number itself for an unknown level."""
    for name, known in METADATA_VERSIONS.items():
        if known == level:
            return name
    return str(level)


def check_levels(levels: Mapping[str, int]) -> None:
    """Raises UnsupportedFeatureLevel unless all levels are supported; it names each feature, both levels and how to get to
    ours."""
    found: list[str] = []
    steps: dict[str, list[str]] = {}
    for name, level in sorted(levels.items()):
        wanted = _supported_level(name, level)
        if wanted == level:
            continue
        feature = FEATURES.get(name)
        supported = "does not know it" if feature is None else f"supports levels {feature.min_level} to {feature.max_level}"
        found.append(f"feature {name} is finalized at level {level}, and this node {supported}")
        steps.setdefault("downgrade" if level > wanted else "upgrade", []).append(f"--feature {name}={wanted}")
    if found:
        commands = " and ".join(
            f"kafka-features --bootstrap-server HOST:PORT {direction} {' '.join(options)}" for direction, options in steps.items()
        )
        raise UnsupportedFeatureLevel(
            f"This directory cannot be served: {'; '.join(found)}. On the software that wrote it, run: {commands}"
        )


def _supported_level(name: str, level: int) -> int:
    """The nearest supported level; an unknown feature counts as level 0, which equals its absence."""
    feature = FEATURES.get(name)
    return 0 if feature is None else min(max(level, feature.min_level), feature.max_level)
