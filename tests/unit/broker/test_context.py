from __future__ import annotations

from tests.unit.broker.node_world import NOW_MS, NodeWorld
from tidelog.broker.context import Encoded


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


def test_an_encoded_answer_keeps_its_parts() -> None:
    answer = Encoded((b"ab", b"c"), 3)
    assert (list(answer.parts), answer.size) == ([b"ab", b"c"], 3)
