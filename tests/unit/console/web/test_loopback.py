from __future__ import annotations

import pytest

from tidelog.console.web.loopback import is_loopback


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_this_machine_alone(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org"])
def test_other_machines_too(host: str) -> None:
    assert not is_loopback(host)
