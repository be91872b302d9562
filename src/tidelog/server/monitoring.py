"""/metrics and /healthz of a node."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from tidelog.config.listeners import address_text, parse_address
from tidelog.model.errors import ConfigError
from tidelog.server import node_metrics
from tidelog.server.http import Answer, HttpServer

if TYPE_CHECKING:
    import asyncio

    from tidelog.config.resolve import BrokerConfig
    from tidelog.metrics.registry import Family, Registry
    from tidelog.server.runtime import LoopRuntime
    from tidelog.storage.log_dir import LogDir

log = logging.getLogger(__name__)

_OPTION = "tidelog.http.listener"


class Monitored(Protocol):
    """A node, as far as it is asked here."""

    config: BrokerConfig
    runtime: LoopRuntime
    failed: asyncio.Event


class Monitoring:
    """The HTTP side of one node; ``start`` it once the node serves."""

    def __init__(self, node: Monitored, metrics: Registry, dirs: Sequence[LogDir]) -> None:
        """``metrics``: what the node's own objects say; collected on the loop."""
        self._node = node
        self._dirs = dirs
        self._on_loop = metrics
        self._in_thread = node_metrics.in_thread(log_dir.path for log_dir in dirs)
        self._server = HttpServer({"/metrics": self._metrics, "/healthz": self._health})
        self.address: tuple[str, int] | None = None
        """Host and port that it listens on; None when it is turned off."""

    async def start(self) -> None:
        """Listen as ``tidelog.http.listener`` says. ConfigError when a port that somebody chose is taken."""
        text = self._node.config.tidelog_http_listener
        if not text:
            return
        host, port = parse_address(_OPTION, text)
        try:
            self.address = await self._server.start(host, port)
        except ConfigError as error:
            if _OPTION in self._node.config.static:
                raise
            # The second node of a machine did not ask for the first one's port; a free one serves it as well.
            self.address = await self._server.start(host, 0)
            log.info("%s Taken instead: %s.", error, address_text(*self.address))
        log.info("metrics at http://%s/metrics", address_text(*self.address))

    async def stop(self) -> None:
        """Stop listening."""
        await self._server.close()

    async def _metrics(self) -> Answer:
        families = self._on_loop.collect()
        body = await self._node.runtime.run_blocking(partial(_text, families, self._in_thread))
        return Answer(200, body, "text/plain; version=0.0.4; charset=utf-8")

    async def _health(self) -> Answer:
        node = self._node
        offline = [log_dir.path for log_dir in self._dirs if not log_dir.online]
        status = "failed" if node.failed.is_set() else "degraded" if offline else "ok"
        body = {"status": status, "node_id": node.config.node_id, "offline_log_dirs": offline}
        return Answer(503 if status == "failed" else 200, json.dumps(body).encode() + b"\n", "application/json")


def _text(families: list[Family], in_thread: Registry) -> bytes:
    """In a thread: writing thousands of series takes longer than a request may wait."""
    from tidelog.metrics.exposition import render

    return render([*families, *in_thread.collect()])
