"""Causes that nodes' metrics show, and members that fence each other."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic

from tests.causes.scenario import Answer, Scenario
from tests.causes.scene import WAIT_S, Scene
from tests.causes.stages import GUARDED
from tidelog.cli.admin_session import AdminSession
from tidelog.client.admin import acls, quotas
from tidelog.client.admin.acls import AccessControlEntry, AclOperation, AclResourceType, PatternType
from tidelog.model.acl import PermissionType


def fenced(scene: Scene) -> Answer:
    """Two processes with one group.instance.id, each started again when it is fenced."""
    scene.create()
    scene.produce(10)
    scene.store(3)
    own = {"group_instance_id": "one", "session_timeout_ms": 45000, "heartbeat_interval_ms": 300}

    def member(client: str) -> Consumer:
        return scene.consumer(scene.topic, client_id=client, **own)

    names = ["app-1", "app-2"]
    members = [member(names[0])]
    scene.until(lambda found: bool(found.members), *members)
    members.append(member(names[1]))

    def again() -> None:
        for at, name in enumerate(names):
            try:
                found = members[at].poll(0.1)
                failed = found is not None and found.error() is not None
            except (KafkaException, RuntimeError):
                failed = True
            if failed:
                scene.stop(members[at])
                members[at] = member(name)

    return scene.why(again, seconds=8)


def static_restart(scene: Scene) -> Answer:
    """A member with a group.instance.id is restarted while the command looks."""
    scene.create()
    scene.produce(10)
    own = {"group_instance_id": "one", "heartbeat_interval_ms": 300}
    members = [scene.reader(10, **own)]
    waiting = [True]

    def restart() -> None:
        if waiting:
            waiting.pop()
            scene.stop(members.pop())
            members.append(scene.consumer(scene.topic, **own))
        members[0].poll(0.1)

    return scene.why(restart, seconds=6)


def throttled(scene: Scene) -> Answer:
    """consumer_byte_rate 20,000 for a consumer that has 4 MB to read."""
    scene.create()
    scene.write(*(bytes(40_000) for _ in range(100)))
    with AdminSession(scene.servers) as session:
        session.run(quotas.alter({"client-id": "slow-app"}, {"consumer_byte_rate": 20_000}))
    own = {"client_id": "slow-app", "fetch_message_max_bytes": 50_000, "enable_auto_commit": True, "auto_commit_interval_ms": 200}
    member = scene.consumer(scene.topic, **own)
    scene.until(lambda found: any(part.committed for part in found.partitions.values()), member)
    return scene.why(lambda: member.poll(0.05))


def two_topics(scene: Scene) -> str:
    """The name of a second topic, with one partition and ten records in both."""
    scene.create()
    other = f"{scene.topic}-other"
    scene.admin.create_topics([NewTopic(other, 1, 1)])[other].result(WAIT_S)
    for topic in (other, scene.topic):
        scene.topic = topic
        scene.produce(10)
    return other


def paused(scene: Scene) -> Answer:
    """A member continues with one topic, and has paused the other."""
    other = two_topics(scene)
    member = scene.consumer(other, scene.topic)
    while len(member.assignment()) < 2:
        member.poll(0.1)
    member.pause([TopicPartition(other, 0)])
    member.commit(offsets=[TopicPartition(other, 0, 3), TopicPartition(scene.topic, 0, 1)], asynchronous=False)
    for _ in range(10):
        member.poll(0.1)
    offset = iter(range(2, 1000))

    def go_on() -> None:
        scene.produce(1)
        member.poll(0.05)
        scene.commit(member, next(offset))

    return scene.why(go_on)


def refused_commits(scene: Scene) -> Answer:
    """One consumer subscribes, another one of the group assigns a partition itself: its commits are refused."""
    other = two_topics(scene)
    scene.topic, mine = other, scene.topic
    scene.store(3)
    scene.topic = mine
    member = scene.reader(10)
    alone = scene.consumer()
    alone.assign([TopicPartition(other, 0, 3)])
    refused = []

    def reads() -> None:
        member.poll(0.05)
        alone.poll(0.05)
        try:
            alone.commit(offsets=[TopicPartition(other, 0, 4)], asynchronous=False)
        except KafkaException as problem:
            refused.append(problem)

    answer = scene.why(reads)
    assert refused, "the commit was not refused"
    return answer


def denied(scene: Scene) -> Answer:
    """The application may join its group and see its topic, and not read it."""
    scene.create()
    scene.produce(10)
    scene.store(3)
    allowed = (
        (AclResourceType.GROUP, scene.group, AclOperation.READ),
        (AclResourceType.TOPIC, scene.topic, AclOperation.DESCRIBE),
    )
    entries = [
        AccessControlEntry(kind, name, PatternType.LITERAL, "User:app", "*", operation, PermissionType.ALLOW)
        for kind, name, operation in allowed
    ]
    with AdminSession(scene.servers) as session:
        assert not session.run(acls.create(entries))
    login = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "app",
        "sasl_password": "app-secret",
    }
    member = scene.consumer(scene.topic, bootstrap_servers=scene.guarded, **login)
    scene.until(lambda found: any(each.assignment for each in found.members), member)
    return scene.why(lambda: member.poll(0.1))


TRAFFIC_SCENARIOS = (
    Scenario("fenced", "two processes with one group.instance.id, started again when fenced", fenced, "G6", "app-1 at"),
    Scenario("static-restart", "a member with a group.instance.id is restarted", static_restart, None),
    Scenario("denied", "READ on the topic is missing", denied, "G9", "READ on topic denied-topic", stage=GUARDED),
    Scenario("quota", "consumer_byte_rate=20000 for the client id", throttled, "R3", "consumer_byte_rate"),
    Scenario("paused", "one of two topics is paused, the other one goes on", paused, "R6", "no Fetch of the topic"),
    Scenario(
        "refused-commits",
        "a consumer with assign() in a group that has members; its commits are refused",
        refused_commits,
        "G11",
        "no member subscribes to it",
    ),
)
