"""The topics as groups see them: names, ids, partitions, racks, and one hash that changes when any of those does.

The hash (``metadata_hash``) is Kafka's, bit for bit, so that either implementation can tell from a group's record whether its
topics have changed: XXH3-64 over what hash4j streams, integers in little-endian order and strings as UTF-16 units followed by
their count. A topic hashes a zero byte, the two halves of its id, its name, its partition count, and each partition's number and
racks, sorted, each preceded by its length. A group hashes the hashes of its topics in order of their names; 0 without topics.
Source: KIP-1101.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from tidelog.coordinator.group.consumer.assignors.spec import TopicSpec, text_order
from tidelog.metadata.image import GROUP_RESOURCE, NO_CONFIGS, ClusterImage, TopicImage
from tidelog.model.ids import Uuid

Describable: TypeAlias = Callable[[Iterable[str]], frozenset[str]]
"""Those of the given topics that a member's client may describe."""

_INT = struct.Struct("<i")
_LONG = struct.Struct("<Q")
_MAGIC = b"\0"


def _string(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT.pack(len(units) // 2)


def _xxh3(stream: bytes) -> int:
    import xxhash  # Only groups of the new protocol have such a hash.

    return xxhash.xxh3_64_intdigest(stream)


def topic_hash(topic_id: bytes, name: str, racks: Sequence[Sequence[str]]) -> int:
    """The hash of one topic, unsigned; ``racks`` has the racks of each partition's replicas, repeated as often as they occur."""
    stream = bytearray(_MAGIC)
    stream += topic_id[:8][::-1] + topic_id[8:][::-1]
    stream += _string(name) + _INT.pack(len(racks))
    for partition, of_partition in enumerate(racks):
        stream += _INT.pack(partition)
        for rack in sorted(of_partition, key=text_order):
            stream += _INT.pack(len(text_order(rack)) // 2) + _string(rack)
    return _xxh3(bytes(stream))


def combined_hash(hashes: Iterable[tuple[str, int]]) -> int:
    """The hash of a group from the hashes of its topics, signed as in the record."""
    ordered = sorted(hashes, key=lambda entry: text_order(entry[0]))
    if not ordered:
        return 0
    value = _xxh3(b"".join(_LONG.pack(number) for _, number in ordered))
    return value - (1 << 64) if value >= 1 << 63 else value


class TopicMetadata:
    """The topics of the current image; ``image`` returns it."""

    __slots__ = ("_cache", "_image")

    def __init__(self, image: Callable[[], ClusterImage]) -> None:
        self._image = image
        self._cache: dict[str, tuple[TopicImage, object, TopicSpec, int]] = {}

    @property
    def version(self) -> int:
        """The offset of the image."""
        return self._image().offset

    def names(self) -> Iterable[str]:
        """All topics."""
        return self._image().topics.by_name.keys()

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        """The configuration set on a group."""
        return self._image().configs.get((GROUP_RESOURCE, group_id), NO_CONFIGS)

    def cluster_config(self, name: str) -> str | None:
        """A dynamic cluster-wide default; None when it is not set."""
        return self._image().cluster_configs.get(name)

    def id_of(self, name: str) -> Uuid | None:
        """A topic's id; None when there is no such topic."""
        topic = self._image().topics.by_name.get(name)
        return None if topic is None else topic.id

    def name_of(self, topic_id: bytes) -> str | None:
        """A topic's name; None when there is no such topic."""
        topic = self._image().topics.by_id.get(Uuid(topic_id))
        return None if topic is None else topic.name

    def ids_of(self, names: Iterable[str]) -> frozenset[bytes]:
        """Ids of those topics that exist."""
        by_name = self._image().topics.by_name
        return frozenset(by_name[name].id for name in names if name in by_name)

    def spec_of(self, topic_id: bytes) -> TopicSpec:
        """An existing topic in the form that assignors use."""
        return self._look_up(self._image().topics.by_id[Uuid(topic_id)].name)[2]

    def hash_of(self, names: Iterable[str]) -> int:
        """The hash for a group that subscribes to these topics; unknown topics are ignored."""
        by_name = self._image().topics.by_name
        return combined_hash((name, self._look_up(name)[3]) for name in names if name in by_name)

    def _look_up(self, name: str) -> tuple[TopicImage, object, TopicSpec, int]:
        image = self._image()
        topic = image.topics.by_name[name]
        known = self._cache.get(name)
        if known is None or known[0] is not topic or known[1] is not image.brokers:
            racks = _racks(topic, image)
            spec = TopicSpec(name, len(racks), tuple(map(frozenset, racks)))
            known = self._cache[name] = (topic, image.brokers, spec, topic_hash(topic.id, name, racks))
        return known

    def forget(self, names: Iterable[str]) -> None:
        """Drops the cached hashes of deleted topics."""
        for name in names:
            self._cache.pop(name, None)


def _racks(topic: TopicImage, image: ClusterImage) -> list[list[str]]:
    racks = []
    for partition in topic.partitions:
        brokers = (image.brokers.get(replica) for replica in partition.replicas)
        racks.append([broker.rack for broker in brokers if broker is not None and broker.rack is not None])
    return racks
