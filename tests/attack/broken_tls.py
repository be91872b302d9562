"""TLS handshakes that are broken in one way each, sent by tlslite-ng, which lets us change every message before it leaves.

A case changes what goes to the record layer: (content type, bytes) in, a list of those out. The client believes that it sent the
right bytes, so its transcript differs from the node's where that matters.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tlslite.api import HandshakeSettings, TLSConnection, X509CertChain, parsePEMKey
from tlslite.errors import TLSAbruptCloseError, TLSAlert, TLSError, TLSRemoteAlert
from tlslite.extensions import TLSExtension
from tlslite.messages import ClientHello, Message
from tlslite.utils.codec import Parser

CCS, ALERT, HANDSHAKE, DATA, HEARTBEAT = 20, 21, 22, 23, 24
CLIENT_HELLO, CERTIFICATE, CERTIFICATE_VERIFY, CLIENT_KEY_EXCHANGE, FINISHED = 1, 11, 15, 16, 20
SNI, STATUS, GROUPS, SIGNATURES, ALPN, EMS, PSK, VERSIONS, PSK_MODES, SHARES, RENEGOTIATION = (
    0,
    5,
    10,
    13,
    16,
    23,
    41,
    43,
    45,
    51,
    0xFF01,
)
API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000007 ffff")
PATIENCE_S = 15

Record = tuple[int, bytes]
Change = Callable[[int, bytes], list[Record]]


@dataclass
class Case:
    """One way to break a handshake."""

    name: str
    change: Change
    versions: tuple[tuple[int, int], ...] = ((3, 3), (3, 4))
    shows: bool = False
    """Whether the client has a certificate, and goes to the listener that requires one."""
    raw: bytes | None = None
    """Sent instead of a handshake."""
    groups: tuple[str, ...] = field(default=("secp256r1",))
    waits: bool = False
    """Whether the node may wait for more, until the time for a handshake is over."""


class Breaking(TLSConnection):  # type: ignore[misc]
    """A client that sends other bytes than it believes."""

    def __init__(self, sock: socket.socket, change: Change) -> None:
        super().__init__(sock)
        self._change = change

    def _sendMsgThroughSocket(self, msg: Any) -> Iterator[Any]:
        for kind, data in self._change(msg.contentType, bytes(msg.write())):
            yield from super()._sendMsgThroughSocket(Message(kind, bytearray(data)))


def outcome(port: int, case: Case, pair: tuple[str, str]) -> str:
    """How the node ended the connection: ``alert NUMBER``, or ``closed``. AssertionError when it served the client, TimeoutError
    when it did neither. ``pair``: certificates and key of the client, in PEM."""
    plain = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    plain.settimeout(PATIENCE_S)
    with plain:
        if case.raw is not None:
            return raw_outcome(plain, case.raw)
        connection = Breaking(plain, case.change)
        settings = HandshakeSettings()
        settings.minVersion, settings.maxVersion = case.versions
        settings.eccCurves = list(case.groups)
        settings.keyShares = list(case.groups)
        # It sends its certificate compressed without being asked, which OpenSSL 3.0 does not know.
        settings.certificate_compression_send = []
        chain, key = None, None
        if case.shows:
            chain = X509CertChain()
            chain.parsePemList(pair[0])
            key = parsePEMKey(pair[1], private=True)
        try:
            connection.handshakeClientCert(chain, key, settings=settings, serverName="localhost")
            connection.sendall(API_VERSIONS)
            served = connection.recv(4)
        except TLSRemoteAlert as alert:
            return f"alert {alert.description}"
        except TLSAlert as alert:
            raise AssertionError(f"{case.name}: the client gave up by itself: {alert}") from alert
        except (TLSAbruptCloseError, ConnectionError):
            return "closed"
        except TLSError as error:
            raise AssertionError(f"{case.name}: the client gave up by itself: {error!r}") from error
        assert not served, f"{case.name}: the node served the client"
        return "closed"


def raw_outcome(plain: socket.socket, data: bytes) -> str:
    try:
        plain.sendall(data)
        answer = plain.recv(7)
    except ConnectionError:
        return "closed"
    if answer[:1] == bytes([ALERT]) and len(answer) == 7:
        return f"alert {answer[6]}"
    assert not answer, f"the node answered {answer.hex()}"
    return "closed"


# -- what a case changes -------------------------------------------------------------------------------------------------


def same(kind: int, data: bytes) -> list[Record]:
    return [(kind, data)]


def of_message(number: int, changed: Callable[[bytes], list[Record]]) -> Change:
    """Changes the handshake messages with this number; ``changed`` gets the message with its header."""
    return lambda kind, data: changed(data) if (kind, data[:1]) == (HANDSHAKE, bytes([number])) else [(kind, data)]


def hello(changed: Callable[[Any], None]) -> Change:
    """Changes the parts of the ClientHello."""

    def rewritten(data: bytes) -> list[Record]:
        parsed = ClientHello().parse(Parser(bytearray(data[1:])))
        changed(parsed)
        return [(HANDSHAKE, bytes(parsed.write()))]

    return of_message(CLIENT_HELLO, rewritten)


def hello_bytes(changed: Callable[[bytearray], bytes | bytearray | None]) -> Change:
    """Changes the ClientHello with its header, byte by byte."""

    def rewritten(data: bytes) -> list[Record]:
        made = bytearray(data)
        return [(HANDSHAKE, bytes(changed(made) or made))]

    return of_message(CLIENT_HELLO, rewritten)


def extension(number: int, *contents: bytes) -> Change:
    """The ClientHello with these instead of its extension of that number; without any: none."""

    def changed(parsed: Any) -> None:
        kept = [each for each in parsed.extensions if each.extType != number]
        parsed.extensions = kept + [TLSExtension(extType=number).create(number, bytearray(each)) for each in contents]

    return hello(changed)


def set_to(**values: Any) -> Change:
    """The ClientHello with other values of these attributes."""

    def changed(parsed: Any) -> None:
        for name, value in values.items():
            setattr(parsed, name, value)

    return hello(changed)


def flipped(data: bytes) -> list[Record]:
    """With another last byte."""
    return [(HANDSHAKE, data[:-1] + bytes([data[-1] ^ 1]))]


def shortened(data: bytes) -> list[Record]:
    return [(HANDSHAKE, data[:1] + (len(data) - 5).to_bytes(3) + data[4:-1])]


def without(*numbers: int) -> Change:
    """The handshake without these messages."""
    return lambda kind, data: [] if kind == HANDSHAKE and data[0] in numbers else [(kind, data)]


def before(number: int, *records: Record) -> Change:
    """These records, then the handshake message with that number."""
    return of_message(number, lambda data: [*records, (HANDSHAKE, data)])


def instead(number: int, *records: Record) -> Change:
    return of_message(number, lambda data: list(records))


def key_share(group: int, point: bytes, times: int = 1) -> bytes:
    entry = group.to_bytes(2) + len(point).to_bytes(2) + point
    return (len(entry) * times).to_bytes(2) + entry * times


def with_byte(at: int, value: bytes) -> Change:
    """The ClientHello with these bytes at that place, counted from its header."""

    def changed(data: bytearray) -> None:
        data[at : at + len(value)] = value

    return hello_bytes(changed)


def beyond(data: bytearray) -> bytes:
    """Extensions of 65,535 bytes, which are not there."""
    parsed = ClientHello().parse(Parser(data[1:]))
    at = 4 + 2 + 32 + 1 + len(parsed.session_id) + 2 + 2 * len(parsed.cipher_suites) + 1 + len(parsed.compression_methods)
    return bytes(data[:at]) + b"\xff\xff" + bytes(data[at + 2 :])


def longer(data: bytearray) -> bytes:
    """Bytes after the extensions, counted by the header."""
    return bytes(data[:1]) + (len(data) - 4 + 9).to_bytes(3) + bytes(data[4:]) + b"\xab" * 9


TLS_1_2, TLS_1_3 = (((3, 3), (3, 3)), ((3, 4), (3, 4)))
P_256, X25519 = 23, 29
POINT = b"\x04" + bytes(64)


def hellos() -> list[Case]:
    """Those that the first flight breaks."""
    return [
        Case("no cipher suites", set_to(cipher_suites=[])),
        Case("only unknown cipher suites", set_to(cipher_suites=[0xFAFA, 0x00FE]), TLS_1_2),
        Case("only the signal for renegotiation as a cipher suite", set_to(cipher_suites=[0x00FF]), TLS_1_2),
        Case("a cipher suite of 1.2 in 1.3", set_to(cipher_suites=[0xC02B]), TLS_1_3),
        Case("no compression method", set_to(compression_methods=[])),
        Case("only deflate as compression method", set_to(compression_methods=[1])),
        Case("deflate and none in 1.3", set_to(compression_methods=[1, 0]), TLS_1_3),
        Case("a session id of 33 bytes", set_to(session_id=bytearray(33))),
        Case("version SSL 3", set_to(client_version=(3, 0)), TLS_1_2),
        Case("version 1.0", set_to(client_version=(3, 1)), TLS_1_2),
        Case("version 0.0", set_to(client_version=(0, 0)), TLS_1_2),
        Case("an empty list of versions", extension(VERSIONS, b"\0"), TLS_1_3),
        Case("a version list of an odd length", extension(VERSIONS, b"\3\3\4\3"), TLS_1_3),
        Case("only an unknown version", extension(VERSIONS, b"\2\x7f\0"), TLS_1_3),
        Case("only TLS 1.0 in the list", extension(VERSIONS, b"\2\3\1"), TLS_1_3),
        Case("no key share", extension(SHARES), TLS_1_3),
        Case("the same key share twice", extension(SHARES, key_share(P_256, POINT, 2)), TLS_1_3),
        Case("a key share outside of the curve", extension(SHARES, key_share(P_256, POINT)), TLS_1_3),
        Case("a key share that is too short", extension(SHARES, key_share(P_256, b"\4\1")), TLS_1_3),
        Case("an empty key share", extension(SHARES, key_share(P_256, b"")), TLS_1_3),
        Case("a key share of zeros on x25519", extension(SHARES, key_share(X25519, bytes(32))), TLS_1_3, groups=("x25519",)),
        Case("key shares with a length beyond the end", extension(SHARES, b"\xff\xff\0\x17\0\1x"), TLS_1_3),
        Case("no groups", extension(GROUPS), TLS_1_3),
        Case("an empty list of groups", extension(GROUPS, b"\0\0")),
        Case("a list of groups of an odd length", extension(GROUPS, b"\0\3\0\x17\0")),
        Case("no signature algorithms", extension(SIGNATURES), TLS_1_3),
        Case("an empty list of signature algorithms", extension(SIGNATURES, b"\0\0")),
        Case("only signatures with MD5", extension(SIGNATURES, b"\0\2\1\1")),
        Case("an extension twice", extension(SIGNATURES, b"\0\2\4\3", b"\0\2\4\3")),
        Case("an empty list of server names", extension(SNI, b"\0\0")),
        Case("a server name with a NUL", extension(SNI, b"\0\7\0\0\4lo\0c")),
        Case("a list of server names that is too long", extension(SNI, b"\0\xff\0\0\4loca")),
        Case("an empty list of protocols", extension(ALPN, b"\0\0")),
        Case("an empty protocol name", extension(ALPN, b"\0\1\0")),
        Case("a certificate status of half a length", extension(STATUS, b"\1\0")),
        Case("a renegotiation in the first handshake", extension(RENEGOTIATION, b"\x0cabcdefghijkl"), TLS_1_2),
        Case("extensions that end beyond the message", hello_bytes(beyond)),
        Case("bytes behind the extensions", hello_bytes(longer)),
        Case("a length of 16 MiB", with_byte(1, b"\xff\xff\xff")),
        Case("a length that ends too soon", with_byte(1, b"\0\0\x20")),
        Case("a length of zero", with_byte(1, b"\0\0\0")),
        Case("a ServerHello", with_byte(0, b"\2")),
        Case("a HelloRequest", with_byte(0, b"\0")),
        Case("a Finished", with_byte(0, b"\x14")),
        Case("a message that does not exist", with_byte(0, b"\xfa")),
        Case("application data first", instead(CLIENT_HELLO, (DATA, b"hello"))),
        Case("a heartbeat first", instead(CLIENT_HELLO, (HEARTBEAT, b"\1\xff\xff" + bytes(20)))),
        Case("a fatal alert first", instead(CLIENT_HELLO, (ALERT, b"\2\x28"))),
        Case("half an alert first", instead(CLIENT_HELLO, (ALERT, b"\2"))),
        Case("an empty record first", instead(CLIENT_HELLO, (HANDSHAKE, b"")), waits=True),
        Case("a change of the cipher first", instead(CLIENT_HELLO, (CCS, b"\1")), TLS_1_2),
    ]


def flights() -> list[Case]:
    """Those that a later flight breaks."""
    data = (DATA, b"\0\0\0\x0a\0\x12\0\0\0\0\0\x07\xff\xff")
    return [
        Case("1.3: a Finished with another last byte", of_message(FINISHED, flipped), TLS_1_3),
        Case("1.3: a Finished without its last byte", of_message(FINISHED, shortened), TLS_1_3),
        Case("1.3: no Finished", without(FINISHED), TLS_1_3),
        Case("1.3: data before Finished", before(FINISHED, data), TLS_1_3),
        Case("1.3: a ClientHello instead of Finished", instead(FINISHED, (HANDSHAKE, b"\1\0\0\1x")), TLS_1_3),
        Case("1.3: a KeyUpdate instead of Finished", instead(FINISHED, (HANDSHAKE, b"\x18\0\0\1\0")), TLS_1_3),
        Case("1.3: an alert instead of Finished", instead(FINISHED, (ALERT, b"\2\x28")), TLS_1_3),
        Case(
            "1.3: no certificate where one is required", instead(CERTIFICATE, (HANDSHAKE, b"\x0b\0\0\4\0\0\0\0")), TLS_1_3, True
        ),
        Case(
            "1.3: a certificate of noise",
            instead(CERTIFICATE, (HANDSHAKE, b"\x0b\0\0\x0c\0\0\0\x08\0\0\3abc\0\0")),
            TLS_1_3,
            True,
        ),
        Case("1.3: no CertificateVerify", without(CERTIFICATE_VERIFY), TLS_1_3, True),
        Case("1.3: a CertificateVerify with another last byte", of_message(CERTIFICATE_VERIFY, flipped), TLS_1_3, True),
        Case("1.3: neither certificate nor CertificateVerify", without(CERTIFICATE, CERTIFICATE_VERIFY), TLS_1_3, True),
        Case("1.2: a Finished with another last byte", of_message(FINISHED, flipped), TLS_1_2),
        Case("1.2: a Finished without its last byte", of_message(FINISHED, shortened), TLS_1_2),
        Case("1.2: a change of the cipher before the keys", before(CLIENT_KEY_EXCHANGE, (CCS, b"\1")), TLS_1_2),
        Case("1.2: keys twice", of_message(CLIENT_KEY_EXCHANGE, lambda data: [(HANDSHAKE, data)] * 2), TLS_1_2),
        Case("1.2: no keys", without(CLIENT_KEY_EXCHANGE), TLS_1_2),
        Case("1.2: keys of zero bytes", instead(CLIENT_KEY_EXCHANGE, (HANDSHAKE, b"\x10\0\0\0")), TLS_1_2),
        Case("1.2: keys outside of the curve", instead(CLIENT_KEY_EXCHANGE, (HANDSHAKE, b"\x10\0\0\x42\x41" + POINT)), TLS_1_2),
        Case("1.2: a change of the cipher to 2", lambda kind, sent: [(kind, b"\2" if kind == CCS else sent)], TLS_1_2),
        Case("1.2: no change of the cipher", lambda kind, sent: [] if kind == CCS else [(kind, sent)], TLS_1_2),
        Case("1.2: data instead of the keys", instead(CLIENT_KEY_EXCHANGE, data), TLS_1_2),
        Case("1.2: a CertificateVerify with another last byte", of_message(CERTIFICATE_VERIFY, flipped), TLS_1_2, True),
        Case("1.2: no CertificateVerify", without(CERTIFICATE_VERIFY), TLS_1_2, True),
        Case("1.2: no certificate where one is required", instead(CERTIFICATE, (HANDSHAKE, b"\x0b\0\0\3\0\0\0")), TLS_1_2, True),
    ]


def raws() -> list[Case]:
    """Those that are no records of a client at all."""
    many = {
        "an SSL 2 hello": bytes.fromhex("802e 01 0002 0015 0000 0010 010080 020080 030080 040080 050080 060040 0700c0")
        + bytes(16),
        "a record of version 0": b"\x16\0\0\0\5\1\0\0\1x",
        "a record of version 5.5": b"\x16\5\5\0\5\1\0\0\1x",
        "a record of 65,535 bytes": b"\x16\3\1\xff\xff" + bytes(20_000),
        "a thousand empty records": b"\x16\3\1\0\0" * 1000,
        "a thousand warnings": b"\x16\3\1\0\1\1" + b"\x15\3\1\0\2\1\0" * 1000,
        "a thousand changes of the cipher": b"\x16\3\1\0\1\1" + b"\x14\3\3\0\1\1" * 1000,
        "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a Kafka request": API_VERSIONS,
    }
    return [Case(name, same, raw=data) for name, data in many.items()]


def cases() -> list[Case]:
    return [*hellos(), *flights(), *raws()]
