"""Frames and blocking sockets of clients that log in, rightly or wrongly."""

from __future__ import annotations

import socket
import ssl
import struct

from tidelog.protocol.framing import RequestHeader, encode_request
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tidelog.protocol.messages.sasl_handshake import SaslHandshakeRequest

METADATA = encode_request(RequestHeader(3, 9, 5, "attack"), MetadataRequest(topics=[]))
ERROR_AT = 9
"""Of the error code in a SaslAuthenticate answer of version 2: after the size, the correlation id and the header's tags."""


def handshake(mechanism: str) -> bytes:
    return encode_request(RequestHeader(17, 1, 1, "attack"), SaslHandshakeRequest(mechanism=mechanism))


def authenticate(token: bytes) -> bytes:
    return encode_request(RequestHeader(36, 2, 2, "attack"), SaslAuthenticateRequest(auth_bytes=token))


def plain(user: str, password: str) -> bytes:
    return authenticate(f"\0{user}\0{password}".encode())


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def answer(connection: socket.socket) -> bytes:
    """One frame, with its size. ConnectionError at the end of the stream."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("the node closed the connection")
        data += part
    return data


def log_in(port: int, user: str, password: str, tls: ssl.SSLContext | None = None) -> socket.socket:
    """A connection whose client has authenticated with PLAIN. OSError, AssertionError."""
    connection = connect(port)
    if tls is not None:
        connection = tls.wrap_socket(connection, server_hostname="localhost")
    connection.sendall(handshake("PLAIN"))
    answer(connection)
    connection.sendall(plain(user, password))
    told = answer(connection)
    assert told[ERROR_AT : ERROR_AT + 2] == b"\0\0", told
    return connection
