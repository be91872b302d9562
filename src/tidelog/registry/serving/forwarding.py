"""A write that reached a registry which does not lead goes on to the one that does, once, with the client's own credentials."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.registry.errors import RegistryError
from tidelog.registry.serving.election import Identity

FORWARD_S = 60.0
MAX_ANSWER = 64 << 20
_KEPT = ("accept", "authorization", "content-type", "confluent-accept-unknown-properties", "x-request-id")


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The leader's answer."""

    status: int
    content_type: str
    body: bytes


class Forwarding:
    """``authority``: the file with the authority of the leader's certificate; None for the system's."""

    def __init__(self, authority: str | None) -> None:
        self._authority = authority

    async def send(self, leader: Identity, method: str, target: str, headers: Mapping[bytes, bytes], body: bytes) -> Forwarded:
        """50003 when the leader does not answer."""
        kept = {name: headers[name.encode()].decode("latin-1") for name in _KEPT if name.encode() in headers}
        try:
            return await asyncio.to_thread(self._send, leader, method, target, kept | {"X-Forward": "true"}, body)
        except (OSError, http.client.HTTPException, ssl.SSLError) as problem:
            why = f"{leader.url} does not answer: {problem}"
            raise RegistryError(500, 50003, f"The request could not be forwarded: {why}") from problem

    def _send(self, leader: Identity, method: str, target: str, headers: dict[str, str], body: bytes) -> Forwarded:
        connection: http.client.HTTPConnection
        if leader.scheme == "https":
            context = ssl.create_default_context(cafile=self._authority)
            connection = http.client.HTTPSConnection(leader.host, leader.port, timeout=FORWARD_S, context=context)
        else:
            connection = http.client.HTTPConnection(leader.host, leader.port, timeout=FORWARD_S)
        try:
            connection.request(method, target, body or None, headers)
            answer = connection.getresponse()
            found = answer.read(MAX_ANSWER)
            return Forwarded(answer.status, answer.headers.get("content-type", "application/json"), found)
        finally:
            connection.close()
