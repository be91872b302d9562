from __future__ import annotations

import pytest

from tests.unit.broker.node_world import NOW_MS, NodeWorld
from tidelog.broker import auto_creation as module
from tidelog.broker.auto_creation import RETRY_MS, create_for, was_refused
from tidelog.broker.ports import Asker
from tidelog.controller.result import ControllerSettings
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.security.principal import ANONYMOUS

CLIENT = Asker(ANONYMOUS, "shop", "10.0.0.1")


def created(world: NodeWorld, *names: str) -> None:
    create_for(world.broker, CLIENT, list(names))
    world.runtime.run_spawned()


def shape(world: NodeWorld, name: str) -> tuple[int, int]:
    partitions = world.broker.image.topics.by_name[name].partitions
    return len(partitions), len(partitions[0].replicas)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (3, 2)),
        ({"num.partitions": "5"}, (5, 2)),
        ({"default.replication.factor": "1"}, (3, 1)),
        ({"num.partitions": "1", "default.replication.factor": "1"}, (1, 1)),
    ],
)
def test_each_setting_that_the_broker_names_counts_and_the_controllers_where_it_names_none(
    settings: dict[str, str], expected: tuple[int, int]
) -> None:
    world = NodeWorld(settings)
    world.controller.settings = ControllerSettings(num_partitions=3, default_replication_factor=2)
    world.add_broker(2)
    created(world, "new")
    assert shape(world, "new") == expected


def test_what_was_refused_is_known_and_tried_again_a_second_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = NodeWorld()
    world.controller.settings = ControllerSettings(default_replication_factor=3)
    world.controller.take_over(world.broker.image)
    created(world, "new")
    assert was_refused(world.broker, "new")
    assert "topic new, which client shop at 10.0.0.1 asked for, is not created: INVALID_REPLICATION_FACTOR" in caplog.text
    create_for(world.broker, CLIENT, ["new"])
    assert world.runtime.spawned == []
    monkeypatch.setattr(world.runtime, "even_ms", lambda: NOW_MS + RETRY_MS)
    world.controller.settings = ControllerSettings()
    world.controller.take_over(world.broker.image)
    created(world, "new")
    assert not was_refused(world.broker, "new")
    assert shape(world, "new") == (1, 1)


def test_a_controller_that_never_answers_is_a_refusal_of_every_topic() -> None:
    world = NodeWorld()
    world.controller.refuses = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    created(world, "a", "b")
    assert was_refused(world.broker, "a")
    assert was_refused(world.broker, "b")
    assert world.broker.topics_being_created == {}


def test_a_topic_that_is_there_already_was_not_refused() -> None:
    world = NodeWorld()
    world.create("there")
    created(world, "there")
    assert not was_refused(world.broker, "there")


def test_only_so_many_refusals_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REFUSED", 1)
    world = NodeWorld()
    world.controller.refuses = KafkaError(ErrorCode.NOT_CONTROLLER)
    created(world, "a", "b")
    assert [was_refused(world.broker, name) for name in ("a", "b")] == [False, True]
