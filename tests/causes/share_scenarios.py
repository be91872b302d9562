"""Causes of share groups, made with librdkafka's share consumer."""

from __future__ import annotations

import time
from collections.abc import Iterable

from confluent_kafka import AcknowledgeType, KafkaException, Message, ShareConsumer

from tests.causes.scenario import Answer, Scenario
from tests.causes.scene import Scene
from tidelog.console.group_facts import Sample


def locks_used_up(scene: Scene) -> Answer:
    scene.create()
    scene.share_settings(partition_max_record_locks="100")
    for _ in range(15):
        scene.produce(20)  # a batch is acquired as a whole
    assert len(scene.got(scene.worker())) == 100
    return scene.why()


def redelivery(scene: Scene) -> Answer:
    """Released again and again, until it is with the worker for the last time but one."""
    scene.create()
    scene.share_settings(delivery_count_limit="5")
    scene.produce(1)
    worker = scene.worker()
    while (message := scene.got(worker)[0]).delivery_count() < 4:
        worker.acknowledge(message, AcknowledgeType.RELEASE)
        worker.commit_sync(10)
    return scene.why()


def lock_too_short(scene: Scene) -> Answer:
    """Each delivery is worked on for longer than its lock."""
    scene.create()
    scene.share_settings(record_lock_duration_ms="1500", delivery_count_limit="10")
    scene.produce(3)
    worker = scene.worker()
    held = scene.got(worker)

    def slowly() -> None:
        time.sleep(0.6 * len(held))
        for message in held:
            worker.acknowledge(message, AcknowledgeType.ACCEPT)  # too late: the lock is gone
        held[:] = list(worker.poll(timeout=0.2))

    return scene.why(slowly, seconds=5)


def head_blocked(scene: Scene) -> Answer:
    """A worker gave all records back once, has them again, and finishes those behind the first one."""
    scene.create()
    scene.share_settings(record_lock_duration_ms="60000")
    scene.produce(200)
    worker = scene.worker()
    for message in scene.got(worker):
        worker.acknowledge(message, AcknowledgeType.RELEASE)
    worker.commit_sync(10)
    rest = scene.got(worker)[1:]

    def one() -> None:
        if rest:
            worker.acknowledge(rest.pop(), AcknowledgeType.ACCEPT)
            worker.commit_sync(10)

    return scene.why(one)


def from_latest(scene: Scene) -> Answer:
    scene.create()
    scene.produce(10)
    worker = scene.worker()
    scene.until(lambda found: any(part.share and part.share.initialized for part in found.partitions.values()), worker)
    for _ in range(20):
        assert not list(worker.poll(timeout=0.1))
    return scene.why(lambda: worker.poll(timeout=0))


def group_is_full(scene: Scene) -> Answer:
    scene.create()
    scene.share_settings()
    workers = [scene.worker() for _ in range(2)]
    scene.until(lambda found: len(found.members) == 2, *workers)
    refused = scene.worker()
    errors = []
    for _ in range(50):
        try:
            errors += [message.error() for message in refused.poll(timeout=0.1) if message.error()]
        except KafkaException as problem:
            errors.append(problem.args[0])
        if errors:
            break
    assert errors, "the third worker was not refused"
    return scene.why(lambda: [each.poll(timeout=0) for each in workers])


def no_workers(scene: Scene) -> Answer:
    scene.create()
    scene.share_settings()
    scene.produce(10)
    worker = scene.worker()
    messages = scene.got(worker)
    for message in messages:
        kind = AcknowledgeType.ACCEPT if message.offset() < 3 else AcknowledgeType.RELEASE
        worker.acknowledge(message, kind)
    worker.commit_sync(10)
    scene.dismiss(worker)
    return scene.why()


def idle_worker(scene: Scene) -> Answer:
    """It has records, and neither acknowledges them nor polls."""
    scene.create()
    scene.share_settings()
    scene.produce(10)
    assert scene.got(scene.worker())
    return scene.why()


def healthy_workers(scene: Scene) -> Answer:
    """Records come and are accepted."""
    scene.create()
    scene.share_settings()
    scene.produce(10)
    worker = scene.worker("share-healthy-topic")
    accept_all(scene.got(worker), worker)

    def work() -> None:
        scene.produce(1)
        accept_all(list(worker.poll(timeout=0.2)), worker)

    return scene.why(work)


def workers_change(scene: Scene) -> Answer:
    """A worker leaves and another one joins while the command looks; records come and are accepted."""
    scene.create(2)
    scene.share_settings()
    workers = [scene.worker() for _ in range(2)]

    def both_have_some(found: Sample) -> bool:
        return len(found.members) == 2 and all(each.assignment for each in found.members)

    scene.until(both_have_some, *workers)
    waiting = [lambda: workers.append(scene.worker()), lambda: scene.dismiss(workers.pop(0))]

    def roll() -> None:
        if waiting:
            waiting.pop()()
        scene.produce(1)
        for worker in workers:
            accept_all(list(worker.poll(timeout=0.2)), worker)

    return scene.why(roll, seconds=8)


def accept_all(messages: Iterable[Message], worker: ShareConsumer) -> None:
    """Finishes these records."""
    messages = list(messages)
    for message in messages:
        worker.acknowledge(message, AcknowledgeType.ACCEPT)
    if messages:
        worker.commit_sync(10)


SHARE_SCENARIOS = (
    Scenario(
        "share-locks", "a worker holds 100 records, share.partition.max.record.locks 100", locks_used_up, "S1", "100 of 100"
    ),
    Scenario("share-redelivery", "a worker releases a record three times", redelivery, "S2", "delivery 4", fast=True),
    Scenario("share-lock", "work on a record takes longer than its lock", lock_too_short, "S3", "locks timed out"),
    Scenario(
        "share-head",
        "a worker finishes all records but the first, which it gave back once",
        head_blocked,
        "S4",
        "is acquired, delivery 2",
    ),
    Scenario("share-latest", "10 records, then the first worker of a group with latest", from_latest, "S6", "offsets 0 to 10"),
    Scenario(
        "share-full",
        "group.share.max.size=2, a third worker is refused",
        group_is_full,
        "S7",
        "group.share.max.size 2",
        stage="two workers",
    ),
    Scenario(
        "share-stopped", "3 of 10 records accepted, then the worker closed", no_workers, "G1", "7 records behind", fast=True
    ),
    Scenario("share-idle", "a worker has records and does not poll", idle_worker, "G4", "is acquired, delivery 1"),
    Scenario("share-healthy", "workers accept what is written", healthy_workers, None),
    Scenario("share-rolling", "a worker leaves and another one joins while the command looks", workers_change, None),
)
