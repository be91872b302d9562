from __future__ import annotations

import pytest

from tidelog.console.web.addresses import client_address, networks
from tidelog.model.errors import ConfigError

OURS = networks(["10.0.0.0/8", "::1"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.1"], "192.0.2.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["made-up, 203.0.113.9, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["203.0.113.9", "198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("::1", ["2001:db8::1"], "2001:db8::1"),
        ("10.0.0.1", ["made-up"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, made-up"], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.3"], "10.0.0.3"),
        ("", ["198.51.100.1"], ""),
        ("10.0.0.1", [",".join(["10.0.0.2"] * 10_000)], "10.0.0.2"),
    ],
)
def test_the_last_address_that_is_not_ours_counts(peer: str, forwarded: list[str], address: str) -> None:
    assert client_address(peer, forwarded, OURS) == address


def test_without_proxies_no_header_counts() -> None:
    assert client_address("10.0.0.1", ["198.51.100.1"], ()) == "10.0.0.1"


@pytest.mark.parametrize("given", ["proxy.example", "10.0.0.1/8", "10.0.0.0/33", ""])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="--proxy"):
        networks([given])
