"""Where a query starts and ends, as offsets: from words, offsets by partition, and timestamps that the cluster resolves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from tidelog.model.errors import ConfigError
from tidelog.model.ids import LATEST_TIMESTAMP, TopicPartition
from tidelog.spark.options import SPECIAL, Bound


class Offsets(Protocol):
    """What this module asks a cluster."""

    def offsets(self, wanted: Mapping[TopicPartition, int], isolation_level: int = 0) -> dict[TopicPartition, int]:
        """The offset at a timestamp for each partition; -1 when all records are older."""
        ...


def resolve(
    cluster: Offsets, partitions: Iterable[TopicPartition], bound: Bound, *, isolation_level: int, option: str
) -> dict[TopicPartition, int]:
    """The offset of each partition. ConfigError names ``option`` when its value does not fit the topics."""
    wanted = sorted(partitions)
    if bound.word is not None:
        return cluster.offsets(dict.fromkeys(wanted, SPECIAL[bound.word]), isolation_level)
    if bound.offsets is not None:
        return _explicit(cluster, wanted, bound.offsets, isolation_level, option)
    if bound.timestamps is not None:
        _covers(wanted, bound.timestamps, option + "OffsetsByTimestamp")
    times = {at: bound.timestamps[at] if bound.timestamps is not None else bound.timestamp or 0 for at in wanted}
    found = cluster.offsets(times, isolation_level)
    late = [at for at, offset in found.items() if offset < 0]
    if late and not bound.or_latest:
        raise ConfigError(
            f"No record of {late[0]} is as young as the timestamp {times[late[0]]} that {option}Timestamp asks for. "
            "Set startingOffsetsByTimestampStrategy=latest to begin at the end then."
        )
    return found | cluster.offsets(dict.fromkeys(late, LATEST_TIMESTAMP), isolation_level) if late else found


def _covers(wanted: list[TopicPartition], said: Mapping[TopicPartition, int], name: str) -> None:
    missing = sorted(set(wanted) - set(said))
    extra = sorted(set(said) - set(wanted))
    if missing or extra:
        problem = f"does not name {missing[0]}" if missing else f"names {extra[0]}, which is not read"
        raise ConfigError(f"{name} {problem}: it must name each partition that is read, and no other. -2 is earliest, -1 latest.")


def _explicit(
    cluster: Offsets, wanted: list[TopicPartition], said: Mapping[TopicPartition, int], isolation_level: int, option: str
) -> dict[TopicPartition, int]:
    name = option + "Offsets"
    _covers(wanted, said, name)
    special = {at: said[at] for at in wanted if said[at] < 0}
    found = cluster.offsets(special, isolation_level) if special else {}
    plain = [at for at in wanted if said[at] >= 0]
    ends = cluster.offsets(dict.fromkeys(plain, LATEST_TIMESTAMP), isolation_level) if plain else {}
    for at in plain:
        if said[at] > ends[at]:
            raise ConfigError(f"{name} says {said[at]} for {at}, and that partition ends at offset {ends[at]}.")
    return {at: found[at] if at in found else said[at] for at in wanted}
