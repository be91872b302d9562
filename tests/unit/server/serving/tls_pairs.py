"""Both ends of a TLS connection in one process: certificates in memory, a pair of sockets."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

from tests.certificates import Authority
from tidelog.client.net.tls import show, trust
from tidelog.config.key_store_formats import KeyPair
from tidelog.config.listener_tls import tls_settings
from tidelog.server.serving.tls_listener import TlsListener
from tidelog.server.serving.tls_replacing import load

AUTHORITY = Authority()
NODE = AUTHORITY.issue("node", "localhost", "127.0.0.1")
CLIENT = AUTHORITY.issue("me")


def given(**more: str) -> dict[str, str]:
    """The settings of a listener with the certificate of ``NODE``, as texts."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": NODE.key,
        "ssl.keystore.certificate.chain": NODE.chain,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": AUTHORITY.pem,
        **{f"ssl.{name.replace('_', '.')}": value for name, value in more.items()},
    }


def listener(**more: str) -> TlsListener:
    return TlsListener(load(tls_settings(given(**more), "OUTSIDE", "SSL"))[0])


def client_context(*, shows: bool = False, trusts: bool = True) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust(context, (AUTHORITY if trusts else Authority("another")).pem)
    if shows:
        show(context, KeyPair(CLIENT.chain, CLIENT.key))
    return context


def secured_pair(
    server: ssl.SSLContext, client: ssl.SSLContext, ends: tuple[socket.socket, socket.socket] | None = None
) -> tuple[ssl.SSLSocket, ssl.SSLSocket]:
    """The listener's end and the client's, both non-blocking, after the handshake. ``ends``: connected sockets to use."""
    ours, theirs = ends or socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    one = server.wrap_socket(ours, server_side=True, do_handshake_on_connect=False)
    two = client.wrap_socket(theirs, server_hostname="localhost", do_handshake_on_connect=False)
    left = [one, two]
    for _ in range(20):
        for each in list(left):
            try:
                each.do_handshake()
            except ssl.SSLWantReadError:
                continue
            left.remove(each)
    assert not left
    return one, two


def stored(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path
