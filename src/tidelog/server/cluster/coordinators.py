"""The coordinators of a node: built from its settings, run by its loop, following the cluster's image."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from tidelog.broker.ports import OtherBrokers
from tidelog.broker.shares.initializing import Initializer
from tidelog.config.options import INT_MAX
from tidelog.config.resolve import BrokerConfig
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.settings import Bounded, GroupSettings, MigrationPolicy, served_assignors
from tidelog.coordinator.shards import Shards
from tidelog.coordinator.share.settings import ShareCoordinatorSettings
from tidelog.coordinator.transaction.coordinator import TransactionCoordinator
from tidelog.coordinator.transaction.settings import TransactionSettings
from tidelog.coordinator.transaction.transitions import NewId
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.supported_features import TRANSACTION_VERSION
from tidelog.model.ids import NO_BROKER, NO_SEQUENCE, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from tidelog.model.machine import NOTHING, Outcome
from tidelog.model.ports import Rng
from tidelog.replication.isr_and_high_watermark import is_followed
from tidelog.replication.partition import Partition
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.server.cluster.marker_channels import MarkerCarrier, WriteMarker
from tidelog.server.runtime import Alarm, LoopRuntime

if TYPE_CHECKING:
    from tidelog.coordinator.share.coordinator import ShareCoordinator
    from tidelog.metadata.image import ClusterImage

BATCH_ROOM = 1_024
"""Room in a batch beside the record's key and value, in bytes; generous."""


class LoopWorld:
    """The node's services for the shards: time, threads, tasks, and one timer per callback."""

    def __init__(self, runtime: LoopRuntime, leads: Callable[[Partition], bool] = lambda partition: True) -> None:
        self._runtime = runtime
        self.leads = leads
        self._alarms: dict[Callable[[], None], Alarm] = {}

    def even_ms(self) -> int:
        """Milliseconds of the even clock: setting the wall clock neither ends nor prolongs sessions and rebalances."""
        return self._runtime.even_ms()

    def run_blocking(self, job: Callable[[], Any]) -> Awaitable[Any]:
        return self._runtime.run_blocking(job)

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> object:
        return self._runtime.spawn(coroutine, name)

    def wake_at(self, deadline_ms: int, callback: Callable[[], None]) -> None:
        """Replaces the callback's previous timer."""
        former = self._alarms.pop(callback, None)
        if former is not None:
            former.cancel()
        delay_s = max(0, deadline_ms - self.even_ms()) / 1000
        self._alarms[callback] = self._runtime.call_later(delay_s, callback)

    def stop(self) -> None:
        """Cancels all timers."""
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()


