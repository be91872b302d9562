"""What only a SASL listener has; its connections are in ``test_authenticating``."""

from __future__ import annotations

import secrets
import sys
from dataclasses import replace

import pytest

from tests.unit.broker.node_world import NodeWorld
from tidelog.config.jaas import PLAIN_MODULE
from tidelog.config.listener_gssapi import EXAMPLE
from tidelog.config.listener_oauth import UNSECURED
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.image import ScramCredential
from tidelog.model.errors import ConfigError
from tidelog.security.scram import ScramMechanism
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving import sasl_mechanisms
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


def test_an_unknown_user_is_shown_the_same_salt_by_all_nodes_of_a_cluster(
    runtime: LoopRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes with different salts for a name would tell that it is unknown. The nodes have the same metadata; what each
    process draws for itself differs."""
    config = BrokerConfig.from_properties(
        {
            "listeners": "PLAINTEXT://localhost:1,OUTSIDE://localhost:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
            "listener.name.outside.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        }
    )
    users = {("ann", ScramMechanism.SHA_256): ScramCredential(b"s" * 24, b"k" * 32, b"v" * 32, 8192)}

    def shown(name: str) -> bytes:
        monkeypatch.setattr(sasl_mechanisms, "_SECRET", secrets.token_bytes(32))
        world = NodeWorld()
        assert world.broker.image.brokers
        world.broker.image = replace(world.broker.image, scram=users)
        listener = listener_of("OUTSIDE", world.broker, config, runtime)
        answer = listener.mechanisms["SCRAM-SHA-256"].begin().answer(f"n,,n={name},r=abc".encode())
        return answer.partition(b",")[2]

    assert shown("ann") == shown("ann")
    assert shown("eve") == shown("eve")
    assert shown("eve") != shown("eva")


def test_each_mechanism_limits_the_messages_of_strangers(runtime: LoopRuntime) -> None:
    """What 2,000 of them may hold is far from what ``sasl.server.max.receive.size`` allows."""
    config = BrokerConfig.from_properties(
        {
            "listeners": "PLAINTEXT://localhost:1,OUTSIDE://localhost:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
            "listener.name.outside.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.outside.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_ann="x";',
            "listener.name.outside.oauthbearer.sasl.server.callback.handler.class": UNSECURED,
        }
    )
    listener = listener_of("OUTSIDE", NodeWorld().broker, config, runtime)
    most = {name: listener.largest_frame(name)[0] // 1024 for name in ("", *listener.mechanisms)}
    assert most == {"": 8, "PLAIN": 32, "SCRAM-SHA-256": 16, "SCRAM-SHA-512": 16, "OAUTHBEARER": 136}
