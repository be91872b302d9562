"""May new stores take the place of those that a listener uses: asked before a change, with the answer that the old ones stay.

The rules are Kafka's (KIP-226): a certificate keeps its owner's name and all of its other names unless the settings allow
changes, a store neither appears nor vanishes, and nodes with the old stores and nodes with the new ones must trust each other.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import replace
from typing import NamedTuple

from tidelog.config.listener_tls import TlsSettings
from tidelog.model.errors import ConfigError
from tidelog.security.certificates import Certificate
from tidelog.server.secret_files import warn_of_readers
from tidelog.server.serving.tls_context import Stores, certificate_of, client_context, read_stores, server_context

ROUNDS = 20
"""More than a handshake takes."""
Signature = tuple[tuple[str, int, int, int], ...]
"""Path, inode, time of the last change in ns and size of each file."""


class Loaded(NamedTuple):
    """Settings and what their stores hold."""

    settings: TlsSettings
    stores: Stores
    certificate: Certificate | None
    """The key's own; None without a key."""


def load(settings: TlsSettings) -> tuple[Loaded, Signature]:
    """Reads the stores, which blocks; with the signature of the files before. ConfigError."""
    seen = signature(settings)
    stores = read_stores(settings)
    if settings.keys is not None and settings.keys.location is not None:
        warn_of_readers(settings.keys.location)
    return Loaded(settings, stores, None if stores.pair is None else certificate_of(settings, stores.pair)), seen


def signature(settings: TlsSettings) -> Signature:
    """Changes when a file changes, or a link to it; zeros for one that is missing. Blocks."""
    found = []
    for store in (settings.keys, settings.trusted):
        if store is not None and store.location is not None:
            try:
                stat = os.stat(store.location)
            except OSError:
                found.append((store.location, 0, 0, 0))
            else:
                found.append((store.location, stat.st_ino, stat.st_mtime_ns, stat.st_size))
    return tuple(found)


def check_replacement(old: Loaded, new: Loaded, *, between_nodes: bool) -> None:
    """ConfigError when ``new`` may not replace ``old``. ``between_nodes``: other nodes connect to the listener."""
    where = f"listener {old.settings.listener}"
    if replace(new.settings, keys=old.settings.keys, trusted=old.settings.trusted) != old.settings:
        raise ConfigError(f"{where}: only key stores and trust stores change while a node runs. Change the file, and restart.")
    for store, before, after in (
        ("keystore", old.settings.keys, new.settings.keys),
        ("truststore", old.settings.trusted, new.settings.trusted),
    ):
        if (before is None) != (after is None):
            raise ConfigError(f"{where}: ssl.{store} cannot be {'added' if before is None else 'removed'} while the node runs.")
    if old.certificate is not None and new.certificate is not None:
        _check_names(where, old, old.certificate, new.certificate)
    try:
        _check_handshakes(old, new, between_nodes=between_nodes)
    except (ssl.SSLError, OSError) as problem:
        raise ConfigError(
            f"{where}: nodes with the old and nodes with the new stores would not trust each other ({problem}). Add the new "
            "authority to the trust stores first."
        ) from None


def _check_names(where: str, old: Loaded, before: Certificate, after: Certificate) -> None:
    if after.subject != before.subject and not old.settings.allow_dn_changes:
        raise ConfigError(
            f"{where}: the new certificate is that of {after.subject}, and the old one that of {before.subject}. "
            "ssl.allow.dn.changes=true allows it."
        )
    if not after.alternative_names >= before.alternative_names and not old.settings.allow_san_changes:
        raise ConfigError(
            f"{where}: the new certificate lacks subject alternative names of the old one. ssl.allow.san.changes=true allows it."
        )


def _check_handshakes(old: Loaded, new: Loaded, *, between_nodes: bool) -> None:
    """Builds what the listener would use; for one between nodes each side is tried against the other's old form."""
    if new.stores.pair is not None:
        server_context(new.settings, new.stores)
    client_context(new.settings, new.stores)
    if not between_nodes or new.stores.pair is None or old.stores.pair is None:
        return
    for server, client in ((old, new), (new, old), (new, new)):
        unnamed = replace(client.settings, verify_hostname=False)
        shake_hands(server_context(server.settings, server.stores), client_context(unnamed, client.stores))


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """A handshake in memory, without names. ssl.SSLError when one side refuses the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = server.wrap_bio(to_server, to_client, server_side=True)
    two = client.wrap_bio(to_client, to_server)
    left = [two, one]
    for _ in range(ROUNDS):
        for side in list(left):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            left.remove(side)
    if left:
        raise ssl.SSLError("the handshake does not end")
