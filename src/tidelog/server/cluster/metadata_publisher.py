"""Applies each committed image of the cluster to the parts of this broker, in order.

The replicas come first; coordinators and fetchers look at them. Settings that components cache are replaced; all others are read
from ``config`` each time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from tidelog.broker.node import Broker
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.model.errors import ConfigError
from tidelog.replication.partition import Partition
from tidelog.server import component_settings
from tidelog.server.cluster.broker_lifecycle import BrokerLife
from tidelog.server.cluster.coordinators import Coordinators
from tidelog.server.cluster.log_dir_reports import LogDirReports
from tidelog.server.cluster.metadata_replica import MetadataReplica
from tidelog.server.log_loading import ServedImage
from tidelog.server.replication.replica_fetcher_manager import Replication
from tidelog.server.serving.listener import Listener

log = logging.getLogger(__name__)


class MetadataPublisher:
    """``load`` once, then ``committed`` for each commit."""

    def __init__(
        self,
        broker: Broker,
        served: ServedImage,
        *,
        coordinators: Coordinators,
        replication: Replication,
        reports: LogDirReports,
        life: BrokerLife,
        replica: MetadataReplica,
        listeners: Sequence[Listener],
    ) -> None:
        self._broker = broker
        self._served = served
        self._coordinators = coordinators
        self._replication = replication
        self._reports = reports
        self._life = life
        self._replica = replica
        self._listeners = listeners
        self._stopped = False

    def committed(self, old: ClusterImage, new: ClusterImage, delta: ClusterDelta | None) -> None:
        """Applies a committed image; without ``delta`` it was replaced by a snapshot."""
        node_id = self._broker.config.node_id
        self._served.image = new
        if old.cluster_configs != new.cluster_configs or old.broker_configs(node_id) != new.broker_configs(node_id):
            self._follow_settings(new)
        if delta is None:
            self.load(new)
        else:
            self._apply(new, delta)
        if node_id in old.brokers and node_id not in new.brokers and new.offset >= self._life.epoch and not self._stopped:
            self._life.unregistered()

    def stop(self) -> None:
        """The broker stops: it does not register again."""
        self._stopped = True

    def load(self, image: ClusterImage) -> None:
        """Applies an image in which anything may have changed."""
        broker = self._broker
        self._served.image = broker.image = image
        broker.replicas.load(image, broker.runtime.even_ms())
        for partition in broker.replicas.partitions():
            partition.set_config(broker.replicas.logs.config_for(partition.topic))
        self._coordinators.follow()
        self._replication.follow(image)
        if self._reports.several:
            self._reports.report_places(broker.replicas.partitions())

    def _apply(self, image: ClusterImage, delta: ClusterDelta) -> None:
        replicas = self._broker.replicas
        self._broker.image = image
        replicas.apply(delta, image, self._broker.runtime.even_ms())
        self._coordinators.follow(delta)
        self._replication.follow(image)
        if self._reports.several:
            found = (
                replicas.by_id(topic_id, index)
                for topic_id, changed in delta.topics.changed.items()
                for index in sorted(changed.changed)
            )
            self._reports.report_places(partition for partition in found if isinstance(partition, Partition))

    def created(self, partitions: Iterable[Partition]) -> None:
        """Called when the logs of new partitions were created in a later turn of the loop than the image was applied."""
        self._replication.follow(self._served.image)
        if self._reports.several:
            self._reports.report_places(partitions)

    def _follow_settings(self, image: ClusterImage) -> None:
        config = self._broker.config
        try:
            changed = config.apply_dynamic(image.cluster_configs, image.broker_configs(config.node_id))
        except ConfigError as error:
            log.error("dynamic settings are not taken over: %s", error)
            return
        (log.info if changed else log.debug)("dynamic settings changed: %s", ", ".join(sorted(changed)))
        self._replica.member.set_settings(component_settings.controller_settings(config))
        for listener in self._listeners:
            listener.change_limits(component_settings.limits(config, listener.name))
        self._replica.follow_limits()
        if self._replica.tls is not None:
            self._replica.tls.follow()
        self._broker.replicas.logs.change_producer_expiration(config.producer_id_expiration_ms)
        self._life.poke()
