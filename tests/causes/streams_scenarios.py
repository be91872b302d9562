"""Streams groups (KIP-1071): members by heartbeats of tidelog's own client, and Kafka Streams itself."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import NewTopic

from tests.causes.scenario import Answer, Scenario
from tests.causes.scene import WAIT_S, Scene
from tests.systems.exactly_once import App
from tidelog.cli.admin_session import AdminSession
from tidelog.client.calls import Coordinator
from tidelog.console.group_facts import Sample
from tidelog.protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)

GROUP, LINES, COUNTS = "word-count", "lines", "counts"
"""Those of tests/systems/streams."""


def joined(scene: Scene, topology: Topology) -> None:
    """A member of the group with this topology; it is there for the session's time."""
    request = StreamsGroupHeartbeatRequest(
        group_id=scene.group,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        topology=topology,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="p",
    )
    with AdminSession(scene.servers, client_id="app") as session:
        answer = session.ask(request, Coordinator(scene.group))
    assert answer.error_code == 0, answer.error_message


def missing_source(scene: Scene) -> Answer:
    scene.create()
    joined(scene, Topology(epoch=0, subtopologies=[Subtopology(subtopology_id="0", source_topics=[f"{scene.topic}s"])]))
    return scene.why()


def unequal_sources(scene: Scene) -> Answer:
    scene.create(2)
    other = f"{scene.topic}-other"
    scene.admin.create_topics([NewTopic(other, 3, 1)])[other].result(WAIT_S)
    joint = CopartitionGroup(source_topics=[0, 1])
    both = Subtopology(subtopology_id="0", source_topics=[scene.topic, other], copartition_groups=[joint])
    joined(scene, Topology(epoch=0, subtopologies=[both]))
    return scene.why()


@contextmanager
def application(scene: Scene, name: str) -> Iterator[App]:
    """Kafka Streams' word count, not started."""
    scene.group, scene.topic = GROUP, LINES
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        made = App("streams", home / "log", lambda: [scene.servers, str(home / name), "streams"])
        try:
            yield made
        finally:
            if made.process is not None:
                made.kill()


def runs(found: Sample) -> bool:
    return found.state == "Stable" and any(each.assignment for each in found.members)


def streams_restart(scene: Scene) -> Answer:
    """The application stops and starts again while the command looks; lines are written all the time."""
    for topic in (LINES, COUNTS):
        scene.admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(WAIT_S)
    with application(scene, "one") as app, application(scene, "two") as second:
        scene.produce(5)
        app.start()
        scene.until(lambda found: runs(found) and not sum(part.lag for part in found.partitions.values()))
        waiting = [second.start]

        def feed() -> None:
            if waiting:
                waiting.pop()()
            scene.produce(1)

        return scene.why(feed, seconds=12)


STREAMS_SCENARIOS = (
    Scenario(
        "streams-source", "a topology with a source topic that is not there", missing_source, "T1", "does not exist; there is"
    ),
    Scenario(
        "streams-unequal", "two topics that are joined, with 2 and 3 partitions", unequal_sources, "T1", "unequal partitions"
    ),
    Scenario(
        "streams-rolling", "a second instance of a Kafka Streams application joins, lines are written", streams_restart, None
    ),
)
