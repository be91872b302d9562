"""A node in plain text loads nothing of TLS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.server.serving.tls_pairs import given
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.securing import check_stores, node_tls

PROGRAM = """
import sys
import tidelog.server.node, tidelog.server.cluster.controller_node
from tidelog.config.resolve import BrokerConfig
from tidelog.server.serving.securing import node_tls
assert node_tls(BrokerConfig.from_properties({}), None, {}) is None
words = ("serving.tls", "node_tls", "net.tls", "certificates")
print([name for name in sys.modules if any(word in name for word in words)])
"""


def test_a_node_in_plain_text_imports_no_tls() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


def test_a_node_that_only_connects_to_tls_has_it_too(runtime: LoopRuntime) -> None:
    config = BrokerConfig.from_properties(
        {
            "node.id": "2",
            "process.roles": "broker",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "localhost:1",
            "listeners": "PLAINTEXT://localhost:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
            **given(),
        }
    )
    assert node_tls(config, runtime, {}) is not None


def test_the_stores_of_own_listeners_are_read_and_others_are_not(tmp_path: Path) -> None:
    own = {
        "listeners": "PLAINTEXT://localhost:1,OUTSIDE://localhost:2",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL",
    }
    check_stores(BrokerConfig.from_properties({**own, **given()}))
    check_stores(BrokerConfig.from_properties({}))
    missing = {"listener.name.other.ssl.keystore.location": str(tmp_path / "missing.pem")}
    check_stores(BrokerConfig.from_properties({**own, **given(), **missing}))
    trusting = {"ssl.client.auth": "required", "ssl.truststore.certificates": "none"}
    with pytest.raises(ConfigError, match="listener OUTSIDE"):
        check_stores(BrokerConfig.from_properties({**own, **given(), **trusting}))
