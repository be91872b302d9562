"""/metrics, /facts, /healthz, /livez and /readyz of a node."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tidelog.config.listeners import address_text, parse_address
from tidelog.config.tidelog_options import HTTP_SECURITY
from tidelog.model.errors import ConfigError
from tidelog.server.upkeep import node_metrics
from tidelog.server.upkeep.http import Answer, HttpServer, Page, Reader

if TYPE_CHECKING:
    import asyncio

    from tidelog.config.resolve import BrokerConfig
    from tidelog.metrics.registry import Family, Registry
    from tidelog.server.installation import Place
    from tidelog.server.runtime import LoopRuntime
    from tidelog.server.upkeep.facts_page import FactsPage
    from tidelog.storage.log_dir import LogDir

log = logging.getLogger(__name__)

_OPTION = "tidelog.http.listener"

STARTING = "the node is starting"

Sources: TypeAlias = "Callable[[], Registry]"
"""Makes the metrics of a node's own objects, from ``upkeep.node_metrics``."""
MakesFacts: TypeAlias = "Callable[[], FactsPage]"
"""Makes the page of a node's facts, from ``upkeep.node_facts``."""


class Monitored(Protocol):
    """What monitoring needs from a node."""

    config: BrokerConfig
    runtime: LoopRuntime
    failed: asyncio.Event


