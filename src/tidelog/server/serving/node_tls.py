"""All TLS of one node: its listeners, its connections to those of other nodes, and new certificates for both while it runs.

Files are looked at every five seconds: a new certificate needs no restart and no command. Dynamic settings
(``listener.name.<listener>.ssl.keystore.*``, ``ssl.truststore.*``) are checked before they are stored. New stores that may not
replace the old ones are refused and named in the log; the old ones stay. Open connections keep what they began with.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import ssl
from collections.abc import Callable, Mapping

from tidelog.config.broker_security import TLS_PROTOCOLS
from tidelog.config.listener_tls import TlsSettings, serving_tls, tls_settings
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.tls_context import client_context
from tidelog.server.serving.tls_listener import TlsListener
from tidelog.server.serving.tls_replacing import Loaded, Signature, check_replacement, load, signature

log = logging.getLogger(__name__)

DAY_MS = 86_400_000
WARN_DAYS = (30, 7, 1, 0)
"""A certificate that ends within so many days is named in the log, once for each; 0: it has ended."""


class TlsClient:
    """How this node speaks TLS to a listener of other nodes."""

    def __init__(self, loaded: Loaded) -> None:
        """ConfigError for stores that OpenSSL refuses."""
        self.context: ssl.SSLContext = client_context(loaded.settings, loaded.stores)

    def take(self, loaded: Loaded) -> None:
        """Uses these stores from the next connection on. ConfigError; then the old ones stay."""
        self.context = client_context(loaded.settings, loaded.stores)


class Slot:
    """The stores of one listener name, and what uses them."""

    def __init__(self, loaded: Loaded, seen: Signature) -> None:
        self.loaded = loaded
        self.seen = seen
        """Of the files as they were last looked at, good or bad."""
        self.listener: TlsListener | None = None
        self.client: TlsClient | None = None
        self.warned_days: int | None = None

    @property
    def between_nodes(self) -> bool:
        return self.listener is not None and self.client is not None

    def take(self, loaded: Loaded, seen: Signature) -> None:
        """Uses these stores from now on. ConfigError for stores that OpenSSL refuses."""
        for user in (self.listener, self.client):
            if user is not None:
                user.take(loaded)
        self.loaded, self.seen = loaded, seen


class NodeTls:
    """Made once for each node; making a listener or client reads its stores, which blocks."""

    def __init__(self, config: BrokerConfig, runtime: LoopRuntime, first: Mapping[str, str]) -> None:
        """``first``: this node's dynamic settings in the metadata that it has on disk, until ``adopt`` is called."""
        self._config = config
        self._runtime = runtime
        self._first = dict(first)
        self._turn = asyncio.Lock()
        self.slots: dict[str, Slot] = {}

    def listener(self, name: str) -> TlsListener | None:
        """For this node's own listener; None for one in plain text. ConfigError."""
        if self._protocol(name) not in TLS_PROTOCOLS:
            return None
        serving_tls(self._given(), name, self._protocol(name))
        slot = self._slot(name)
        slot.listener = TlsListener(slot.loaded)
        return slot.listener

    def towards(self, name: str) -> TlsClient | None:
        """For connections to this listener of other nodes; None for plain text. ConfigError."""
        if self._protocol(name) not in TLS_PROTOCOLS:
            return None
        slot = self._slot(name)
        slot.client = slot.client or TlsClient(slot.loaded)
        return slot.client

    def expiries(self) -> dict[str, int]:
        """The end of each listener's certificate, in ms since 1970."""
        found = ((name, slot.loaded.certificate) for name, slot in self.slots.items() if slot.listener is not None)
        return {name: certificate.not_after_ms for name, certificate in found if certificate is not None}

    def adopt(self) -> None:
        """The node starts, and its dynamic settings are known: uses them without comparing them with others. ConfigError."""
        self._first = {}
        for name, slot in self.slots.items():
            settings = self._settings(self._given(), name)
            if settings != slot.loaded.settings:
                slot.take(*load(settings))

    def check(self, dynamic: Mapping[str, str]) -> None:
        """Whether these could be this broker's dynamic settings. ConfigError. Blocks."""
        self._changes({**self._config.static, **dynamic})

    def step(self) -> None:
        """Called every five seconds: looks for new files, and warns of certificates that end."""
        for name, slot in self.slots.items():
            warn_of_end(name, slot, self._runtime.now_ms())
        if not self._turn.locked():
            self._runtime.spawn(self._replace(self._changed_files), "TLS stores")

    def follow(self) -> None:
        """This node's dynamic settings have changed."""
        self._runtime.spawn(self._replace(lambda: self._changes(self._given())), "TLS settings")

    # -- new stores -------------------------------------------------------------------------------------------------------

    async def _replace(self, find: Callable[[], dict[str, tuple[Loaded, Signature]]]) -> None:
        async with self._turn:
            try:
                found = await self._runtime.run_blocking(find)
                for name, (loaded, seen) in found.items():
                    self.slots[name].take(loaded, seen)
                    until = "" if loaded.certificate is None else f", valid until {_date(loaded.certificate.not_after_ms)}"
                    log.info("listener %s has new key and trust stores%s", name, until)
            except ConfigError as problem:
                log.error("the former key and trust stores stay: %s", problem)

    def _changed_files(self) -> dict[str, tuple[Loaded, Signature]]:
        """The slots whose files have changed. One that cannot be used is logged, and looked at again when it changes again."""
        found = {}
        for name, slot in self.slots.items():
            if signature(slot.loaded.settings) == slot.seen:
                continue
            try:
                loaded, slot.seen = load(slot.loaded.settings)
                if loaded.stores != slot.loaded.stores:
                    check_replacement(slot.loaded, loaded, between_nodes=slot.between_nodes)
                    found[name] = loaded, slot.seen
            except ConfigError as problem:
                slot.seen = signature(slot.loaded.settings)
                log.error("the former key and trust stores stay: %s", problem)
        return found

    def _changes(self, given: Mapping[str, str]) -> dict[str, tuple[Loaded, Signature]]:
        """The slots whose settings have changed. ConfigError when one of them may not change in this way."""
        found = {}
        for name, slot in self.slots.items():
            settings = self._settings(given, name)
            if settings != slot.loaded.settings:
                loaded, seen = load(settings)
                check_replacement(slot.loaded, loaded, between_nodes=slot.between_nodes)
                found[name] = loaded, seen
        return found

    # -- settings ---------------------------------------------------------------------------------------------------------

    def _slot(self, name: str) -> Slot:
        if name not in self.slots:
            self.slots[name] = Slot(*load(self._settings(self._given(), name)))
        return self.slots[name]

    def _settings(self, given: Mapping[str, str], name: str) -> TlsSettings:
        return tls_settings(given, name, self._protocol(name))

    def _protocol(self, name: str) -> str:
        return self._config.protocol_map.get(name, "PLAINTEXT")

    def _given(self) -> dict[str, str]:
        return {**self._config.static, **self._first, **self._config.dynamic_broker}


def warn_of_end(name: str, slot: Slot, now_ms: int) -> None:
    """Logs that a certificate ends soon, or has ended."""
    certificate = slot.loaded.certificate
    if certificate is None:
        return
    left_ms = certificate.not_after_ms - now_ms
    due = min((days for days in WARN_DAYS if left_ms <= days * DAY_MS), default=None)
    if due is not None and (slot.warned_days is None or due < slot.warned_days):
        when = _date(certificate.not_after_ms)
        if left_ms <= 0:
            log.error("listener %s: the certificate of %s has ended on %s", name, certificate.subject, when)
        else:
            days = left_ms // DAY_MS
            log.warning("listener %s: the certificate of %s ends in %d days, on %s", name, certificate.subject, days, when)
    slot.warned_days = due


def _date(time_ms: int) -> str:
    return datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
