"""How this node opens a connection to another one: TLS and its own login where the listener has them, and versions."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, NamedTuple

from tidelog.client.connection_opening import authentication, versions
from tidelog.client.failures import NotAuthenticated
from tidelog.client.net.async_connection import Line
from tidelog.config.listeners import address_text
from tidelog.server.runtime import LoopRuntime

if TYPE_CHECKING:
    from tidelog.client.settings import Sasl
    from tidelog.server.serving.node_tls import TlsClient

NONCE_BYTES = 24


class NodeLogin(NamedTuple):
    """What a listener of other nodes asks of this one."""

    sasl: Sasl | None = None
    tls: TlsClient | None = None


PLAIN_TEXT = NodeLogin()


async def open_line(runtime: LoopRuntime, line: Line, login: NodeLogin, host: str, port: int, address: str) -> None:
    """Connects ``line`` to ``address``, which is that of ``host``. OSError or ProtocolViolation when the connection ends,
    NotAuthenticated when one of the nodes refuses the other."""
    loop, where = runtime.loop, address_text(host, port)
    try:
        if login.tls is None:
            await loop.create_connection(lambda: line, address, port)
        else:
            await loop.create_connection(lambda: line, address, port, ssl=login.tls.context, server_hostname=host)
        await line.converse(versions(line.machine), loop)
    except ssl.SSLCertVerificationError as error:
        raise NotAuthenticated(
            f"the certificate of {where} is not trusted: {error.verify_message} (ssl.truststore.*; the names in it must hold "
            "the advertised one, unless ssl.endpoint.identification.algorithm is empty)"
        ) from error
    except ssl.SSLError as error:
        # In TLS 1.3 the refusal of a certificate comes after the handshake.
        reason = (error.reason or str(error)).replace("_", " ").lower()
        raise NotAuthenticated(f"no TLS with {where}: {reason}") from error
    if login.sasl is not None:
        import secrets  # Only where nodes log in.

        await line.converse(authentication(line.machine, login.sasl, where, secrets.token_urlsafe(NONCE_BYTES)), loop)
