"""Replication of this broker: which partitions are fetched over which connection, and the ISR changes sent to the controller.

``follow`` is called after each metadata change that this node has applied; it starts, changes and ends fetchers to match the
partitions here. Each fetcher has one Fetch in flight (a long poll) and applies the answer before it sends the next one, so a
request always reflects the log. When a fetcher gets partitions while its long poll waits, it abandons the poll and fetches again
over the other of its two connections: the followers of a new leader must not be half a second late, because nothing is
acknowledged until they fetch.

Related modules: ``replication.fetcher`` (requests and the meaning of answers), ``replication.follower_log`` (their effect on
logs), ``replication.alter_partition_requests``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from zlib import crc32

from tidelog.broker.ports import Controller
from tidelog.config.resolve import BrokerConfig
from tidelog.config.startup_checks import RACK_AWARE_SELECTOR
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.image import EMPTY_IMAGE, TOPIC_RESOURCE, ClusterImage
from tidelog.model.errors import KafkaError
from tidelog.replication.partition import Partition
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.replication.throttle import ReplicationQuota, Throttles, throttled_partitions
from tidelog.server.cluster.channels import Channel, ChannelError, Channels
from tidelog.server.replication.repairing import Repairing
from tidelog.server.runtime import Alarm, LoopRuntime

if TYPE_CHECKING:
    from tidelog.server.replication.replica_fetcher import Following

log = logging.getLogger(__name__)

ISR_RETRY_S = 0.05
"""Back-off after a refusal of the controller, or no answer."""


LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
"""Dynamic settings of brokers only, in bytes per second."""
THROTTLED = frozenset(("leader.replication.throttled.replicas", "follower.replication.throttled.replicas"))


def _rate(settings: Mapping[str, str], name: str) -> int | None:
    """None when unset or not a number; an invalid value is rejected where it is set."""
    text = settings.get(name, "").strip()
    return int(text) if text.isdecimal() else None


class Replication:
    """``broker_epoch`` is called for each request: a broker that registers again gets a new epoch."""

    def __init__(
        self,
        replicas: ReplicaManager,
        controller: Controller,
        channels: Channels,
        runtime: LoopRuntime,
        config: BrokerConfig,
        broker_epoch: Callable[[], int],
    ) -> None:
        replicas.lag_max_ms = config.replica_lag_time_max_ms
        replicas.throttles = Throttles(
            config.replication_quota_window_num,
            config.replication_quota_window_size_seconds * 1000,
            ReplicationQuota(
                config.alter_log_dirs_replication_quota_window_num,
                config.alter_log_dirs_replication_quota_window_size_seconds * 1000,
            ),
        )
        replicas.rack_aware = config.replica_selector_class == RACK_AWARE_SELECTOR
        self.replicas = replicas
        self._channels = channels
        self.runtime = runtime
        self.config = config
        self.broker_epoch = broker_epoch
        self.image: ClusterImage = EMPTY_IMAGE
        self.fetchers: dict[tuple[int, int], Following] = {}
        """By leader and number; each has at least one partition."""
        self.repairing = Repairing(self, config.tidelog_scrub_max_bytes_per_second)
        self._controller = controller
        self._listener = config.inter_broker_listener
        self._where: dict[Partition, Following] = {}
        self._running = False
        self._alarm: Alarm | None = None
        self._asking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts fetching and watching ISRs."""
        self._running = True
        self.replicas.isr_changes.on_wanted = self._ask_controller
        self.replicas.on_moved = self._place_moved
        self._watch_isrs()
        self._ask_controller()
        self.follow(self.replicas.image)
        self.repairing.start()

    def follow(self, image: ClusterImage) -> None:
        """Applies ``image``; the replicas have already applied it."""
        if image.configs is not self.image.configs:
            self._follow_throttles(image)
        self.image = image
        if self._running:
            self._place_moved()

    def _place_moved(self) -> None:
        moved, self.replicas.moved = self.replicas.moved, {}
        for partition in moved:
            self._place(partition)
        for key in [key for key, fetcher in self.fetchers.items() if not len(fetcher.machine)]:
            self.fetchers.pop(key).end()

    def _place(self, partition: Partition) -> None:
        """Has the partition followed from its current leader only."""
        leader = partition.leader
        follows = leader >= 0 and not partition.is_leader and not partition.deleted and partition.log is not None
        wanted = self._fetcher(leader, partition) if follows else None
        before = self._where.pop(partition, None)
        if before is not None and before is not wanted:
            before.machine.drop(partition)
        if wanted is not None:
            self._where[partition] = wanted
            wanted.follow(partition)

    def _fetcher(self, leader: int, partition: Partition) -> Following:
        number = (crc32(partition.topic.encode()) + partition.index) % self.config.num_replica_fetchers
        fetcher = self.fetchers.get((leader, number))
        if fetcher is None:
            # Imported on demand: a node that leads all its partitions follows none.
            from tidelog.server.replication.replica_fetcher import Following, fetcher_settings

            fetcher = self.fetchers[leader, number] = Following(self, leader, number, fetcher_settings(self.config))
            fetcher.start()
        return fetcher

    def _follow_throttles(self, image: ClusterImage) -> None:
        """Rates are dynamic settings of this broker or of all brokers; topics list the replicas that are throttled."""
        broker_id = self.replicas.broker_id
        rates = {**image.cluster_configs, **image.broker_configs(broker_id)}
        leaders: dict[str, frozenset[int]] = {}
        followers: dict[str, frozenset[int]] = {}
        for (kind, topic), overrides in image.configs.items():
            if kind == TOPIC_RESOURCE and not THROTTLED.isdisjoint(overrides):
                listed = self.config.topic_config(overrides)
                leaders[topic] = throttled_partitions(listed.leader_replication_throttled_replicas, broker_id)
                followers[topic] = throttled_partitions(listed.follower_replication_throttled_replicas, broker_id)
        self.replicas.throttles.leader.change(_rate(rates, LEADER_RATE), leaders)
        self.replicas.throttles.follower.change(_rate(rates, FOLLOWER_RATE), followers)
        self.replicas.throttles.log_dirs.change(_rate(rates, LOG_DIR_RATE), {})

    def channel(self, leader: int, purpose: str) -> Channel | None:
        """A connection to the inter-broker listener of ``leader``; None while its address is unknown."""
        broker = self.image.brokers.get(leader)
        endpoint = broker.endpoints.get(self._listener) if broker is not None else None
        return None if endpoint is None else self._channels.to(endpoint.host, endpoint.port, purpose)

    # -- ISRs -----------------------------------------------------------------------------------------------------------

    def _watch_isrs(self) -> None:
        self.replicas.isr_step(self.runtime.even_ms())
        self._alarm = self.runtime.call_later(self.replicas.lag_max_ms / 2000, self._watch_isrs)

    def _ask_controller(self) -> None:
        if self._running and self._asking is None and self.replicas.isr_changes.ready:
            self._asking = self.runtime.spawn(self._change_isrs(), "asking for ISR changes")

    async def _change_isrs(self) -> None:
        """Sends ISR changes until none is pending."""
        changes = self.replicas.isr_changes
        # Changes requested in the same turn are sent together: a follower that has caught up joins many ISRs.
        await asyncio.sleep(0)
        try:
            while self._running and changes.ready:
                if self.broker_epoch() < 0 or not await self._ask_once():
                    await self.runtime.sleep(ISR_RETRY_S)
        finally:
            self._asking = None

    async def _ask_once(self) -> bool:
        changes = self.replicas.isr_changes
        request = changes.next_request(self.broker_epoch())
        if request is None:
            return True
        try:
            response = await self._controller.submit(QuorumController.alter_partition, request)
        except (KafkaError, ChannelError) as error:
            log.debug("ISR changes were not decided: %s", error)
            changes.failed()
            return False
        return changes.answered(response, self.runtime.even_ms())

    # -- stopping ---------------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stops fetching; fetched records are appended or dropped."""
        self._running = False
        self.replicas.isr_changes.on_wanted = self.replicas.on_moved = None
        if self._alarm is not None:
            self._alarm.cancel()
        fetchers, self.fetchers, self._where = list(self.fetchers.values()), {}, {}
        tasks = [
            task for task in (*(fetcher.end() for fetcher in fetchers), self._asking, self.repairing.stop()) if task is not None
        ]
        if self._asking is not None:
            self._asking.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
