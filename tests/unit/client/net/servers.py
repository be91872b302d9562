"""Servers in a thread: what something else than a broker does, and TLS in front of one."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tidelog.testing import Broker


@contextmanager
def server(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port of a server that does this with its first connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            connection, _ = listener.accept()
            with connection:
                serve(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join(10)


@contextmanager
def tls_in_front_of(broker: Broker, certificate: Path) -> Iterator[int]:
    """TLS that ends here and goes on to the broker in the clear."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve(connection: socket.socket) -> None:
        try:
            inner = context.wrap_socket(connection, server_side=True)
        except OSError:
            return
        with inner, socket.create_connection(("127.0.0.1", broker.port)) as onward:
            while data := inner.recv(1 << 16):
                onward.sendall(data)
                inner.sendall(onward.recv(1 << 16))

    with server(serve) as port:
        yield port
