"""A topic of any Kafka cluster as a sink: rows and the batch's identity in one transaction.

The identity is the metadata of the offset that carries the batch's number (docs/adr/0014-topics-exactly-once-from-spark.md).
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidelog.client.failures import NotAuthenticated
from tidelog.client.settings import KNOWN
from tidelog.model.errors import ConfigError
from tidelog.pipeline.sinks.base import BatchIdentity, SinkError
from tidelog.spark import register
from tidelog.spark.appending import WriteFailed
from tidelog.spark.cluster import Cluster, ClusterUnavailable, TopicMissing
from tidelog.spark.committing import MAX_METADATA, MAX_PIECES
from tidelog.spark.rights import WRITE
from tidelog.spark.sink_options import SinkOptions, parse_sink_options
from tidelog.spark.staging import ensure_topic
from tidelog.spark.topic_sink import PREFIX, committer

if TYPE_CHECKING:
    from tidelog.pipeline.model import PipelineModel, SinkSpec

_READERS = frozenset(name for name in KNOWN if name.startswith(("fetch.", "isolation.", "check.", "max.partition.")))

_COMPRESSED = "z:"
_MAX_TEXT = 1 << 24
_OPTIONS = ("topic", "stagingTopic", "inlineBytes")


def make(spec: SinkSpec, pipeline: PipelineModel) -> TopicSink:
    """Of the pipeline's cluster settings, those for readers only are left out."""
    options = {f"kafka.{name}": value for name, value in pipeline.kafka if name not in _READERS}
    options |= {name: value for name, value in spec.options if name in _OPTIONS or name.startswith("kafka.")}
    return TopicSink(options, pipeline.name, spec.name)


def pack(identity: BatchIdentity) -> str:
    """The identity in the space beside an offset. SinkError when it has too many partitions for that."""
    text = identity.to_json()
    if len(text) <= MAX_METADATA:
        return text
    packed = _COMPRESSED + base64.b85encode(zlib.compress(text.encode(), 9)).decode()
    if len(packed) > MAX_METADATA * MAX_PIECES:
        raise SinkError(
            f"Batch {identity.batch_id} of {identity.pipeline} read {len(identity.ranges)} partitions, more than fit "
            "beside an offset: let several pipelines read them."
        )
    return packed


def unpack(text: str) -> BatchIdentity | None:
    """The identity; None for text of other writers."""
    if text.startswith(_COMPRESSED):
        try:
            text = zlib.decompressobj().decompress(base64.b85decode(text[len(_COMPRESSED) :]), _MAX_TEXT).decode()
        except (ValueError, zlib.error):
            return None
    return BatchIdentity.from_json(text)


class TopicSink:
    """Appends to a topic. ``options``: the sink's of docs/guide/spark.md, but ``txn...`` and ``firstBatch``."""

    remembers = True

    def __init__(self, options: Mapping[str, str], pipeline: str, sink: str) -> None:
        """ConfigError when an option is wrong."""
        for name in options:
            if name.lower().startswith("txn") or name.lower() == "firstbatch":
                raise ConfigError(f"The option {name} is set by the pipeline: it numbers the batches itself.")
        self._given = dict(options)
        self._app = f"{pipeline}:{sink}"
        self._pipeline, self._sink = pipeline, sink
        self._options: SinkOptions = parse_sink_options(options, streaming=True)
        self._cluster: Cluster | None = None

    def check(self, spark: Any) -> None:
        """Check that the topic exists, and the topic in which batches wait. SinkError says what is wrong."""
        register(spark)
        try:
            cluster = self._connected()
            if self._options.topic is not None:
                cluster.topics((self._options.topic,))
            ensure_topic(cluster, self._options.staging_topic)
        except (TopicMissing, ClusterUnavailable, NotAuthenticated, WriteFailed) as error:
            raise SinkError(f"The sink {self._sink} of {self._pipeline} cannot be written: {error}") from error

    def write(self, batch: Any, identity: BatchIdentity) -> None:
        """Write rows and identity in one transaction; nothing when the sink has the batch."""
        if self.committed(identity):
            return
        numbered = {
            "txnAppId": self._app,
            "txnVersion": str(identity.batch_id),
            "txnMetadata": pack(identity),
            # The pipeline counts on from the sink's number; a sink that is new to it may begin with any number.
            "firstBatch": str(identity.batch_id),
        }
        batch.write.format("tidelog").options(**self._given, **numbered).mode("append").save()

    def committed(self, identity: BatchIdentity) -> bool:
        """Whether the sink has this batch. SinkError when its number is there with other offsets."""
        found = self._last()
        if found is None or found[0] < identity.batch_id:
            return False
        if found[0] == identity.batch_id and found[1] != pack(identity):
            raise SinkError(
                f"Batch {identity.batch_id} is in the topic already, with other offsets: another pipeline is named "
                f"{self._pipeline} and has a sink {self._sink}, or the checkpoint was set back. Name one of them differently."
            )
        return True

    def last_committed(self) -> BatchIdentity | None:
        """The newest batch that the cluster has of this sink."""
        found = self._last()
        if found is None:
            return None
        identity = unpack(found[1])
        if identity is None:
            raise SinkError(
                f"The group {PREFIX}{self._app} has batch {found[0]} without the offsets that it read: another client commits to "
                "that group, or writes with that txnAppId. Name the pipeline or its sink differently."
            )
        return identity

    def _last(self) -> tuple[int, str] | None:
        cluster = self._connected()
        try:
            ensure_topic(cluster, self._options.staging_topic)
            return committer(self._options, self._app, cluster).last()
        except (TopicMissing, ClusterUnavailable, NotAuthenticated, WriteFailed) as error:
            raise SinkError(f"The cluster cannot tell the last batch of the sink {self._sink}: {error}") from error

    def _connected(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster(self._options.client, operation=WRITE)
        return self._cluster
