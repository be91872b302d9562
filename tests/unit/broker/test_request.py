from __future__ import annotations

from tests.unit.broker.node_world import NOW_MS, NodeWorld
from tidelog.broker.request import RequestContext
from tidelog.security.principal import ANONYMOUS, KafkaPrincipal


def test_a_context_sees_the_image_of_the_moment() -> None:
    world = NodeWorld()
    ctx = world.context()
    before = ctx.image
    world.create("later")
    assert "later" not in before.topics.by_name
    assert "later" in ctx.image.topics.by_name


def test_a_request_asks_its_node() -> None:
    world = NodeWorld()
    ctx = world.context(listener="INTERNAL")
    assert ctx.now_ms() == NOW_MS
    assert ctx.config is world.config
    assert ctx.listener == "INTERNAL"
    assert ctx.peer_host == "10.0.0.1"
    assert ctx.run_blocking(lambda: 7).value == 7  # type: ignore[attr-defined]


def test_a_request_keeps_the_principal_that_its_client_had_when_it_asked() -> None:
    world = NodeWorld()
    session = world.session()
    before = RequestContext(world.broker, session, 3, 12)
    session.principal = KafkaPrincipal("User", "anna")
    after = RequestContext(world.broker, session, 3, 12)
    assert (before.principal, after.principal) == (ANONYMOUS, KafkaPrincipal("User", "anna"))