class Coordinators:
    """The shards of all coordinators, which follow the cluster's image.

    ``new_id`` allocates producer ids; ``write_marker`` writes a transaction marker to one partition of this node, ``others``
    reaches the leaders of the rest. ``in_touch``: whether the controller has heard from this broker so recently that no other
    broker can have been elected in its place. While all controllers are down, the followers' fetches prove the same.
    """

    def __init__(
        self,
        config: BrokerConfig,
        replicas: ReplicaManager,
        runtime: LoopRuntime,
        new_id: NewId,
        write_marker: WriteMarker,
        others: OtherBrokers | None = None,
        in_touch: Callable[[], bool] = lambda: True,
    ) -> None:
        def leads(partition: Partition) -> bool:
            return in_touch() or is_followed(partition, runtime.even_ms(), config.broker_session_timeout_ms)

        self.leads = leads
        self._world = LoopWorld(runtime, leads)
        self._stopped = False
        groups, transactions, shares = group_settings(config), transaction_settings(config), share_settings(config)
        rng: Rng = runtime.rng

        def make_groups(now_ms: int) -> GroupCoordinator:
            return GroupCoordinator(groups, rng, now_ms, lambda: replicas.image)

        def make_transactions(now_ms: int) -> TransactionCoordinator:
            return TransactionCoordinator(transactions, new_id, server_version, now_ms)

        def make_shares(now_ms: int) -> ShareCoordinator:
            return _share_coordinator(shares, now_ms, lambda: replicas.image)

        def server_version() -> int:
            return replicas.image.features.get(TRANSACTION_VERSION, 0)

        def remote_leader(partition: TopicPartition) -> int | None:
            found = replicas.image.topics.partition(*partition)
            return None if found is None or found.leader in (NO_BROKER, replicas.broker_id) else found.leader

        self.initializer = Initializer()
        self.groups: Shards[GroupCoordinator] = Shards(
            OFFSETS_TOPIC,
            replicas,
            make_groups,
            self._world,
            send=self.initializer.send,
            patience_ms=config.offsets_commit_timeout_ms,
        )
        self.markers = MarkerCarrier(runtime, write_marker, remote_leader, others)
        self.transactions: Shards[TransactionCoordinator] = Shards(
            TRANSACTION_STATE_TOPIC,
            replicas,
            make_transactions,
            self._world,
            send=self.markers.send,
            base_sequence=NO_SEQUENCE,
            patience_ms=config.request_timeout_ms,
        )
        self.markers.shards = self.transactions
        self.shares: Shards[ShareCoordinator] = Shards(
            SHARE_STATE_TOPIC, replicas, make_shares, self._world, patience_ms=config.share_coordinator_write_timeout_ms
        )

    def follow(self, delta: ClusterDelta | None = None) -> None:
        """Called when the replica manager has applied an image. The offsets of deleted topics are dropped. A stopping node
        ignores the image."""
        if self._stopped:
            return
        for shards in (self.groups, self.transactions, self.shares):
            if shards.exists or shards.running:
                shards.follow()
        if delta is not None and (delta.topics.changed or delta.topics.deleted):
            created = any(topic.created for topic in delta.topics.changed.values())
            self.groups.tell_all(lambda machine: machine.topics_changed(created=created))
        if delta is not None and delta.topics.deleted:
            names = frozenset(image.name for image in delta.topics.deleted.values())
            self.groups.tell_all(lambda machine: machine.offsets.forget_topics(names))
            gone = frozenset(delta.topics.deleted)
            self.shares.tell_all(lambda machine: machine.forget_topics(gone))
            self.groups.tell_all(lambda machine: _forget_shared(machine, gone))
        broker = self.initializer.broker
        if broker is not None and broker.hosted_shares is not None:
            broker.hosted_shares.follow()

    def prune_shares(self) -> None:
        """Deletes the share state that newer snapshots have replaced."""
        shards = self.shares.loaded()
        for shard in shards if isinstance(shards, list) else ():
            partition, machine = shard.partition, shard.machine
            if machine is None or partition.log is None:
                continue
            offset = machine.prunable_offset(partition.log.high_watermark)
            if offset is not None and offset > partition.log.log_start_offset:
                partition.delete_records(offset)

    def stop(self) -> None:
        """Stops the coordinators and answers all waiting requests."""
        self._stopped = True
        self._world.stop()
        self.groups.stop()
        self.transactions.stop()
        self.shares.stop()


def _forget_shared(machine: GroupCoordinator, topic_ids: frozenset[bytes]) -> Outcome:
    """Share groups drop the states of deleted topics' partitions; nothing is imported where there is no share group."""
    shared = any(machine.kind_of(group).name == "share" for group in machine.groups.values())
    return machine.shares.forget_topics(topic_ids) if shared else NOTHING


def _share_coordinator(settings: ShareCoordinatorSettings, now_ms: int, image: Callable[[], ClusterImage]) -> ShareCoordinator:
    """Imported with the first partition that stores states of share groups; most nodes never have one."""
    from tidelog.coordinator.share.coordinator import ShareCoordinator

    return ShareCoordinator(settings, now_ms, image)


def share_settings(config: BrokerConfig) -> ShareCoordinatorSettings:
    """What the settings say of the share coordinator."""
    return ShareCoordinatorSettings(
        updates_per_snapshot=config.share_coordinator_snapshot_update_records_per_snapshot,
        cold_after_ms=config.share_coordinator_cold_partition_snapshot_interval_ms,
    )


