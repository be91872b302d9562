"""Ends the sessions of SCRAM users whose credential was removed or changed (``tidelog.scram.changes.end.sessions``).

Apache Kafka leaves them open. A connection that logged in by such a credential is closed once the request in flight is answered;
connections of the same user by another mechanism stay. A request that takes long, such as a fetch that waits for hours, is not
waited for longer than ``LATEST_S``. Every node does this when it reads the change.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tidelog.security.scram import ScramMechanism
from tidelog.server.serving.listener import Listener

if TYPE_CHECKING:
    from tidelog.metadata.delta import ClusterDelta
    from tidelog.metadata.image import ClusterImage

log = logging.getLogger(__name__)

LATEST_S = 5.0
"""A client chooses how long its fetch waits, and would get the records of that time."""


class SessionEnding:
    """Follows the metadata for the listeners of one node."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def add(self, listener: Listener) -> None:
        """Ends sessions on this listener, too."""
        self._listeners.append(listener)

    def follow(self, old: ClusterImage, new: ClusterImage, delta: ClusterDelta | None) -> None:
        """Takes a committed image; without ``delta`` anything may have changed."""
        if old.scram is new.scram:
            return
        touched = old.scram if delta is None else delta.security.scram.touched
        titles = {kind.value: kind.title for kind in ScramMechanism}
        changed = {
            (name, titles[kind])
            for name, kind in touched
            if (name, kind) in old.scram and kind in titles and old.scram[name, kind] != new.scram.get((name, kind))
        }
        if not changed:
            return
        for listener in self._listeners:
            for connection in list(listener.connections):
                if connection.authentication is not None and connection.authentication.credential in changed:
                    log.info(
                        "listener %s: closing the connection of %s, because its user's credential was changed or removed",
                        listener.name,
                        connection.peer_host,
                    )
                    connection.machine.drain()
                    listener.runtime.call_later(LATEST_S, connection.close)
