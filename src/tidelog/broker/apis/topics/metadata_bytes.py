"""Cached bytes of Metadata for all topics of a large cluster: those of a topic are kept while the topic and the brokers are
unchanged.

An answer about 200,000 partitions takes seconds to build, and a change touches few topics. So only changed topics are described
again, and the answer is joined from bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct

from tidelog.metadata.image import BrokerImage, ClusterImage, TopicImage
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.metadata import MetadataResponse
from tidelog.protocol.primitives import write_uvarint

Kind = tuple[int, str, bool]
"""(version, listener, with authorized operations): the description of a topic depends on it."""

AnswerKey = tuple[int, str, bytes]
"""(version, listener, body of the request)."""
MAX_KEPT_ANSWERS = 64
_COUNT = Struct(">i")
CLUSTER_OPERATIONS_IN = range(8, 11)
ERROR_FROM = 13


Described = dict[Uuid, tuple[TopicImage, bytes]]


class TopicBytes:
    """Described topics for the last kind of request: clients repeat their requests, and most send the same."""

    __slots__ = ("_brokers", "_described", "_kind")

    def __init__(self) -> None:
        self._kind: Kind | None = None
        self._brokers: Mapping[int, BrokerImage] | None = None
        self._described: Described = {}

    def of(self, kind: Kind, brokers: Mapping[int, BrokerImage], topics: Mapping[Uuid, TopicImage]) -> Described:
        """The described topics for this kind of request; an entry is valid only if its image is identical. Callers add to the
        result."""
        if kind != self._kind or brokers is not self._brokers:
            # A request still using the old dictionary keeps it.
            self._kind, self._brokers, self._described = kind, brokers, {}
        elif len(self._described) > 2 * len(topics):
            self._described = {topic_id: known for topic_id, known in self._described.items() if topic_id in topics}
        return self._described


def put_together(response: MetadataResponse, topics: Sequence[bytes], version: int) -> bytes:
    """The encoded ``response``, which has no topics, with ``topics`` inserted: byte for byte the regular encoding."""
    assert not response.topics, "they come as bytes"
    body = response.encode(version)
    flexible = version >= MetadataResponse.FLEXIBLE_FROM
    behind = 4 * (version in CLUSTER_OPERATIONS_IN) + 2 * (version >= ERROR_FROM) + flexible
    at = len(body) - behind
    count = bytearray()
    if flexible:
        write_uvarint(count, len(topics) + 1)
    else:
        count += _COUNT.pack(len(topics))
    return b"".join([body[: at - (1 if flexible else _COUNT.size)], count, *topics, body[at:]])


class Answers:
    """Cached encoded answers for one image."""

    __slots__ = ("_image", "_kept", "topics")

    def __init__(self) -> None:
        self.topics = TopicBytes()
        """Descriptions of each topic for requests about all topics."""
        self._image: ClusterImage | None = None
        self._kept: dict[AnswerKey, bytes] = {}

    def get(self, image: ClusterImage, key: AnswerKey) -> bytes | None:
        """The cached answer, unless the image has changed since."""
        if self._image is not image:
            self._image = image
            self._kept.clear()
        return self._kept.get(key)

    def keep(self, key: AnswerKey, answer: bytes) -> None:
        """Cache an answer, evicting the oldest when the cache is full."""
        if len(self._kept) >= MAX_KEPT_ANSWERS:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = answer
