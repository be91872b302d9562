"""The order of settings in DescribeConfigs answers: that of a Java ``HashMap``, as Apache Kafka's brokers list them.

A ``HashMap`` keeps entries in buckets by the hash of their name. The number of buckets is a power of two and doubles when there
are more entries than three quarters of it. Entries of one bucket keep the order in which they were put there, that of
Kafka's definitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

# fmt: off
_DEFINED_IN_ORDER: Final = (
    "remote.log.metadata.manager.listener.name", "log.flush.interval.messages", "group.consumer.max.session.timeout.ms",
    "num.recovery.threads.per.data.dir", "ssl.keystore.type", "sasl.oauthbearer.assertion.private.key.file",
    "metadata.log.segment.bytes", "fetch.purgatory.purge.interval.requests", "group.streams.num.standby.replicas",
    "group.share.record.lock.duration.ms", "remote.log.manager.fetch.max.bytes.per.second", "group.share.session.timeout.ms",
    "remote.log.manager.copy.quota.window.size.seconds", "log.flush.offset.checkpoint.interval.ms", "sasl.oauthbearer.scope",
    "sasl.oauthbearer.jwks.endpoint.url", "group.consumer.max.size", "group.consumer.assignors", "max.connections",
    "delegation.token.expiry.time.ms", "remote.fetch.max.wait.ms", "group.streams.max.heartbeat.interval.ms",
    "transaction.partition.verification.enable", "controller.quorum.auto.join.enable", "replica.fetch.response.max.bytes",
    "group.max.session.timeout.ms", "group.consumer.heartbeat.interval.ms", "early.start.listeners",
    "controlled.shutdown.enable", "share.coordinator.state.topic.compression.codec", "log.message.timestamp.before.max.ms",
    "group.share.min.partition.max.record.locks", "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "sasl.kerberos.kinit.cmd", "log.cleaner.min.cleanable.ratio", "group.share.min.record.lock.duration.ms",
    "ssl.keystore.key", "sasl.client.callback.handler.class", "remote.log.storage.manager.class.name",
    "socket.receive.buffer.bytes", "group.streams.initial.rebalance.delay.ms", "replica.fetch.min.bytes",
    "group.streams.max.session.timeout.ms", "sasl.oauthbearer.sub.claim.name", "producer.purgatory.purge.interval.requests",
    "controller.quorum.voters", "group.share.max.assignment.interval.ms", "controller.quota.window.num", "num.io.threads",
    "group.streams.max.size", "sasl.login.refresh.buffer.seconds", "sasl.mechanism.controller.protocol",
    "group.share.max.record.lock.duration.ms", "share.fetch.purgatory.purge.interval.requests",
    "alter.log.dirs.replication.quota.window.num", "log.cleaner.enable", "controller.quorum.fetch.timeout.ms",
    "transaction.state.log.min.isr", "ssl.secure.random.implementation", "remote.log.metadata.manager.impl.prefix",
    "controller.quota.window.size.seconds", "replica.fetch.backoff.ms", "group.share.delivery.count.limit",
    "kafka.metrics.reporters", "socket.connection.setup.timeout.ms", "listeners",
    "remote.log.manager.expiration.thread.pool.size", "group.consumer.max.assignment.interval.ms", "ssl.keymanager.algorithm",
    "sasl.login.callback.handler.class", "share.coordinator.threads", "sasl.server.max.receive.size", "security.providers",
    "metadata.log.max.snapshot.interval.ms", "group.streams.max.standby.replicas", "compression.lz4.level", "log.roll.hours",
    "controller.quorum.fetch.max.bytes", "remote.log.metadata.manager.class.path", "group.consumer.max.heartbeat.interval.ms",
    "sasl.login.refresh.window.factor", "group.share.max.size", "controller.quorum.election.backoff.max.ms",
    "metadata.log.dir", "log.cleaner.io.buffer.load.factor", "transaction.max.timeout.ms", "process.roles", "group.max.size",
    "broker.id", "max.request.partition.size.limit", "offsets.topic.compression.codec",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "delegation.token.max.lifetime.ms", "segment.bytes",
    "retention.ms", "compression.gzip.level", "flush.messages", "compression.zstd.level", "ssl.allow.san.changes",
    "max.compaction.lag.ms", "file.delete.delay.ms", "retention.bytes", "delete.retention.ms",
)
# fmt: on
"""Names that share a bucket, in the order of Kafka 4.3.1's definitions, where that differs from the order of our tables."""
_PLACES: Final = {name: place for place, name in enumerate(_DEFINED_IN_ORDER)}
_SMALLEST_TABLE: Final = 16


def hash_map_order(names: Iterable[str], *, entries: int | None = None) -> list[str]:
    """The names as a ``HashMap`` of ``entries`` entries lists them, by default of as many as there are names.

    Names of one bucket keep their order, unless Kafka defines them in another.
    """
    names = list(names)
    last = _table_size(len(names) if entries is None else entries) - 1
    return sorted(names, key=lambda name: (_spread_hash(name) & last, _PLACES.get(name, 0)))


def broker_order(known: Collection[str], listed: Iterable[str], *, entries: int) -> list[str]:
    """Settings of a broker. Those outside its tables come first, as a map of its ``entries`` given settings lists them."""
    listed = list(listed)
    others = [name for name in listed if name not in known]
    return hash_map_order(others, entries=entries) + hash_map_order(name for name in known if name in set(listed))


def _table_size(entries: int) -> int:
    size = _SMALLEST_TABLE
    while entries * 4 > size * 3:
        size *= 2
    return size


def _spread_hash(name: str) -> int:
    value = 0
    for unit in _utf16(name):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value ^ (value >> 16)


def _utf16(name: str) -> list[int]:
    data = name.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
