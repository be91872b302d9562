"""Which listeners are refused."""

from __future__ import annotations

import pytest

from tidelog.client.settings import parse_settings
from tidelog.model.errors import ConfigError
from tidelog.registry.serving.running import Options, check, listen
from tidelog.registry.serving.users import Users

CLIENT = parse_settings({"bootstrap.servers": "localhost:1"})
SECURED = {"users": Users({}), "certificate": "c", "key": "k"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_needs_no_login(host: str) -> None:
    check(Options(CLIENT, host))


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "192.168.0.1", "example.org"])
def test_other_machines_need_a_login_and_tls_unless_it_is_meant_otherwise(host: str) -> None:
    for missing in ({}, {"users": SECURED["users"]}, {"certificate": "c", "key": "k"}):
        with pytest.raises(ConfigError, match="--insecure"):
            check(Options(CLIENT, host, **missing))  # type: ignore[arg-type]
    check(Options(CLIENT, host, **SECURED))  # type: ignore[arg-type]
    check(Options(CLIENT, host, insecure=True))


def test_a_certificate_and_its_key_belong_together_and_have_to_be_there() -> None:
    with pytest.raises(ConfigError):
        check(Options(CLIENT, certificate="c"))
    with pytest.raises(ConfigError):
        listen(Options(CLIENT, port=0, certificate="/nowhere", key="/nowhere"))


def test_a_taken_port_is_an_error_that_names_it() -> None:
    with listen(Options(CLIENT, port=0)) as first, pytest.raises(ConfigError, match=str(first.getsockname()[1])):
        listen(Options(CLIENT, port=first.getsockname()[1]))
