"""Plans of streams groups beside Apache Kafka's own classes: the same groups and topologies, and the same results.

Kafka goes through processes and members in the order of hash tables, and takes the least loaded from a binary heap, so equal
loads come out in an order of their own. Here ids have hashes that keep their order and ``HeapOfJava`` stands in for our queue:
nothing is left to chance, and the results have to be equal, not only equally good.
"""

from __future__ import annotations

import base64
import contextlib
import json
import random
import subprocess
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from tests.interop.availability import unavailable
from tidelog.coordinator.group.streams import load_queue
from tidelog.coordinator.group.streams.sticky_assignor import MemberState, assign
from tidelog.coordinator.group.streams.tasks import TaskId, Tasks, task_set
from tidelog.coordinator.group.streams.topology import ConfiguredSubtopology, ConfiguredTopology, InternalTopic, configure
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.streams_group_topology_value import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)
from tools.jars import JarsMissing, compiled_against

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

SETUP = Path(__file__).parent / "streams_plan"
GROUPS = 4_000
TOPOLOGIES = 6_000
Item = TypeVar("Item", bound=Hashable)


class HeapOfJava(Generic[Item]):
    """``java.util.PriorityQueue`` of items whose loads change only while they are out."""

    def __init__(self, items: Sequence[Item], load: Callable[[Item], float]) -> None:
        self._load = load
        self._heap: list[Item] = []
        for item in items:
            self.push(item)

    def push(self, item: Item) -> None:
        heap = self._heap
        heap.append(item)
        at = len(heap) - 1
        while at and self._load(item) < self._load(heap[(at - 1) // 2]):
            heap[at], at = heap[(at - 1) // 2], (at - 1) // 2
        heap[at] = item

    def pop(self) -> Item | None:
        heap = self._heap
        if not heap:
            return None
        first, last = heap[0], heap.pop()
        if heap:
            at = 0
            while (child := 2 * at + 1) < len(heap):
                if child + 1 < len(heap) and self._load(heap[child + 1]) < self._load(heap[child]):
                    child += 1
                if self._load(last) <= self._load(heap[child]):
                    break
                heap[at], at = heap[child], child
            heap[at] = last
        return first


def process_id(number: int) -> str:
    """Consecutive hash codes, the first one a multiple of any table size here."""
    return chr(0x40 + number)


def member_id(process: int, number: int) -> str:
    """The same among the members of a process, and sorted by process."""
    return chr(0x1000 + 0x40 * process + number)


def random_topology(rng: random.Random) -> ConfiguredTopology:
    subtopologies = {}
    for number in range(rng.randint(1, 5)):
        changelogs = (InternalTopic(f"log{number}", 1, -1),) if rng.random() < 0.6 else ()
        subtopologies[str(number)] = ConfiguredSubtopology(rng.randint(1, rng.choice([3, 12, 40])), ("in",), (), (), changelogs)
    return ConfiguredTopology(0, subtopologies)


def random_group(rng: random.Random, topology: ConfiguredTopology) -> dict[str, MemberState]:
    """A group somewhere in its life: members came and went since the last assignment, and report what their disks hold."""
    processes = rng.randint(1, 10)
    members = {
        member_id(process, number): MemberState(process_id(process))
        for process in range(processes)
        for number in range(rng.choice([1, 1, 2, 3, 7]))
    }
    before = {member: state for member, state in members.items() if rng.random() < 0.8}
    given = assign(before, topology, rng.randint(0, 2))
    everything = list(topology.tasks())
    for member, state in members.items():
        tasks = given.get(member, Tasks())
        offsets = {}
        if rng.random() < 0.5:
            offsets = {task: rng.choice([0, 5, rng.randrange(1000)]) for task in everything if rng.random() < 0.2}
        if rng.random() < 0.1:
            tasks = Tasks(standby=task_set(task for task in everything if rng.random() < 0.5))
        members[member] = MemberState(state.process_id, {}, tasks.active, tasks.standby, {}, offsets)
    gone = {member for member in members if rng.random() < 0.2}
    if len(gone) == len(members) or rng.random() < 0.3:
        gone.clear()
    left = sorted({state.process_id for member, state in members.items() if member not in gone})
    renamed = {old: process_id(number) for number, old in enumerate(left)}
    return {
        member: MemberState(renamed[state.process_id], {}, state.active, state.standby, {}, state.task_offsets)
        for member, state in sorted(members.items())
        if member not in gone
    }


def lists(tasks: Any) -> dict[str, list[int]]:
    return {subtopology: sorted(partitions) for subtopology, partitions in tasks.items()}


def shown(assignment: dict[str, Tasks]) -> dict[str, Any]:
    return {member: {"active": lists(tasks.active), "standby": lists(tasks.standby)} for member, tasks in assignment.items()}


def request_for(group: dict[str, MemberState], topology: ConfiguredTopology, standbys: int) -> dict[str, Any]:
    members = [
        {
            "id": member,
            "process": state.process_id,
            "active": lists(state.active),
            "standby": lists(state.standby),
            "offsets": [[*task, offset] for task, offset in state.task_offsets.items()],
        }
        for member, state in group.items()
    ]
    subtopologies = {key: {"tasks": each.tasks, "stateful": each.stateful} for key, each in topology.subtopologies.items()}
    return {"standbys": standbys, "members": members, "subtopologies": subtopologies}


def kafka(requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Kafka's answers."""
    try:
        classes, jars = compiled_against(SETUP)
    except JarsMissing as missing:
        unavailable(missing)
    command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{jars}/*", "StreamsPlan"]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_assignments_are_those_of_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1071)
    cases = []
    for _ in range(GROUPS):
        topology = random_topology(rng)
        cases.append((random_group(rng, topology), topology, rng.choice([0, 0, 1, 1, 2, 3])))
    answers = kafka([request_for(*case) for case in cases])
    monkeypatch.setattr(load_queue, "LoadQueue", HeapOfJava)
    standbys = 0
    for number, (case, answer) in enumerate(zip(cases, answers, strict=True)):
        ours = shown(assign(*case))
        assert ours == answer, f"group {number}: {request_for(*case)}"
        standbys += sum(len(tasks["standby"]) for tasks in ours.values())
    assert standbys > GROUPS  # the cases are worth something


def random_subtopologies(rng: random.Random) -> StreamsGroupTopologyValue:
    """Sources, repartition topics between subtopologies and changelogs; now and then one that cannot work."""
    count = rng.choice([1, 2, 3, 4, 6, 14])
    ids = [str(number) for number in range(count)]
    if rng.random() < 0.1:
        ids = [f"part-{rng.randrange(10**6)}" for _ in ids]
    repartition = [f"rep{number}" for number in range(rng.randint(0, count))]
    infos = {topic: topic_info(topic, rng.choice([0, 0, 0, 0, 2, 4]), rng) for topic in repartition}
    readers = {topic: rng.randrange(count) for topic in repartition}
    subtopologies = []
    for number, subtopology_id in enumerate(ids):
        read = [infos[topic] for topic in repartition if readers[topic] == number]
        sources = rng.sample(["in0", "in1", "in2", "in3"], rng.choice([0, 1, 1, 2]))
        if not sources and not read and rng.random() < 0.97:
            sources = ["in0"]
        sinks = [topic for topic in repartition if rng.random() < (0.6 if readers[topic] > number else 0.1)]
        groups = []
        for _ in range(rng.choice([0, 0, 1, 2])):
            groups.append(
                CopartitionGroup(
                    source_topics=[at for at in range(len(sources)) if rng.random() < 0.5],
                    repartition_source_topics=[at for at in range(len(read)) if rng.random() < 0.7],
                )
            )
        changelogs = [topic_info(f"log{number}-{at}", 0, rng) for at in range(rng.choice([0, 1, 2]))]
        subtopologies.append(
            Subtopology(
                subtopology_id=subtopology_id,
                source_topics=sources,
                state_changelog_topics=changelogs,
                repartition_sink_topics=sinks,
                repartition_source_topics=read,
                copartition_groups=groups,
            )
        )
    rng.shuffle(subtopologies)
    return StreamsGroupTopologyValue(epoch=rng.randint(0, 3), subtopologies=subtopologies)


def topic_info(name: str, partitions: int, rng: random.Random) -> TopicInfo:
    configs = [TopicConfig("cleanup.policy", "compact"), TopicConfig("retention.ms", "-1")]
    return TopicInfo(name, partitions, rng.choice([0, 1, 3]), rng.sample(configs, rng.randint(0, 2)))


def existing_topics(topology: StreamsGroupTopologyValue, rng: random.Random) -> dict[str, int]:
    """Sources, mostly; and what earlier lives of the application left behind."""
    usual = rng.choice([1, 2, 3, 4])
    topics = {f"in{number}": usual if rng.random() < 0.7 else rng.randint(1, 6) for number in range(4) if rng.random() < 0.97}
    wanted: dict[str, int] = {}
    with contextlib.suppress(KafkaError):
        wanted = {name: topic.partitions for name, topic in configure(topology, topics.get).missing_topics.items()}
    if rng.random() < 0.5:
        for name, partitions in wanted.items():
            if rng.random() < 0.8:
                topics[name] = partitions if rng.random() < 0.95 else rng.randint(1, 6)
    return topics


def plan(topology: StreamsGroupTopologyValue, topics: dict[str, int]) -> dict[str, Any]:
    try:
        configured = configure(topology, topics.get)
    except KafkaError as error:
        assert error.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
        return {"error": "StreamsInvalidTopologyException"}
    return {
        "status": -1 if configured.problem is None else int(configured.problem.status),
        "subtopologies": {
            key: {
                "tasks": each.tasks,
                "internal": {
                    topic.name: topic.partitions for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
                },
                "stateful": each.stateful,
            }
            for key, each in configured.subtopologies.items()
        },
        "missing": {
            name: {
                "partitions": topic.partitions,
                "replication_factor": topic.replication_factor,
                "configs": dict(topic.configs),
            }
            for name, topic in configured.missing_topics.items()
        },
    }


def test_tasks_and_internal_topics_are_those_of_kafka() -> None:
    rng = random.Random(1071)
    cases = []
    for _ in range(TOPOLOGIES):
        topology = random_subtopologies(rng)
        cases.append((topology, existing_topics(topology, rng)))
    requests = [{"topology": base64.b64encode(topology.encode(0)).decode(), "topics": topics} for topology, topics in cases]
    outcomes: dict[object, int] = {}
    for number, (case, answer) in enumerate(zip(cases, kafka(requests), strict=True)):
        assert plan(*case) == answer, f"topology {number}: {case}"
        outcome = answer.get("error", answer.get("status"))
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert all(outcomes.get(each, 0) > 100 for each in ("StreamsInvalidTopologyException", -1, 1, 2, 3)), outcomes


def test_offsets_reach_kafka_as_they_are() -> None:
    group = {
        "@": MemberState("@", task_offsets={TaskId("0", 0): 5}),
        "A": MemberState("A", task_offsets={TaskId("0", 0): 7}),
    }
    topology = ConfiguredTopology(0, {"0": ConfiguredSubtopology(1, ("in",), (), (), (InternalTopic("log", 1, -1),))})
    (answer,) = kafka([request_for(group, topology, 0)])
    assert answer == shown(assign(group, topology, 0))
    assert answer["A"]["active"] == {"0": [0]}
