from __future__ import annotations

import socket

import pytest

from tidelog.model.errors import ConfigError
from tidelog.server.serving.binding import bind


def test_a_port_in_use_is_an_error_that_says_what_to_do() -> None:
    first = bind("EXTERNAL", "127.0.0.1", 0)
    first.listen(1)
    with pytest.raises(ConfigError, match=r"EXTERNAL://127\.0\.0\.1:\d+: the port is in use\. Stop what listens there"):
        bind("EXTERNAL", "127.0.0.1", first.getsockname()[1])
    first.close()


def test_a_host_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"host no-such-host\.invalid is not known"):
        bind("EXTERNAL", "no-such-host.invalid", 0)


def test_an_address_that_is_not_ours_is_an_error() -> None:
    with pytest.raises(ConfigError, match="cannot listen there"):
        bind("EXTERNAL", "192.0.2.1", 0)


def test_no_host_means_every_interface() -> None:
    listening = bind("EXTERNAL", "", 0)
    listening.listen(1)
    port = listening.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port), timeout=10):
        pass
    if socket.has_dualstack_ipv6():
        assert listening.getsockname()[0] == "::"
    listening.close()
