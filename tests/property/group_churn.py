"""Consumers of both group protocols as models of the real ones, a coordinator that crashes and loads, topics that change.

The models keep to what Kafka's consumers do: a member of the consumer protocol says what it reads when that has changed, gives
partitions up before it takes new ones (which takes it some time), joins again when it is fenced, and repeats everything after
an answer that did not come. Members of the classic protocol rebalance eagerly or cooperatively and one of them assigns.
Requests and answers get lost, members fall silent and come back with what they had, commits arrive late.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from tests.unit.coordinator.group.driver import Driver
from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup, ConsumerGroupState
from tidelog.coordinator.group.consumer.consumer_heartbeat import Beat
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.settings import Bounded, GroupSettings
from tidelog.metadata.image import PartitionImage, TopicImage, TopicsImage
from tidelog.model.errors import ErrorCode as E
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, RequestTopicPartitions
from tidelog.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from tidelog.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.protocol.messages.consumer_protocol_subscription import TopicPartition as OwnedTopic
from tidelog.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 20_000
NEVER_MS = 10**9
"""Of members whose callback hangs while they go on showing life: others must not wait for them for ever."""
SUBSCRIPTION_VERSION = 3
Place = tuple[str, int]
"""Topic name and partition; no name comes twice in a world."""


def grouped(places: set[Place]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        found.setdefault(topic, []).append(partition)
    return found


class ChurnDriver(Driver):
    """A coordinator with a cluster whose topics change, and a log that may be compacted before it is loaded."""

    def compact(self) -> None:
        """Only the last record of each key is left, in its place, and some of the tombstones."""
        last = {record.key: at for at, record in enumerate(self.log)}
        kept: list[GroupRecord] = []
        for at, record in enumerate(self.log):
            if last[record.key] == at and (record.value is not None or self.rng.random() < 0.5):
                kept.append(record)
        self.log = kept

    def set_topics(self, topics: dict[str, tuple[Uuid, int]], *, created: bool) -> None:
        part = PartitionImage((1,), (1,), 1)
        images = [TopicImage(topic_id, name, (part,) * count) for name, (topic_id, count) in topics.items()]
        by_id, by_name = {one.id: one for one in images}, {one.name: one for one in images}
        self.image = replace(self.image, offset=self.image.offset + 1, topics=TopicsImage(by_id, by_name))
        self.run(self.machine.topics_changed(created=created))

    def beat(self, request: ConsumerGroupHeartbeatRequest) -> Any:
        token = self.token()
        self.run(self.machine.consumer_heartbeat(Beat(token, "model", "/127.0.0.1", request), self.now))
        return self.answers[token]

    def send_commit(self, request: OffsetCommitRequest) -> list[int]:
        token = self.token()
        self.run(self.machine.offsets.commit(token, request, 9, self.now))
        return [int(one.error_code) for topic in self.answers[token].topics for one in topic.partitions]


class Reader:
    """What members of both protocols share: what they read, from where on, and their commits."""

    def __init__(self, world: World, instance: str | None, topics: tuple[str, ...]) -> None:
        self.world = world
        self.driver = world.driver
        self.instance = instance
        self.topics = topics
        self.member = ""
        self.epoch = 0
        self.owned: set[Place] = set()
        self.positions: dict[Place, int] = {}
        self.silent_until = 0
        self.stale = False
        """It was put out, and still holds what it had: it has not heard of it yet."""

    def gain(self, places: set[Place]) -> None:
        for place in places:
            stored = self.driver.machine.offsets.stored.get(GROUP, *place)
            self.positions[place] = 0 if stored is None else stored.offset
        self.owned |= places

    def drop(self, places: set[Place]) -> None:
        self.owned -= places

    def commit(self, places: set[Place]) -> bool:
        """Commits where it is in these partitions. False when the request stays under way for a while: its connection stalls,
        so that nothing else of this member arrives before it."""
        topics = []
        sent: dict[Place, int] = {}
        for topic, partitions in grouped({place for place in places if place[0] in self.world.topics}).items():
            entries = []
            for partition in partitions:
                sent[topic, partition] = self.positions[topic, partition]
                entries.append(OffsetCommitRequestPartition(partition, self.positions[topic, partition], -1, ""))
            topics.append(OffsetCommitRequestTopic(name=topic, topic_id=self.world.topics[topic][0], partitions=entries))
        if not sent:
            return True
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member,
            group_instance_id=self.instance,
            topics=topics,
        )
        if self.world.rng.random() < self.world.loss:
            self.silent_until = self.driver.now + self.world.rng.randint(1, 40_000)
            self.world.late.append((self.silent_until, self, request, sent))
            return False
        self.world.arrive(self, request, sent)
        return True

    def read_on(self) -> None:
        """Some records, and a commit now and then."""
        if self.owned and self.world.rng.random() < 0.4:
            place = self.world.rng.choice(sorted(self.owned))
            self.positions[place] += self.world.rng.randint(1, 5)
            self.commit({place})

    def lost(self) -> bool:
        return self.world.rng.random() < self.world.loss

    def step(self) -> None:
        raise AssertionError("each protocol has its own")

    def settled(self) -> bool:
        raise AssertionError("each protocol has its own")

    def leave(self) -> None:
        raise AssertionError("each protocol has its own")


class ModernReader(Reader):
    """A member of the consumer protocol."""

    def __init__(self, world: World, instance: str | None, topics: tuple[str, ...], regex: str | None) -> None:
        super().__init__(world, instance, topics)
        self.regex = regex
        self.member = f"modern-{world.number()}"
        self.target: set[Place] | None = None
        self.revoking: set[Place] = set()
        self.busy_until = -1
        self.said: set[Place] | None = None
        """What it said last that it reads, as far as it knows that this was heard."""
        self.next_beat = 0

    def step(self) -> None:
        now = self.driver.now
        if now < self.silent_until:
            return
        if self.revoking and now >= self.busy_until:
            if not self.commit(self.revoking & self.owned):
                return
            self.drop(self.revoking)
            self.revoking = set()
        if not self.revoking and self.epoch > 0 and self.target is not None and self.target != self.owned:
            self.reconcile()
        if self.epoch == 0 or now >= self.next_beat or (not self.revoking and self.said != self.owned):
            self.beat()
        self.read_on()

    def reconcile(self) -> None:
        assert self.target is not None
        gone = self.owned - self.target
        if gone:
            self.revoking = gone
            self.busy_until = self.driver.now + self.world.rng.choice(self.world.revoking_takes_ms)
        else:
            self.gain(self.target - self.owned)

    def request(self) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.member, member_epoch=self.epoch, instance_id=self.instance
        )
        if self.said is None:
            request.rebalance_timeout_ms = REBALANCE_MS
            request.subscribed_topic_names = list(self.topics) if self.regex is None else []
            request.subscribed_topic_regex = self.regex or ""
        if self.said != self.owned and not self.revoking:
            request.topic_partitions = [
                RequestTopicPartitions(topic_id=self.world.ids[topic], partitions=partitions)
                for topic, partitions in grouped(self.owned).items()
            ]
        return request

    def beat(self) -> None:
        if self.lost():
            self.next_beat = self.driver.now + 1_000
            return
        request = self.request()
        answer = self.driver.beat(request)
        if self.lost():
            self.said = None
            self.next_beat = self.driver.now + 1_000
            return
        if answer.error_code:
            self.refused(E(answer.error_code))
            return
        assert answer.member_id == self.member
        assert answer.member_epoch >= self.epoch, "a member's epoch went back"
        self.epoch = answer.member_epoch
        if request.topic_partitions is not None:
            self.said = set(self.owned)
        self.next_beat = self.driver.now + answer.heartbeat_interval_ms
        if answer.assignment is not None:
            self.target = {
                (self.world.names[topic.topic_id], partition)
                for topic in answer.assignment.topic_partitions
                for partition in topic.partitions
            }

    def refused(self, error: E) -> None:
        assert error in {
            E.FENCED_MEMBER_EPOCH,
            E.UNKNOWN_MEMBER_ID,
            E.GROUP_ID_NOT_FOUND,
            E.UNRELEASED_INSTANCE_ID,
            E.FENCED_INSTANCE_ID,
        }
        if error is E.FENCED_INSTANCE_ID:
            self.world.replaced(self)
        self.start_again()
        self.next_beat = self.driver.now + 500

    def start_again(self) -> None:
        self.owned, self.revoking, self.target, self.said, self.epoch = set(), set(), None, None, 0

    def settled(self) -> bool:
        group = self.driver.machine.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup):
            return False
        return self.epoch == group.epoch and self.owned == self.target and self.said == self.owned

    def leave(self) -> None:
        """As a close does: static members come back, so they leave for a while only."""
        committed = self.commit(self.owned)
        self.owned = set()
        epoch = -1 if self.instance is None else -2
        if committed and self.epoch > 0 and not self.lost():
            self.driver.beat(ConsumerGroupHeartbeatRequest(GROUP, self.member, epoch, self.instance))


class ClassicReader(Reader):
    """A member of the classic protocol, eager or cooperative."""

    REJOIN = {E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION}
    START_OVER = {E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID, E.COORDINATOR_NOT_AVAILABLE}

    def __init__(self, world: World, instance: str | None, topics: tuple[str, ...], *, cooperative: bool) -> None:
        super().__init__(world, instance, topics)
        self.cooperative = cooperative
        self.epoch = -1
        self.joined_epoch = -1
        self.waiting: tuple[str, int] | None = None
        self.rejoin = True
        self.next_beat = 0
        self.assigned_from: dict[str, int] | None = None
        """The topics as they were when it assigned partitions to all; None when another one did."""

    def step(self) -> None:
        if self.driver.now < self.silent_until:
            return
        if self.assigned_from is not None and self.assigned_from != self.world.sizes():
            self.rejoin = True
        if self.waiting is not None:
            kind, token = self.waiting
            answer = self.driver.answers.get(token)
            if answer is not None:
                self.waiting = None
                if self.lost():
                    self.rejoin = True
                elif kind == "join":
                    self.joined(answer)
                else:
                    self.synced(answer)
        elif self.rejoin:
            self.join()
        elif self.driver.now >= self.next_beat:
            self.beat()
        if self.waiting is None and not self.rejoin:  # Kafka's consumer commits only while its generation is settled
            self.read_on()

    @property
    def protocol(self) -> str:
        return "cooperative-sticky" if self.cooperative else "range"

    def join(self) -> None:
        if not self.cooperative:
            self.drop(set(self.owned))
        owned = [OwnedTopic(topic=topic, partitions=partitions) for topic, partitions in grouped(self.owned).items()]
        subscription = ConsumerProtocolSubscription(
            topics=list(self.topics), owned_partitions=owned, generation_id=self.joined_epoch
        )
        metadata = SUBSCRIPTION_VERSION.to_bytes(2) + subscription.encode(SUBSCRIPTION_VERSION)
        self.rejoin = False
        token = self.driver.join(
            GROUP,
            self.member,
            instance=self.instance,
            session=SESSION_MS,
            rebalance=REBALANCE_MS,
            protocols=((self.protocol, metadata),),
        )
        self.waiting = ("join", token)

    def joined(self, answer: Any) -> None:
        error = answer.error_code
        if error == E.MEMBER_ID_REQUIRED:
            self.member, self.rejoin = answer.member_id, True
        elif error:
            self.trouble(E(error))
        else:
            self.member, self.epoch = answer.member_id, answer.generation_id
            assignment = {}
            self.assigned_from = None
            if answer.leader == self.member:
                self.assigned_from = self.world.sizes()
            if answer.leader == self.member and not answer.skip_assignment:
                assignment = self.assign({one.member_id: one.metadata for one in answer.members})
            token = self.driver.sync(
                GROUP,
                self.member,
                self.epoch,
                assignment,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocol_name=self.protocol,
            )
            self.waiting = ("sync", token)

    def assign(self, metadata: dict[str, bytes]) -> dict[str, bytes]:
        """Round and round; cooperatively, a partition that another member still reads is not assigned until it is revoked."""
        wanted: dict[str, list[str]] = {}
        reads: dict[Place, str] = {}
        for member, raw in sorted(metadata.items()):
            subscription = ConsumerProtocolSubscription.read(raw, 2, SUBSCRIPTION_VERSION)
            wanted[member] = subscription.topics
            for topic in subscription.owned_partitions:
                reads.update({(topic.topic, partition): member for partition in topic.partitions})
        given: dict[str, set[Place]] = {member: set() for member in wanted}
        turn = 0
        for topic in sorted(self.world.topics):
            subscribers = [member for member, topics in wanted.items() if topic in topics]
            for partition in range(self.world.topics[topic][1] if subscribers else 0):
                turn += 1
                member = subscribers[turn % len(subscribers)]
                if reads.get((topic, partition), member) == member:
                    given[member].add((topic, partition))
        return {
            member: bytes(2)
            + ConsumerProtocolAssignment(
                assigned_partitions=[AssignedTopic(topic=topic, partitions=own) for topic, own in grouped(places).items()]
            ).encode(0)
            for member, places in given.items()
        }

    def synced(self, answer: Any) -> None:
        if answer.error_code:
            self.trouble(E(answer.error_code))
            return
        new: set[Place] = set()
        if answer.assignment:
            version = int.from_bytes(answer.assignment[:2])
            for topic in ConsumerProtocolAssignment.read(answer.assignment, 2, version).assigned_partitions:
                new |= {(topic.topic, partition) for partition in topic.partitions}
        gone = self.owned - new
        if gone:
            self.commit(gone)
            self.drop(gone)
            self.rejoin = True
        self.gain(new - self.owned)
        self.joined_epoch = self.epoch
        self.next_beat = self.driver.now + 1_000

    def beat(self) -> None:
        self.next_beat = self.driver.now + 1_000
        if self.lost():
            return
        error = self.driver.heartbeat(GROUP, self.member, self.epoch, self.instance)
        if error:
            self.trouble(E(error))

    def trouble(self, error: E) -> None:
        assert error in self.REJOIN | self.START_OVER | {E.INCONSISTENT_GROUP_PROTOCOL}, error
        self.rejoin = True
        if error is E.REBALANCE_IN_PROGRESS:
            return
        self.drop(set(self.owned))
        self.joined_epoch = -1
        if error in self.START_OVER:
            self.member, self.epoch = "", -1
        if error is E.FENCED_INSTANCE_ID:
            self.world.replaced(self)

    def settled(self) -> bool:
        group = self.driver.machine.groups.get(GROUP)
        if self.waiting is not None or self.rejoin or group is None:
            return False
        if self.assigned_from is not None and self.assigned_from != self.world.sizes():
            return False
        if isinstance(group, ClassicGroup):
            return group.state is GroupState.STABLE and self.epoch == group.generation
        return self.epoch == group.epoch

    def leave(self) -> None:
        committed = self.commit(self.owned)
        self.owned = set()
        if committed and self.member and self.instance is None and not self.lost():
            self.driver.leave(GROUP, (self.member, None))


class World:
    """Members and a coordinator, driven by one seed. ``kinds`` says which protocols there are."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.kind = self.rng.choice(["modern", "modern", "mixed", "mixed", "migrating"])
        self.cooperative = self.rng.random() < 0.5
        settings = GroupSettings(
            initial_rebalance_delay_ms=self.rng.choice([0, 3_000]),
            consumer_session_timeout=Bounded(SESSION_MS, 5_000, 60_000),
            consumer_heartbeat_interval=Bounded(self.rng.choice([500, 3_000]), 100, 60_000),
            consumer_assignment_interval=Bounded(self.rng.choice([0, 1_000]), 0, 15_000),
            consumer_assignors=self.rng.choice([("uniform", "range"), ("range", "uniform")]),
        )
        self.driver = ChurnDriver(settings, seed)
        self.loss = self.rng.choice([0.0, 0.03, 0.15])
        self.revoking_takes_ms = [0, 0, 0, 2_000, 2_000, 30_000, NEVER_MS]
        self.topics: dict[str, tuple[Uuid, int]] = {}
        self.ids: dict[str, bytes] = {}
        self.names: dict[bytes, str] = {}
        self._number = 0
        self.late: list[tuple[int, Reader, OffsetCommitRequest, dict[Place, int]]] = []
        self.last_commit: dict[Place, tuple[int, Reader]] = {}
        self.epochs: dict[str, int] = {}
        self.group_epoch = 0
        self.last_group: object = None
        for _ in range(self.rng.randint(1, 3)):
            self.create_topic()
        self.readers: list[Reader] = []
        for _ in range(self.rng.randint(1, 5)):
            self.enter(None)

    def number(self) -> int:
        self._number += 1
        return self._number

    # -- topics --------------------------------------------------------------------------------------------------------------

    def sizes(self) -> dict[str, int]:
        return {name: count for name, (_, count) in self.topics.items()}

    def create_topic(self) -> None:
        name = f"t{self.number()}"
        topic_id = Uuid(self.rng.randbytes(16))
        self.ids[name], self.names[topic_id] = topic_id, name
        self.topics[name] = (topic_id, self.rng.randint(1, 6))
        self.driver.set_topics(self.topics, created=True)

    def change_topics(self) -> None:
        roll = self.rng.random()
        if roll < 0.4:
            self.create_topic()
        elif roll < 0.8 or len(self.topics) == 1:
            name = self.rng.choice(list(self.topics))
            topic_id, count = self.topics[name]
            self.topics[name] = (topic_id, count + self.rng.randint(1, 3))
            self.driver.set_topics(self.topics, created=False)
        else:
            name = self.rng.choice(list(self.topics))
            del self.topics[name]
            for place in [place for place in self.last_commit if place[0] == name]:
                del self.last_commit[place]
            self.driver.set_topics(self.topics, created=False)
            self.driver.run(self.driver.machine.offsets.forget_topics(frozenset({name})))

    # -- members -------------------------------------------------------------------------------------------------------------

    def subscription(self) -> tuple[str, ...]:
        names = sorted(self.topics)
        return tuple(names) if self.rng.random() < 0.6 else tuple(self.rng.sample(names, self.rng.randint(1, len(names))))

    def enter(self, instance: str | None) -> None:
        if instance is None and self.rng.random() < 0.25:
            instance = f"i{self.number()}"
        classic = self.kind != "modern" and self.rng.random() < (0.5 if self.kind == "mixed" else self.rng.choice([0.0, 1.0]))
        if classic:
            self.readers.append(ClassicReader(self, instance, self.subscription(), cooperative=self.cooperative))
        else:
            regex = "t.*" if self.rng.random() < 0.2 else None
            self.readers.append(ModernReader(self, instance, self.subscription(), regex))

    def replaced(self, reader: Reader) -> None:
        """Another member has its instance id: its process would end."""
        if reader in self.readers:
            self.readers.remove(reader)

    def disturb(self) -> None:
        roll = self.rng.random()
        if roll < 0.03 and len(self.readers) > 1:
            gone = self.readers.pop(self.rng.randrange(len(self.readers)))
            if self.rng.random() < 0.6:
                gone.leave()
            if gone.instance is not None and self.rng.random() < 0.7:
                self.enter(gone.instance)
        elif roll < 0.06 and len(self.readers) < 7:
            self.enter(None)
        elif roll < 0.09:
            paused = self.rng.choice(self.readers)
            paused.silent_until = max(paused.silent_until, self.driver.now + self.rng.randint(1_000, 40_000))
        elif roll < 0.105:
            self.crash()
        elif roll < 0.12:
            self.change_topics()
        elif roll < 0.13:
            self.driver.advance(self.rng.randint(5_000, 60_000))
        elif roll < 0.15:
            self.resubscribe(self.rng.choice(self.readers))

    def resubscribe(self, reader: Reader) -> None:
        reader.topics = self.subscription()
        if isinstance(reader, ModernReader):
            reader.regex = None
            reader.said = None
        elif isinstance(reader, ClassicReader):
            reader.rejoin = True

    def crash(self) -> None:
        before = durable(self.driver.machine)
        if self.rng.random() < 0.5:
            self.driver.compact()
        self.driver.restart()
        after = durable(self.driver.machine)
        # A classic group that was about to rebalance is loaded in its last generation.
        moving = [key for key, value in before.items() if value is None]
        assert {**after, **dict.fromkeys(moving)} == before, "the log does not say what the machine held"
        for reader in self.readers:
            if isinstance(reader, ClassicReader) and reader.waiting is not None:
                reader.waiting, reader.rejoin = None, True

    def arrive(self, reader: Reader, request: OffsetCommitRequest, sent: dict[Place, int]) -> None:
        """A commit reaches the coordinator."""
        for place, error in zip(sorted(sent), self.driver.send_commit(request), strict=True):
            if error:
                continue
            offset, by = self.last_commit.get(place, (0, reader))
            assert sent[place] >= offset or by is reader, f"{place} was at {offset}, a stale member set it to {sent[place]}"
            self.last_commit[place] = (sent[place], reader)

    # -- the run -------------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        group = self.driver.machine.groups.get(GROUP)
        for reader in self.readers:
            if group is None or reader.member not in group.members:
                reader.stale = True
        due = [entry for entry in self.late if entry[0] <= self.driver.now]
        self.late = [entry for entry in self.late if entry[0] > self.driver.now]
        for _, reader, request, sent in due:
            if all(place[0] in self.topics for place in sent):
                self.arrive(reader, request, sent)
        for reader in list(self.readers):
            reader.step()
            reader.stale = reader.stale and bool(reader.owned)
        self.check()

    def check(self) -> None:
        group = self.driver.machine.groups.get(GROUP)
        members = {} if group is None else group.members
        holders = Counter(
            place for reader in self.readers if reader.member in members and not reader.stale for place in reader.owned
        )
        twice = sorted(place for place, count in holders.items() if count > 1)
        assert not twice, f"{twice} have two owners"
        for place, (offset, _) in self.last_commit.items():
            stored = self.driver.machine.offsets.stored.get(GROUP, *place)
            assert stored is not None and stored.offset == offset, place
        if isinstance(group, ConsumerGroup) and group is self.last_group:
            for key, member in group.members.items():
                assert member.epoch >= self.epochs.get(key, -2) or member.epoch in {0, -2}, f"the epoch of {key} went back"
            assert group.epoch >= self.group_epoch, "the group's epoch went back"
        self.last_group = group
        self.epochs = {key: member.epoch for key, member in group.members.items()} if isinstance(group, ConsumerGroup) else {}
        self.group_epoch = group.epoch if isinstance(group, ConsumerGroup) else 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.disturb()
            self.step()
            self.driver.advance(self.rng.randint(1, 1_500))

    def settle(self) -> None:
        """No more trouble, but for what is under way: silences and callbacks that hang."""
        self.loss = 0.0
        self.revoking_takes_ms = [0, 2_000]
        for _ in range(400):
            self.step()
            self.driver.advance(500)
            if self.at_rest():
                return

    def at_rest(self) -> bool:
        group = self.driver.machine.groups.get(GROUP)
        if group is None or group.state not in {ConsumerGroupState.STABLE, GroupState.STABLE} or self.late:
            return False
        if {reader.member for reader in self.readers} != set(group.members) or self.read() != self.wanted():
            return False
        return all(reader.silent_until < self.driver.now and reader.settled() for reader in self.readers)

    def wanted(self) -> Counter[Place]:
        """A subscription."""
        return Counter(
            (topic, partition)
            for topic, (_, count) in self.topics.items()
            if any(topic in reader.topics or getattr(reader, "regex", None) for reader in self.readers)
            for partition in range(count)
        )

    def read(self) -> Counter[Place]:
        """How many read a partition."""
        return Counter(place for reader in self.readers for place in reader.owned if place[0] in self.topics)

    def verdict(self) -> None:
        """Everybody has come to rest, and everything is read by one."""
        group = self.driver.machine.groups[GROUP]
        state = group.state
        assert state in {ConsumerGroupState.STABLE, GroupState.STABLE}, state
        assert {reader.member for reader in self.readers} == set(group.members)
        unsettled = [reader.member for reader in self.readers if not reader.settled()]
        assert not unsettled, f"{unsettled} never came to rest"
        assert self.read() == self.wanted()
        self.crash()


def durable(machine: GroupCoordinator) -> dict[str, Any]:
    """What a machine has to hold after a crash as it did before."""
    found: dict[str, Any] = {"offsets": {key: machine.offsets.stored.of(key) for key in machine.offsets.stored.group_ids()}}
    for key, group in machine.groups.items():
        if isinstance(group, ConsumerGroup):
            found[key] = (
                group.epoch,
                group.metadata_hash,
                group.assignment_epoch,
                dict(group.members),
                {member: dict(target) for member, target in group.target.items() if target},
                dict(group.static),
                {topic: dict(owners) for topic, owners in group.owners.items() if owners},
                dict(group.regexes),
            )
        elif group.state is GroupState.STABLE:
            assigned = {member: bytes(one.assignment) for member, one in group.members.items()}
            found[key] = (group.generation, group.protocol, assigned)
        else:
            found[key] = None
    return found
