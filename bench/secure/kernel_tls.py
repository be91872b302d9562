"""Whether TLS could be left to the kernel here: what the system says, in one sentence."""

from __future__ import annotations

import errno
import socket
import ssl

_TCP_ULP = 31
_ENABLE_KTLS = 1 << 3
"""OpenSSL's SSL_OP_ENABLE_KTLS; Python names it from 3.12 on."""


def kernel_tls() -> str:
    """Tries TCP's upper layer protocol ``tls`` on a connection of its own."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, _TCP_ULP, b"tls")
            found = "the kernel has it"
        except OSError as error:
            found = f"the kernel does not have it (TCP_ULP tls: {errno.errorcode.get(error.errno or 0, error)})"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= _ENABLE_KTLS
    kept = "keeps" if context.options & _ENABLE_KTLS else "drops"
    return f"Kernel TLS: {found}; {ssl.OPENSSL_VERSION} {kept} the option SSL_OP_ENABLE_KTLS."
