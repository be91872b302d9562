"""Power loss at every change the metadata node makes to its disk: what was answered is there, nothing is there by halves, and no
leader epoch is used twice."""

import os
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.unit.controller.conftest import CLUSTER
from tests.unit.controller.sole_member import SoleMember
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.image import TOPIC_RESOURCE
from tidelog.metadata.supported_features import default_levels, supported_ranges
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature
from tidelog.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.metadata_log import MetadataLogConfig
from tidelog.records.control import Endpoint as Address
from tidelog.testing.simulation.disk import SimDisk

SEEDS = int(os.environ.get("TIDELOG_POWER_LOSS_SEEDS", "2"))
ROOT = "/data"
LIMITS = MetadataLogConfig(
    segment_bytes=1500,
    max_batch_bytes=1000,
    max_record_bytes_between_snapshots=1200,
    retention_bytes=4000,
    max_snapshot_interval_ms=1 << 50,
)

Names = tuple[str, ...]


@dataclass
class Moment:
    """What a power loss would leave, and what may be found on it."""

    disk: SimDisk
    what: str
    allowed: list[Names]
    """Topics after each decision from the last answered one on."""
    epoch: int
    """Of the leader whose records were answered."""


@dataclass
class Run:
    """A node that decides, syncs, writes snapshots and restarts; a moment before each change to its disk."""

    seed: int
    standalone: bool
    moments: list[Moment] = field(default_factory=list)
    decided: list[Names] = field(default_factory=lambda: [()])
    answered: int = 0
    epoch: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.disk = SimDisk(self.seed)
        address = [Address("CONTROLLER", "h", 9093)] if self.standalone else None
        format_dirs(self.disk, FormatRequest([ROOT], 1, CLUSTER, standalone=address), rng=self.rng, now_ms=1000)
        self.disk.sync_dir("/")
        self.disk.on_operation = self.take
        self.number = 0
        self.now_ms = 1000
        self.begin()

    def take(self, number: int, kind: str, path: str) -> None:
        allowed = self.decided[self.answered :]
        self.moments.append(Moment(self.disk.crash(number), f"{number} {kind} {path}", list(allowed), self.epoch))

    def begin(self) -> None:
        self.node = start(self.disk, self.rng, self.now_ms)
        self.answered = len(self.decided) - 1
        self.epoch = self.node.epoch
        serve(self.node, self.now_ms)

    def submit(self) -> None:
        names = self.decided[-1]
        if names and self.rng.random() < 0.3:
            gone = self.rng.choice(names)
            self.node.submit(
                QuorumController.delete_topics, DeleteTopicsRequest(topics=[DeleteTopicState(name=gone)]), self.now_ms
            )
            self.decided.append(tuple(name for name in names if name != gone))
            return
        self.number += 1
        name = f"topic-{self.number}"
        config = [CreatableTopicConfig(name="a", value="v" * 50)]
        topic = CreatableTopic(name=name, num_partitions=3, replication_factor=1, configs=config)
        self.node.submit(QuorumController.create_topics, CreateTopicsRequest(topics=[topic]), self.now_ms)
        self.decided.append((*names, name))

    def flush(self) -> None:
        job = self.node.flush_job()
        upto = len(self.decided) - 1
        if self.rng.random() < 0.5:
            self.submit()
        job.run()
        self.node.flushed(job, self.now_ms)
        self.answered = upto

    def snapshot(self) -> None:
        job = self.node.snapshot_job(self.now_ms)
        if self.rng.random() < 0.5:
            self.submit()
        job.run()
        self.node.snapshot_finished(job, self.now_ms)

    def go(self, steps: int) -> None:
        for _ in range(steps):
            self.now_ms += 1000
            roll = self.rng.random()
            if self.node.snapshot_due(self.now_ms):
                self.snapshot()
            elif roll < 0.6:
                self.submit()
            elif roll < 0.95:
                if self.node.flush_needed:
                    self.flush()
            else:
                self.node.close(self.now_ms)
                self.answered = len(self.decided) - 1
                self.begin()


def start(disk: SimDisk, rng: random.Random, now_ms: int) -> SoleMember:
    return SoleMember(disk, ROOT, rng=rng, now_ms=now_ms, log=LIMITS)


def serve(node: SoleMember, now_ms: int) -> None:
    features = [Feature(name=k, min_supported_version=a, max_supported_version=b) for k, (a, b) in supported_ranges().items()]
    incarnation = node.epoch.to_bytes(16, "big")
    request: Any = BrokerRegistrationRequest(
        broker_id=1, cluster_id=CLUSTER, incarnation_id=incarnation, features=features, log_dirs=[b"d" * 16]
    )
    epoch = node.submit(QuorumController.register_broker, request, now_ms).response.broker_epoch
    beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=node.controller.image.offset)
    node.submit(QuorumController.broker_heartbeat, beat, now_ms)
    node.flush_now(now_ms)


@pytest.mark.parametrize("standalone", [False, True])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_was_answered_survives_a_power_loss_at_every_moment(seed: int, standalone: bool) -> None:
    run = Run(seed, standalone)
    run.go(40)
    assert any(".checkpoint" in moment.what for moment in run.moments), "the run wrote no snapshot"
    for number, moment in enumerate(run.moments):
        node = start(moment.disk, random.Random(seed), 10**9)
        names = tuple(node.image.topics.by_name)
        assert sorted(names) in [sorted(each) for each in moment.allowed], moment.what
        assert all(len(topic.partitions) == 3 for topic in node.image.topics.by_id.values()), moment.what
        of_topics = {name for kind, name in node.image.configs if kind == TOPIC_RESOURCE}
        assert of_topics == set(names), moment.what
        assert node.epoch > moment.epoch, moment.what
        assert node.image.features == default_levels(), moment.what
        assert node.log.newest_snapshot is None or node.log.newest_snapshot.offset <= node.log.end_offset
        node.log.log.check()
        serve(node, 10**9)
        assert {p.leader for topic in node.image.topics.by_id.values() for p in topic.partitions} <= {1}, moment.what
        if number % 4:
            continue
        again = start(moment.disk.kill(), random.Random(seed), 10**9)
        assert again.epoch == node.epoch + 1, moment.what
        assert {**again.image.topics.by_name} == {**node.image.topics.by_name}, moment.what
