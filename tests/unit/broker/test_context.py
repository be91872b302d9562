from __future__ import annotations

from tests.unit.broker.node_world import NOW_MS, NodeWorld


def test_a_context_sees_the_image_of_the_moment() -> None:
    world = NodeWorld()
    ctx = world.context()
    before = ctx.image
    world.create("later")
    assert "later" not in before.topics.by_name
    assert "later" in ctx.image.topics.by_name


def test_a_context_asks_its_broker() -> None:
    world = NodeWorld()
    ctx = world.context(listener="INTERNAL")
    assert ctx.now_ms() == NOW_MS
    assert ctx.config is world.config
    assert ctx.listener == "INTERNAL"
    assert ctx.peer_host == "10.0.0.1"
    assert ctx.run_blocking(lambda: 7).value == 7  # type: ignore[attr-defined]
