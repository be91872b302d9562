"""Requests from browsers to a registry without login."""

from __future__ import annotations

import pytest

from tidelog.registry.errors import RegistryError
from tidelog.registry.serving.local import Local


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {b"host": b"localhost:8081"},
        {b"host": b"127.0.0.1"},
        {b"host": b"[::1]:8081"},
        {b"host": b"10.0.0.1:8081"},
        {b"host": b"Registry.Test:8081"},
        {b"host": b"localhost:8081", b"origin": b"http://localhost:8081", b"sec-fetch-site": b"same-origin"},
    ],
)
def test_clients_and_own_pages_are_served(headers: dict[bytes, bytes]) -> None:
    Local(["registry.test"]).check(headers)


@pytest.mark.parametrize(
    "headers",
    [
        {b"host": b"evil.example:8081"},
        {b"host": b"localhost.evil.example"},
        {b"host": b""},
        {b"host": b"localhost:8081", b"origin": b"https://evil.example"},
        {b"host": b"localhost:8081", b"origin": b"null"},
        {b"host": b"localhost:8081", b"origin": b"http://localhost:3000"},
        {b"host": b"localhost:8081", b"sec-fetch-site": b"cross-site"},
    ],
)
def test_pages_of_other_sites_are_refused(headers: dict[bytes, bytes]) -> None:
    with pytest.raises(RegistryError) as refused:
        Local(["registry.test"]).check(headers)
    assert refused.value.status == 403
