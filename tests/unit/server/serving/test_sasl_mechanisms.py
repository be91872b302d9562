"""What only a SASL listener has; its connections are in ``test_authenticating``."""

from __future__ import annotations

import sys

import pytest

from tests.unit.broker.node_world import NodeWorld
from tidelog.config.listener_gssapi import EXAMPLE
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError
from tidelog.server.serving.sasl_mechanisms import FailureLog, listener_of
from tidelog.server.serving.violations import TOLD_PER_SECOND


def test_failures_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Clock:
        now = 5000

        def real_ms(self) -> int:
            return self.now

    clock = Clock()
    failures = FailureLog("OUTSIDE", clock)  # type: ignore[arg-type]
    for _ in range(100):
        failures("10.0.0.1", "no")
    assert caplog.text.count("a login from 10.0.0.1 failed: no") == TOLD_PER_SECOND
    clock.now += 1000
    failures("10.0.0.1", "no")
    assert f"{100 - TOLD_PER_SECOND} more logins failed" in caplog.text
    assert failures.total == 101


def test_a_node_without_the_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    monkeypatch.delitem(sys.modules, "tidelog.server.serving.kerberos", raising=False)
    settings = {
        "listeners": "OUTSIDE://localhost:1",
        "listener.security.protocol.map": "OUTSIDE:SASL_PLAINTEXT",
        "listener.name.outside.gssapi.sasl.jaas.config": EXAMPLE,
    }
    world = NodeWorld()
    with pytest.raises(ConfigError, match=r"pip install 'tidelog\[kerberos\]'.* apt-get install libkrb5-dev"):
        listener_of("OUTSIDE", world.broker, BrokerConfig.from_properties(settings), None)  # type: ignore[arg-type]