class Monitoring:
    """The HTTP server of one node: ``listen`` before anything is written, ``serve`` once there are metrics."""

    def __init__(self, node: Monitored) -> None:
        self._node = node
        self._dirs: Sequence[LogDir] = ()
        self._on_loop: Registry | None = None
        self._in_thread: Registry | None = None
        self._why_not_ready: Callable[[], str | None] = lambda: STARTING
        self._facts: FactsPage | None = None
        pages: dict[str, Page] = {
            "/metrics": self._metrics,
            "/facts": self._page_of_facts,
            "/facts/share-record": self._share_record,
            "/healthz": self._health,
            "/livez": self._live,
            "/readyz": self._ready,
        }
        self._pages = pages
        self._server = HttpServer(pages)
        self._shared: HttpServer | None = None
        self._place: Place | None = None
        self.address: tuple[str, int] | None = None
        """The bound host and port; None when the server is turned off."""

    def join(self, place: Place) -> None:
        """This node is one of several processes: its pages are for the others, and those of all for everyone. Before
        ``listen``."""
        self._place = place

    async def listen(self) -> None:
        """Listens at ``tidelog.http.listener``. ConfigError for an invalid address, or when an explicitly set port is in use."""
        text = self._node.config.tidelog_http_listener
        if not text:
            return
        if self._place is not None:
            await self._listen_among(self._place)
            return
        host, port = parse_address(_OPTION, text)
        scheme = await self._secure(self._server)
        try:
            self.address = await self._server.start(host, port)
        except ConfigError as error:
            if _OPTION in self._node.config.static:
                raise
            # A second node on a machine did not ask for the first one's port; a free one is as good.
            self.address = await self._server.start(host, 0)
            where = address_text(*self.address)
            log.warning("%s Metrics are at %s instead: set %s, or the wrong node is measured.", error, where, _OPTION)
        log.info("metrics at %s://%s/metrics", scheme, address_text(*self.address))

    async def _listen_among(self, place: Place) -> None:
        """ConfigError when the socket for the other processes cannot be made."""
        # Only one of several processes.
        from tidelog.server.upkeep.installation_pages import (
            FACTS_WITH_NAMES,
            FACTS_WITHOUT_NAMES,
            TRUSTED_SHARE_RECORD,
            InstallationPages,
            own_socket,
        )

        self._pages[TRUSTED_SHARE_RECORD] = lambda reader: self._share_record(reader, trusted=True)
        self._pages[FACTS_WITH_NAMES] = lambda reader: self._facts_with(names=True)
        self._pages[FACTS_WITHOUT_NAMES] = lambda reader: self._facts_with(names=False)
        path = own_socket(place, place.node_id)
        try:
            await self._server.start_local(path)
        except OSError as error:
            raise ConfigError(f"{path}: the pages for the other processes cannot be served there: {error.strerror}") from error
        if place.http is None:
            return
        together = InstallationPages(place, self._pages, self._node.runtime.run_blocking, self._sees_names)
        self._shared = HttpServer(together.pages())
        await self._secure(self._shared)
        await self._shared.start_shared(socket.socket(fileno=place.http))

    async def _secure(self, server: HttpServer) -> str:
        """Guards the pages if the settings ask for it; http or https. ConfigError for a file that cannot be used."""
        config = self._node.config
        if not any(name.startswith(HTTP_SECURITY) for name in config.static):
            return "http"
        # Most nodes serve plain text on loopback.
        from tidelog.config.http_endpoint import endpoint_security
        from tidelog.server.upkeep.http_security import HttpSecurity

        settings = endpoint_security(config)
        guard = await self._node.runtime.run_blocking(partial(HttpSecurity, settings, self._node.runtime))
        server.guard = guard
        return "https" if guard.speaks_tls else "http"

    def serve(self, metrics: Sources, facts: MakesFacts, dirs: Sequence[LogDir], why_not_ready: Callable[[], str | None]) -> None:
        """``metrics``: makes the node's own metrics, which are collected on the loop; ``facts``: makes the page of its facts.
        ``why_not_ready``: None when the node is ready."""
        self._on_loop = metrics()
        self._facts = facts()
        self._in_thread = node_metrics.in_thread(log_dir.path for log_dir in dirs)
        self._dirs = dirs
        self._why_not_ready = why_not_ready

    async def stop(self) -> None:
        if self._shared is not None:
            await self._shared.close()
        await self._server.close()

    async def _metrics(self, reader: Reader) -> Answer:
        if self._on_loop is None or self._in_thread is None:
            return _unavailable(STARTING)
        families = self._on_loop.collect()
        body = await self._node.runtime.run_blocking(partial(_text, families, self._in_thread))
        return Answer(200, body, "text/plain; version=0.0.4; charset=utf-8")

    async def _page_of_facts(self, reader: Reader) -> Answer:
        return await self._facts_with(names=self._sees_names(reader))

    async def _share_record(self, reader: Reader, *, trusted: bool = False) -> Answer:
        return _unavailable(STARTING) if self._facts is None else await self._facts.share_record(reader, trusted=trusted)

    async def _facts_with(self, *, names: bool) -> Answer:
        return _unavailable(STARTING) if self._facts is None else await self._facts.answer(names=names)

    def _sees_names(self, reader: Reader) -> bool:
        return self._facts is not None and self._facts.may_see_names(reader)

    async def _health(self, reader: Reader) -> Answer:
        """503 when the node has failed; the body lists other problems."""
        node = self._node
        offline = [log_dir.path for log_dir in self._dirs if not log_dir.online]
        ready = "starting" if self._on_loop is None else "ok"
        status = "failed" if node.failed.is_set() else "degraded" if offline else ready
        body = {"status": status, "node_id": node.config.node_id, "offline_log_dirs": offline}
        return Answer(503 if status == "failed" else 200, json.dumps(body).encode() + b"\n", "application/json")

    async def _live(self, reader: Reader) -> Answer:
        """200 unless the node has failed and its process should be restarted."""
        return _unavailable("the node has failed") if self._node.failed.is_set() else Answer(200, b"live\n")

    async def _ready(self, reader: Reader) -> Answer:
        """200 when clients are served: not while the node starts, is fenced, or has failed."""
        why = "the node has failed" if self._node.failed.is_set() else self._why_not_ready()
        return Answer(200, b"ready\n") if why is None else _unavailable(why)


def _unavailable(why: str) -> Answer:
    return Answer(503, f"{why}\n".encode())


def _text(families: list[Family], in_thread: Registry) -> bytes:
    """Runs in a thread: rendering thousands of series takes longer than a request may wait."""
    from tidelog.metrics.exposition import render

    return render([*families, *in_thread.collect()])