def transaction_settings(config: BrokerConfig) -> TransactionSettings:
    """The settings of the transaction machines."""
    return TransactionSettings(
        max_timeout_ms=config.transaction_max_timeout_ms,
        abort_check_interval_ms=config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        id_expiration_ms=config.transactional_id_expiration_ms,
        id_expiration_check_interval_ms=config.transaction_remove_expired_transaction_cleanup_interval_ms,
        max_record_bytes=config.message_max_bytes,
    )


def group_settings(config: BrokerConfig) -> GroupSettings:
    """The settings of the group machines."""
    settings = GroupSettings(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        consumer_assignors=served_assignors(config.group_consumer_assignors),
        consumer_max_size=config.group_consumer_max_size,
        consumer_session_timeout=Bounded(
            config.group_consumer_session_timeout_ms,
            config.group_consumer_min_session_timeout_ms,
            config.group_consumer_max_session_timeout_ms,
        ),
        consumer_heartbeat_interval=Bounded(
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_min_heartbeat_interval_ms,
            config.group_consumer_max_heartbeat_interval_ms,
        ),
        share_max_size=config.group_share_max_size,
        share_session_timeout=Bounded(
            config.group_share_session_timeout_ms,
            config.group_share_min_session_timeout_ms,
            config.group_share_max_session_timeout_ms,
            "share.session.timeout.ms",
        ),
        share_heartbeat_interval=Bounded(
            config.group_share_heartbeat_interval_ms,
            config.group_share_min_heartbeat_interval_ms,
            config.group_share_max_heartbeat_interval_ms,
            "share.heartbeat.interval.ms",
        ),
        share_assignment_interval=Bounded(
            config.group_share_assignment_interval_ms,
            config.group_share_min_assignment_interval_ms,
            config.group_share_max_assignment_interval_ms,
            "share.assignment.interval.ms",
        ),
        share_initialize_retry_interval_ms=config.group_share_initialize_retry_interval_ms,
        consumer_assignment_interval=Bounded(
            config.group_consumer_assignment_interval_ms,
            config.group_consumer_min_assignment_interval_ms,
            config.group_consumer_max_assignment_interval_ms,
        ),
        max_record_bytes=max(0, min(config.message_max_bytes, config.offsets_topic_segment_bytes) - BATCH_ROOM),
        consumer_regex_refresh_interval_ms=config.group_consumer_regex_refresh_interval_ms,
        migration_policy=MigrationPolicy(config.group_consumer_migration_policy.lower()),
    )
    return _with_streams(settings, config)


def _with_streams(settings: GroupSettings, config: BrokerConfig) -> GroupSettings:
    """With those of streams groups."""
    return settings._replace(
        streams_max_size=config.group_streams_max_size,
        streams_session_timeout=Bounded(
            config.group_streams_session_timeout_ms,
            config.group_streams_min_session_timeout_ms,
            config.group_streams_max_session_timeout_ms,
            "streams.session.timeout.ms",
        ),
        streams_heartbeat_interval=Bounded(
            config.group_streams_heartbeat_interval_ms,
            config.group_streams_min_heartbeat_interval_ms,
            config.group_streams_max_heartbeat_interval_ms,
            "streams.heartbeat.interval.ms",
        ),
        streams_assignment_interval=Bounded(
            config.group_streams_assignment_interval_ms,
            config.group_streams_min_assignment_interval_ms,
            config.group_streams_max_assignment_interval_ms,
            "streams.assignment.interval.ms",
        ),
        streams_initial_rebalance_delay=Bounded(
            config.group_streams_initial_rebalance_delay_ms, 0, INT_MAX, "streams.initial.rebalance.delay.ms"
        ),
        streams_standby_replicas=Bounded(
            config.group_streams_num_standby_replicas,
            0,
            config.group_streams_max_standby_replicas,
            "streams.num.standby.replicas",
        ),
    )
