"""Metadata of all topics of a large cluster: each topic's bytes are kept as long as the topic and the brokers are what they were.

An answer about 200,000 partitions takes seconds to make. A change touches few topics, and what is said of the others stays; so
only what changed is described anew, and the answer is put together from bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct

from tidelog.metadata.image import BrokerImage, ClusterImage, TopicImage
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.metadata import MetadataResponse
from tidelog.protocol.primitives import write_uvarint

Kind = tuple[int, str, bool]
"""(version, listener, with what is authorized): what topics are described as depends on it."""

AnswerKey = tuple[int, str, bytes]
"""(version, listener, the request's body)."""
MAX_KEPT_ANSWERS = 64
_COUNT = Struct(">i")
CLUSTER_OPERATIONS_IN = range(8, 11)
ERROR_FROM = 13


Described = dict[Uuid, tuple[TopicImage, bytes]]


class TopicBytes:
    """Of the kind of question that was asked last: one client asks again and again, and others mostly the same."""

    __slots__ = ("_brokers", "_described", "_kind")

    def __init__(self) -> None:
        self._kind: Kind | None = None
        self._brokers: Mapping[int, BrokerImage] | None = None
        self._described: Described = {}

    def of(self, kind: Kind, brokers: Mapping[int, BrokerImage], topics: Mapping[Uuid, TopicImage]) -> Described:
        """What was described for such a question: of a topic it counts if the image is the same. Add to it."""
        if kind != self._kind or brokers is not self._brokers:
            # Whoever is still at another one goes on with what he has.
            self._kind, self._brokers, self._described = kind, brokers, {}
        elif len(self._described) > 2 * len(topics):
            self._described = {topic_id: known for topic_id, known in self._described.items() if topic_id in topics}
        return self._described


def put_together(response: MetadataResponse, topics: Sequence[bytes], version: int) -> bytes:
    """``response``, which names no topics, with these: byte for byte what it would be encoded to."""
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
    """Encoded answers to questions that were asked before, for one image."""

    __slots__ = ("_image", "_kept", "topics")

    def __init__(self) -> None:
        self.topics = TopicBytes()
        """What was said of each topic to who asked for all of them."""
        self._image: ClusterImage | None = None
        self._kept: dict[AnswerKey, bytes] = {}

    def get(self, image: ClusterImage, key: AnswerKey) -> bytes | None:
        """The answer, unless the cluster has changed since."""
        if self._image is not image:
            self._image = image
            self._kept.clear()
        return self._kept.get(key)

    def keep(self, key: AnswerKey, answer: bytes) -> None:
        """Remember it, in place of the oldest when there are too many."""
        if len(self._kept) >= MAX_KEPT_ANSWERS:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = answer
