"""/metrics, /healthz, /livez and /readyz of a node."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from tidelog.config.listeners import address_text, parse_address
from tidelog.model.errors import ConfigError
from tidelog.server.upkeep import node_metrics
from tidelog.server.upkeep.http import Answer, HttpServer

if TYPE_CHECKING:
    import asyncio

    from tidelog.config.resolve import BrokerConfig
    from tidelog.metrics.registry import Family, Registry
    from tidelog.server.runtime import LoopRuntime
    from tidelog.storage.log_dir import LogDir

log = logging.getLogger(__name__)

_OPTION = "tidelog.http.listener"


STARTING = "the node is starting"


class Monitored(Protocol):
    """A node, as far as it is asked here."""

    config: BrokerConfig
    runtime: LoopRuntime
    failed: asyncio.Event


class Monitoring:
    """The HTTP side of one node: ``listen`` before anything is written, ``serve`` once there is something to measure."""

    def __init__(self, node: Monitored) -> None:
        self._node = node
        self._dirs: Sequence[LogDir] = ()
        self._on_loop: Registry | None = None
        self._in_thread: Registry | None = None
        self._why_not_ready: Callable[[], str | None] = lambda: STARTING
        pages = {"/metrics": self._metrics, "/healthz": self._health, "/livez": self._live, "/readyz": self._ready}
        self._server = HttpServer(pages)
        self.address: tuple[str, int] | None = None
        """Host and port that it listens on; None when it is turned off."""

    async def listen(self) -> None:
        """As ``tidelog.http.listener`` says. ConfigError when that is no address, or when a port that was set is taken."""
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
            where = address_text(*self.address)
            log.warning("%s Metrics are at %s instead: set %s, or the wrong node is measured.", error, where, _OPTION)
        log.info("metrics at http://%s/metrics", address_text(*self.address))

    def serve(self, metrics: Registry, dirs: Sequence[LogDir], why_not_ready: Callable[[], str | None]) -> None:
        """``metrics``: what the node's own objects say, collected on the loop. ``why_not_ready``: None while it is ready."""
        self._on_loop = metrics
        self._in_thread = node_metrics.in_thread(log_dir.path for log_dir in dirs)
        self._dirs = dirs
        self._why_not_ready = why_not_ready

    async def stop(self) -> None:
        """Stop listening."""
        await self._server.close()

    async def _metrics(self) -> Answer:
        if self._on_loop is None or self._in_thread is None:
            return _unavailable(STARTING)
        families = self._on_loop.collect()
        body = await self._node.runtime.run_blocking(partial(_text, families, self._in_thread))
        return Answer(200, body, "text/plain; version=0.0.4; charset=utf-8")

    async def _health(self) -> Answer:
        """503 for a node that has failed; what is wrong otherwise is in the body."""
        node = self._node
        offline = [log_dir.path for log_dir in self._dirs if not log_dir.online]
        ready = "starting" if self._on_loop is None else "ok"
        status = "failed" if node.failed.is_set() else "degraded" if offline else ready
        body = {"status": status, "node_id": node.config.node_id, "offline_log_dirs": offline}
        return Answer(503 if status == "failed" else 200, json.dumps(body).encode() + b"\n", "application/json")

    async def _live(self) -> Answer:
        """Whether the process should be left alone: it answers, and its disk has not failed."""
        return _unavailable("the node has failed") if self._node.failed.is_set() else Answer(200, b"live\n")

    async def _ready(self) -> Answer:
        """Whether clients are served: not while the node starts, is fenced, or has failed."""
        why = "the node has failed" if self._node.failed.is_set() else self._why_not_ready()
        return Answer(200, b"ready\n") if why is None else _unavailable(why)


def _unavailable(why: str) -> Answer:
    return Answer(503, f"{why}\n".encode())


def _text(families: list[Family], in_thread: Registry) -> bytes:
    """In a thread: writing thousands of series takes longer than a request may wait."""
    from tidelog.metrics.exposition import render

    return render([*families, *in_thread.collect()])
