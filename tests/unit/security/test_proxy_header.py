from __future__ import annotations

import ipaddress
import random
import socket

import pytest

from tidelog.security.proxy_header import LONGEST, BadProxyHeader, ProxyHeader, parse_header

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
AFTER = b"the client's first bytes"


def line(text: str) -> bytes:
    return text.encode() + b"\r\n"


def binary(command: int, family: int, body: bytes) -> bytes:
    return SIGNATURE + bytes([command, family]) + len(body).to_bytes(2) + body


def v4(source: str = "192.0.2.7", more: bytes = b"") -> bytes:
    hosts = socket.inet_aton(source) + socket.inet_aton("192.0.2.1")
    return binary(0x21, 0x11, hosts + bytes([1, 2, 3, 4]) + more)


def v6(source: str = "2001:db8::7") -> bytes:
    hosts = ipaddress.ip_address(source).packed + ipaddress.ip_address("2001:db8::1").packed
    return binary(0x21, 0x21, hosts + bytes([1, 2, 3, 4]))


WHOLE = [
    (line("PROXY TCP4 192.0.2.7 192.0.2.1 56324 443"), "192.0.2.7"),
    (line("PROXY TCP6 2001:db8::7 2001:db8::1 0 65535"), "2001:db8::7"),
    (line("PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2"), "192.0.2.7"),
    (line(f"PROXY TCP6 {'ffff:' * 7}ffff {'ffff:' * 7}ffff 65535 65535"), "ffff:" * 7 + "ffff"),
    (line("PROXY UNKNOWN"), None),
    (line("PROXY UNKNOWN whatever it says"), None),
    (v4(), "192.0.2.7"),
    (v4(more=b"\x03\x00\x04abcd" + b"\x04\x00\x02xx"), "192.0.2.7"),
    (v6(), "2001:db8::7"),
    (v6("::ffff:192.0.2.7"), "192.0.2.7"),
    (binary(0x20, 0x00, b""), None),
    (binary(0x20, 0x11, b"junk"), None),
    (binary(0x21, 0x00, b"unspecified"), None),
    (binary(0x20, 0x31, bytes(LONGEST - 16)), None),
]


@pytest.mark.parametrize(("data", "host"), WHOLE)
def test_a_header_names_the_client_however_it_is_cut(data: bytes, host: str | None) -> None:
    assert parse_header(data) == parse_header(data + AFTER) == ProxyHeader(len(data), host)
    assert all(parse_header(data[:length]) is None for length in range(len(data)))


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0\x18\0\x12",
        b"\x16\x03\x01",
        b"PROXY\r\n",
        line("PROXY  TCP4 192.0.2.7 192.0.2.1 1 1"),
        b"proxy TCP4",
        line("PROXY "),
        line("PROXY TCP4 192.0.2.7 192.0.2.1 56324"),
        line("PROXY TCP4 192.0.2.7 192.0.2.1 56324 443 "),
        line("PROXY TCP4 192.0.2.7  192.0.2.1 443"),
        line("PROXY TCP4 192.0.2.7 192.0.2.1 56324 65536"),
        line("PROXY TCP4 192.0.2.7 192.0.2.1 056 1"),
        line("PROXY TCP4 192.0.2.7 192.0.2.1 -1 1"),
        line("PROXY TCP4 192.0.2.7 192.0.2.1 \u0661 1"),
        line("PROXY TCP4 192.0.2 192.0.2.1 1 1"),
        line("PROXY TCP4 192.0.2.07 192.0.2.1 1 1"),
        line("PROXY TCP4 2001:db8::7 192.0.2.1 1 1"),
        line("PROXY TCP6 192.0.2.7 ::1 1 1"),
        line("PROXY TCP6 fe80::1%eth0 ::1 1 1"),
        line("PROXY UDP4 192.0.2.7 192.0.2.1 1 1"),
        line("PROXY UNKNOWN" + "x" * 100),
        b"PROXY " + b"x" * 101,
        SIGNATURE[:5] + b"x",
        binary(0x11, 0x11, b"x" * 12),
        binary(0x22, 0x11, b"x" * 12),
        binary(0x21, 0x12, b"x" * 12),
        binary(0x21, 0x31, b"x" * 216),
        binary(0x21, 0x11, b"x" * 11),
        binary(0x21, 0x21, b"x" * 35),
        binary(0x20, 0x00, b"x" * (LONGEST - 15)),
    ],
)
def test_what_is_no_header_is_refused(data: bytes) -> None:
    with pytest.raises(BadProxyHeader):
        parse_header(data)


def test_a_long_header_is_refused_before_it_has_come() -> None:
    with pytest.raises(BadProxyHeader, match="are the most"):
        parse_header(SIGNATURE + b"\x21\x11\xff\xff")


def test_mutated_headers_are_refused_or_name_an_address() -> None:
    """And whatever is decided of a beginning holds for the whole."""
    rng = random.Random(15)
    refused = read = 0
    for _ in range(20_000):
        data = bytearray(rng.choice(WHOLE)[0][:200])
        for _ in range(rng.randint(1, 3)):
            kind, at = rng.randrange(3), rng.randrange(len(data))
            if kind == 0:
                data[at] = rng.randrange(256)
            elif kind == 1 and len(data) > 1:
                del data[at]
            else:
                data.insert(at, rng.choice(b" \r\n\0:.019PROXYTCP"))
        whole = bytes(data)
        try:
            found = parse_header(whole)
        except BadProxyHeader:
            refused += 1
            continue
        if found is None:
            cut = rng.randint(0, len(whole))
            assert parse_header(whole[:cut]) is None, "a beginning is not refused when the whole is not"
            continue
        read += 1
        assert 0 < found.length <= len(whole)
        assert found == parse_header(whole[: found.length])
        assert parse_header(whole[: found.length - 1]) is None
        if found.host is not None:
            ipaddress.ip_address(found.host)
    assert refused > 1000 and read > 1000
