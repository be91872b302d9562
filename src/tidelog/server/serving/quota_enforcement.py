"""Applies a node's client quotas: they follow the metadata, and the node's listeners follow them.

Without quotas listeners give requests directly to the dispatcher. With the first quota every connection switches to
``broker.quotas.metering``, and back when the last quota is removed.
"""

from __future__ import annotations

import logging

from tidelog.broker.node import ServingNode
from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.broker.quotas.metering import Metering
from tidelog.broker.quotas.rates import Windows
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.image import EMPTY_IMAGE, ClusterImage
from tidelog.server.native import produce_lanes
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.listener import Listener

log = logging.getLogger(__name__)


class QuotaEnforcement:
    def __init__(self, config: BrokerConfig, runtime: LoopRuntime) -> None:
        self.quotas = ClientQuotas(
            Windows(config.quota_window_num, config.quota_window_size_seconds * 1000),
            Windows(config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1000),
        )
        self._runtime = runtime
        self._listeners: list[Listener] = []
        self._followed = EMPTY_IMAGE.quotas

    def add(self, listener: Listener, node: ServingNode | None = None) -> Listener:
        """Registers a listener. ``node``: the node that it serves, where requests count against quotas; a controller counts
        only connections."""
        if node is not None:
            runtime = self._runtime
            listener.metering = Metering(
                node, self.quotas, node.apis, runtime.even_ms, runtime.busy_ns, listener.times, listener.usage, produce_lanes()
            )
        self._listeners.append(listener)
        self._tell(listener)
        return listener

    def follow(self, image: ClusterImage) -> None:
        """Applies the committed metadata's quotas."""
        if image.quotas is self._followed:
            return
        was, self._followed = self._followed, image.quotas
        self.quotas.change(image.quotas)
        for listener in self._listeners:
            self._tell(listener)
        if was or image.quotas:
            log.info("client quotas changed: %d users, clients and addresses have some", len(image.quotas))

    def _tell(self, listener: Listener) -> None:
        listener.follow_quotas(self.quotas.for_clients, self._connected if self.quotas.for_hosts else None)

    def _connected(self, host: str) -> int:
        return self.quotas.connected(host, self._runtime.even_ms())
