"""A topic of any Kafka cluster as a pipeline's sink: rows and the batch's identity in one transaction.

The identity is the metadata of the offset that carries the batch's number (docs/adr/0014-topics-exactly-once-from-spark.md).
Brokers take 4096 bytes there: a long one is compressed, and one that is still too long is kept as its digest, without the ranges.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

from tidelog.model.errors import ConfigError
from tidelog.pipeline.sinks.base import BatchIdentity, SinkError
from tidelog.spark import register
from tidelog.spark.appending import WriteFailed
from tidelog.spark.cluster import Cluster, ClusterUnavailable, TopicMissing
from tidelog.spark.network import NotAuthenticated
from tidelog.spark.sink_options import SinkOptions, parse_sink_options
from tidelog.spark.staging import ensure_topic
from tidelog.spark.topic_sink import committer

MAX_METADATA = 4000
_COMPRESSED, _DIGEST = "z:", "d:"
_MAX_TEXT = 1 << 24


def pack(identity: BatchIdentity) -> str:
    """The identity as it fits beside an offset."""
    text = identity.to_json()
    if len(text) > MAX_METADATA:
        packed = _COMPRESSED + base64.b85encode(zlib.compress(text.encode(), 9)).decode()
        if len(packed) <= MAX_METADATA:
            return packed
        known = [identity.pipeline, identity.sink, identity.batch_id, hashlib.sha256(text.encode()).hexdigest()]
        return _DIGEST + json.dumps(known, separators=(",", ":"))
    return text


def unpack(text: str) -> BatchIdentity | None:
    """The identity; without ranges where only its digest was kept; None when it is none of ours."""
    try:
        if text.startswith(_COMPRESSED):
            raw = zlib.decompressobj().decompress(base64.b85decode(text[len(_COMPRESSED) :]), _MAX_TEXT)
            return BatchIdentity.from_json(raw.decode())
        if text.startswith(_DIGEST):
            pipeline, sink, batch_id, _ = json.loads(text[len(_DIGEST) :])
            return BatchIdentity(str(pipeline), str(sink), int(batch_id), ())
    except (ValueError, TypeError, zlib.error):
        return None
    return BatchIdentity.from_json(text)


class TopicSink:
    """Appends to a topic. ``options``: the sink's of docs/guide/spark.md, but ``txn...`` and ``firstBatch``."""

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
        """The topic is there, and so is the one in which batches wait. SinkError says what is wrong."""
        register(spark)
        try:
            cluster = self._connected()
            if self._options.topic is not None:
                cluster.topics((self._options.topic,))
            ensure_topic(cluster, self._options.staging_topic)
        except (TopicMissing, ClusterUnavailable, NotAuthenticated, WriteFailed) as error:
            raise SinkError(f"The sink {self._sink} of {self._pipeline} cannot be written: {error}") from error

    def write(self, batch: Any, identity: BatchIdentity) -> None:
        """Rows and identity in one transaction; nothing when they are there."""
        if self.committed(identity):
            return
        numbered = {
            "txnAppId": self._app,
            "txnVersion": str(identity.batch_id),
            "txnMetadata": pack(identity),
            # The pipeline counts on from what the sink knows; a sink that is new to it begins anywhere.
            "firstBatch": str(identity.batch_id),
        }
        batch.write.format("tidelog").options(**self._given, **numbered).mode("append").save()

    def committed(self, identity: BatchIdentity) -> bool:
        """Whether this batch is there. SinkError when its number is, with other offsets."""
        found = self._last()
        if found is None or found[0] < identity.batch_id:
            return False
        if found[0] == identity.batch_id and found[1] != pack(identity):
            raise SinkError(
                f"Batch {identity.batch_id} is in the topic already, of other offsets: another pipeline is named "
                f"{self._pipeline} and has a sink {self._sink}, or the checkpoint was set back. Name one of them differently."
            )
        return True

    def last_committed(self) -> BatchIdentity | None:
        """The newest batch that the cluster knows of this sink."""
        found = self._last()
        return None if found is None else unpack(found[1]) or BatchIdentity(self._pipeline, self._sink, found[0], ())

    def _last(self) -> tuple[int, str] | None:
        cluster = self._connected()
        try:
            ensure_topic(cluster, self._options.staging_topic)
            return committer(self._options, self._app, cluster).last()
        except (TopicMissing, ClusterUnavailable, NotAuthenticated, WriteFailed) as error:
            raise SinkError(f"The cluster cannot tell the last batch of the sink {self._sink}: {error}") from error

    def _connected(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster(self._options.client)
        return self._cluster
