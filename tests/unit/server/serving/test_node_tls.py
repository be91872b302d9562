"""The TLS of a node: by listener, and nodes that talk to each other in nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.unit.server.serving.tls_pairs import given
from tests.unit.server.several_nodes import SeveralNodes
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError
from tidelog.server.serving.connection_states import State
from tidelog.server.serving.node_tls import NodeTls

SETTINGS = {
    "listeners": "PLAINTEXT://localhost:1,OUTSIDE://localhost:2",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL",
}
ALL_SSL = {"listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL", "ssl.client.auth": "required"}


def test_a_listener_in_plain_text_has_none_and_others_are_made_once() -> None:
    tls = NodeTls(BrokerConfig.from_properties({**SETTINGS, **given()}))
    assert tls.listener("PLAINTEXT") is None
    assert tls.towards("PLAINTEXT") is None
    found = tls.listener("OUTSIDE")
    assert found is not None
    assert tls.listeners == {"OUTSIDE": found}
    assert tls.towards("OUTSIDE") is tls.towards("OUTSIDE")


def test_stores_that_cannot_be_read_stop_the_node() -> None:
    given_ = {**given(), "ssl.truststore.certificates": "none"}
    tls = NodeTls(BrokerConfig.from_properties({**SETTINGS, **given_}))
    with pytest.raises(ConfigError, match="holds no certificate"):
        tls.listener("OUTSIDE")


def test_three_nodes_elect_forward_and_replicate_under_mutual_tls(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, given={**given(), **ALL_SSL})

    async def main() -> None:
        await world.start()
        assert await world.create(world.passive(), "t", replicas=3) == 0
        await world.everywhere(lambda node: "t" in node.parts.broker.image.topics.by_name)

        def in_sync() -> bool:
            topic = world.nodes[world.passive()].parts.broker.image.topics.by_name["t"]
            return len(topic.partitions[0].isr) == 3

        await world.until(in_sync)
        users = set()
        for node in world.nodes.values():
            for listener in (*node.parts.listeners, *node.parts.membership.replica.listeners):
                assert listener.tls is not None
                users |= {
                    str(each.machine.session.principal) for each in listener.connections if each.machine.state is State.OPEN
                }
        assert users == {"User:CN=node"}
        await world.stop(world.passive())
        await world.until(lambda: world.active() is not None)
        assert await world.create(world.passive(), "u") == 0

    world.run(main)
    world.close()


@pytest.mark.parametrize("wrong", ["host", "authority"])
def test_a_node_whose_certificate_does_not_fit_is_refused_and_the_log_says_why(
    tmp_path: Path, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The third node's certificate names another host, or another authority signed it."""
    world = SeveralNodes(tmp_path, given={**given(), **ALL_SSL})
    settings, other = world.settings, Authority()

    async def main() -> None:
        await world.start(1, 2)
        assert await world.create(1, "t", replicas=2) == 0
        world.settings = dict(settings)
        if wrong == "authority":
            stranger = other.issue("node", "localhost")
            world.settings |= {"ssl.keystore.key": stranger.key, "ssl.keystore.certificate.chain": stranger.chain}
            said = "the client's certificate is not accepted"
        else:
            world.settings |= {"ssl.truststore.certificates": other.pem}
            said = "is not trusted"
        starting = world.runtime.spawn(world.start(3), "a node that does not fit")
        await world.until(lambda: said in caplog.text)
        starting.cancel()
        await asyncio.wait([starting])
        del world.nodes[3]

    world.run(main)
    world.close()
