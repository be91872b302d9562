"""A simulated cluster around the real controller: brokers that come, fall silent, stop in order and lose power; leaders that ask
for ISRs with what they know; administrators; controllers that are replaced. One seed, one run.

Time goes in steps. In each, the controller ticks, brokers hear of records and send heartbeats, leaders write, followers fetch,
and what was sent earlier arrives. After each group of records ``controller_checkers`` look at it. At the end all faults stop, and
everything has to be in order again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from sim.controller_admin import Method, random_wish
from sim.controller_brokers import PartitionId, SimBroker, common_prefix
from sim.controller_checkers import Acknowledged, check_eligible, check_memory, check_partition, least_in_sync, require
from sim.controller_security import Security
from tidelog.controller.partition_rules import elr_enabled
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult, ControllerSettings
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import RECOVERING, ClusterImage
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.alter_partition import AlterPartitionRequest
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from tidelog.protocol.messages.create_topics import CreatableTopicConfigs
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord

CLUSTER = "sim"
STEP_MS = 500
SETTINGS = ControllerSettings(
    broker_session_timeout_ms=9_000, leader_imbalance_check_interval_ms=20_000, unclean_leader_election_interval_ms=15_000
)
ELR = "eligible.leader.replicas.version"
LEVELS = (11, 12, 16, 17, 22, 30, 30, 30)


class AnySettings:
    """Every setting may be set."""

    def problem(self, resource_type: int, resource_name: str, settings: Mapping[str, str]) -> tuple[ErrorCode, str] | None:
        return None

    def is_list(self, resource_type: int, name: str) -> bool:
        return False

    def default(self, resource_type: int, name: str) -> str:
        return ""

    def topic_rows(self, overrides: Mapping[str, str], image: ClusterImage) -> list[CreatableTopicConfigs]:
        return []


class World:
    """See the module. ``steps`` of faults, then so many of peace."""

    def __init__(self, seed: int, steps: int = 160, peace: int = 160) -> None:
        self.rng = random.Random(seed)
        self.steps, self.peace = steps, peace
        self.peaceful = False
        self.now_ms = 0
        self.counts: Counter[str] = Counter()
        self.acked = Acknowledged()
        self.level = self.rng.choice(LEVELS)
        self.with_elr = self.level >= 30 and self.rng.random() < 0.6
        self.written: list[tuple[tuple[Any, ...], int]] = []
        """Groups of records, each with its last offset: the log."""
        self.images: list[ClusterImage] = []
        """After each group; brokers see some of them."""
        self.in_flight: list[tuple[int, AlterPartitionRequest, bool]] = []
        """When it arrives, and whether it does so for the first time."""
        self.next_record = 0
        self.heard_ms: dict[int, int] = {}
        """When the controller heard each broker last, or began."""
        self.brokers = {n: SimBroker(n, f"r{n % 3}") for n in range(1, self.rng.randint(3, 6) + 1)}
        self.controller = self._controller(ClusterImage(cluster_id=CLUSTER))
        levels = [FeatureLevelRecord(name="metadata.version", feature_level=self.level)]
        if self.with_elr:
            levels.append(FeatureLevelRecord(name=ELR, feature_level=1))
        self._commit(self.controller.bootstrap(levels))
        self.security = Security(self, seed)
        for broker in self.brokers.values():
            broker.start()

    def _controller(self, image: ClusterImage) -> QuorumController:
        return QuorumController(image, rng=self.rng, rules=AnySettings(), settings=SETTINGS)

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def run(self) -> None:
        """Violation when a promise is broken."""
        for step in range(self.steps + self.peace):
            self.now_ms += STEP_MS
            if step < self.steps:
                self._fault()
                if self.rng.random() < 0.3:
                    self.ask(*random_wish(self))
                self.security.change()
            elif step == self.steps:
                self._heal()
            self._step()
        self._check_memory()
        self._check_order()
        self.security.check_agreement()

    # the controller

    def ask(self, handler: Method, request: Any) -> Any:
        """The response, or None when the request as a whole is refused."""
        try:
            return self._commit(handler(self.controller, request, self.now_ms))
        except KafkaError as refused:
            self.counts[f"refused {refused.code.name}"] += 1
            return None

    def _commit(self, result: ControllerResult) -> Any:
        if not result.records:
            return result.response
        before = self.image
        last_offset = self.controller.next_offset + len(result.records) - 1
        self.written.append((result.records, last_offset))
        delta = self.controller.replay(result.records, last_offset, 1, self.now_ms)
        self.images.append(self.image)
        for topic_id, changed in delta.topics.changed.items():
            for number in sorted(changed.changed):
                old = before.topics.by_id.get(topic_id)
                was = old.partitions[number] if old is not None and number < len(old.partitions) else None
                self._changed((topic_id, number), was)
        if self.with_elr:
            check_eligible(self.image, SETTINGS.min_insync_replicas)
        self.counts["records"] += len(result.records)
        return result.response

    def _changed(self, where: PartitionId, before: Any) -> None:
        partition = self.image.topics.by_id[where[0]].partitions[where[1]]
        check_partition(self.image, where, partition, before)
        if before is None or not partition.has_leader or partition.leader_epoch == before.leader_epoch:
            return
        self.counts["leader elected"] += partition.leader != before.leader
        self.counts["leader from ELR"] += partition.leader in before.elr
        unclean = partition.leader_recovery_state == RECOVERING and partition.isr == (partition.leader,)
        self.counts["unclean leader"] += unclean
        leader = self.brokers[partition.leader]
        if not leader.alive or leader.epoch != self.image.brokers[leader.id].epoch:
            return  # Elected, but gone: it never leads, and its next process is another broker.
        agreed = unclean or partition.leader not in {*before.isr, *before.elr}
        self.acked.elected(where, partition, leader, clean=not agreed)

    def _check_memory(self) -> None:
        delta = ClusterDelta(ClusterImage(cluster_id=CLUSTER))
        for records, _ in self.written:
            for record in records:
                delta.replay(record)
        check_memory(self.image, delta.apply(self.image.offset, 1, 0), self.controller.partitions)

    def replace_controller(self) -> None:
        """Another one takes over: it has the records, and nothing else."""
        self._check_memory()
        self.controller = self._controller(self.image)
        self.heard_ms = dict.fromkeys(self.brokers, self.now_ms)
        self.counts["controller replaced"] += 1

    # time

    def _step(self) -> None:
        more = True
        while more:
            more = self._commit(self.controller.tick(self.now_ms, self.now_ms))
        for known in self.image.brokers.values():
            silent_ms = self.now_ms - self.heard_ms.get(known.id, self.now_ms)
            require(known.fenced or silent_ms <= SETTINGS.broker_session_timeout_ms + 2 * STEP_MS, f"{known.id} is not fenced")
        arriving = [each for each in self.in_flight if each[0] <= self.now_ms]
        self.in_flight = [each for each in self.in_flight if each[0] > self.now_ms]
        for _, request, first in arriving:
            self._alter_partition(request, first=first)
        for broker in self.brokers.values():
            if broker.alive and not broker.cut:
                self._follow_metadata(broker)
                self._talk(broker)
        for topic in list(self.image.topics.by_id.values()):
            for number in range(len(topic.partitions)):
                self._replicate((topic.id, number))

    def _alter_partition(self, request: AlterPartitionRequest, *, first: bool) -> None:
        response = self.ask(QuorumController.alter_partition, request)
        answer = None if response is None else response.topics[0].partitions[0]
        code = None if answer is None else ErrorCode(answer.error_code)
        unchanged = answer is not None and answer.partition_epoch == request.topics[0].partitions[0].partition_epoch
        self.counts["ISR changed" if code is ErrorCode.NONE else f"ISR refused: {code.name if code else 'stale'}"] += 1
        if code is ErrorCode.NONE and not unchanged:
            for member in request.topics[0].partitions[0].new_isr_with_epochs:
                epoch = self.image.brokers[member.broker_id].epoch
                require(member.broker_epoch in (-1, epoch), f"an old process of {member.broker_id} is taken into an ISR")
        if first and (unchanged or code is ErrorCode.INELIGIBLE_REPLICA):  # With other errors a leader waits for metadata.
            self.brokers[request.broker_id].refused(request)

    def _follow_metadata(self, broker: SimBroker) -> None:
        if self.rng.random() < 0.8:
            behind = self.rng.choice((0, 0, 0, 1, 3))
            image = self.images[max(len(self.images) - 1 - behind, 0)]
            if image.offset > broker.view.offset:
                broker.view = image
                self.security.followed(broker, image)

    def _talk(self, broker: SimBroker) -> None:
        if broker.epoch < 0:
            request = self._registration(broker)
            response = self.ask(QuorumController.register_broker, request)
            if response is not None:
                broker.epoch = response.broker_epoch
                self.counts["registered"] += 1
            return
        if self.now_ms < broker.next_heartbeat_ms:
            return
        broker.next_heartbeat_ms = self.now_ms + (500 if broker.fenced or broker.leaving else 2_000)
        beat = BrokerHeartbeatRequest(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            current_metadata_offset=broker.view.offset,
            want_shut_down=broker.leaving,
        )
        response = self.ask(QuorumController.broker_heartbeat, beat)
        if response is None:
            broker.epoch = -1  # Unregistered: the process registers again.
            return
        broker.fenced = response.is_fenced
        self.heard_ms[broker.id] = self.now_ms
        if broker.leaving and response.should_shut_down:
            broker.stop(clean=True)
            self.counts["stopped in order"] += 1

    def _registration(self, broker: SimBroker) -> BrokerRegistrationRequest:
        levels = {"metadata.version": (7, 30), ELR: (0, 1)}
        return BrokerRegistrationRequest(
            broker_id=broker.id,
            cluster_id=CLUSTER,
            incarnation_id=bytes([broker.id, broker.incarnation % 256]) * 8,
            listeners=[Listener(name="P", host="h", port=broker.id, security_protocol=0)],
            features=[Feature(name, low, high) for name, (low, high) in levels.items()],
            rack=broker.rack,
            log_dirs=[Uuid(bytes([200, broker.id]) * 8)],
            previous_broker_epoch=broker.previous_epoch,
        )

    # data

    def _replicate(self, where: PartitionId) -> None:
        rng = self.rng
        for leader in self.brokers.values():
            partition = leader.leads(where)
            if partition is None:
                continue
            if rng.random() < 0.4:
                leader.logs.setdefault(where, []).append((partition.leader_epoch, self.next_record))
                self.next_record += 1
            for follower in self.brokers.values():
                theirs = follower.partition(where)
                same_view = theirs is not None and (theirs.leader, theirs.leader_epoch) == (leader.id, partition.leader_epoch)
                if follower is leader or not follower.alive or not same_view or follower.id not in partition.replicas:
                    continue
                if follower.epoch < 0:
                    continue  # a node fetches once it is registered
                if rng.random() < 0.7:
                    self.counts["truncated"] += follower.fetch_from(leader, where, partition, rng.randint(0, 4)) > 0
            self._acknowledge(leader, where)
            if rng.random() < 0.4:
                self._look_at_isr(leader, where)
        if rng.random() < 0.05:
            rng.choice(list(self.brokers.values())).sync()

    def _acknowledge(self, leader: SimBroker, where: PartitionId) -> None:
        topic = leader.view.topics.by_id[where[0]]
        least = least_in_sync(leader.view, topic, topic.partitions[where[1]], SETTINGS.min_insync_replicas)
        entries = leader.acknowledged(where, self.brokers, least)
        if where[0] in self.image.topics.by_id and entries:
            epoch = topic.partitions[where[1]].leader_epoch
            self.counts["acknowledged"] += self.acked.add(where, entries, epoch)

    def _look_at_isr(self, leader: SimBroker, where: PartitionId) -> None:
        """Who follows closely comes in, who does not goes out; now and then also who only might be slow."""
        partition = leader.leads(where)
        if partition is None:
            return
        log = leader.logs.setdefault(where, [])
        safe = len(self.acked.records.get(where, ()))
        isr = [leader.id]
        for member in partition.replicas:
            fetched = leader.seen.get(where, {}).get(member)
            current = fetched is not None and fetched[1] == partition.leader_epoch
            same = common_prefix(log, self.brokers[member].logs.get(where, []))
            if member == leader.id:
                continue
            keeps_up = self.brokers[member].alive if member in partition.isr else current and same >= safe
            if keeps_up and (member not in partition.isr or self.peaceful or self.rng.random() < 0.95):
                isr.append(member)
        isr.sort(key=partition.replicas.index)
        if partition.leader_recovery_state == RECOVERING:
            isr = [leader.id]
        request = None if leader.cut else leader.wish_for(where, isr)
        if request is not None:
            delay = 0 if self.peaceful else self.rng.choice((0, 0, 500, 3_000, 12_000, 25_000))
            self.in_flight.append((self.now_ms + delay, request, True))
            if self.rng.random() < 0.1:
                self.in_flight.append((self.now_ms + delay, request, False))

    # faults

    def _fault(self) -> None:
        rng = self.rng
        broker = rng.choice(list(self.brokers.values()))
        roll = rng.random()
        if roll < 0.06 and broker.alive:
            power = self.with_elr and rng.random() < 0.5
            broker.stop(clean=False, power_lost=power)
            self.counts["power lost" if power else "killed"] += 1
        elif roll < 0.16 and not broker.alive:
            broker.start()
            self.security.restarted(broker)
            self.counts["started"] += 1
        elif roll < 0.20 and broker.alive and broker.epoch >= 0:
            broker.leaving = True
        elif roll < 0.26:
            broker.cut = not broker.cut
            self.counts["cut off"] += broker.cut
        elif roll < 0.28:
            self.replace_controller()

    def _heal(self) -> None:
        self.peaceful = True
        for broker in self.brokers.values():
            broker.cut = False
            if not broker.alive or broker.leaving:
                if broker.alive:
                    broker.stop(clean=False)
                broker.start()

    def _check_order(self) -> None:
        """With everybody back, everything comes back."""
        image = self.image
        require(all(broker.alive and not broker.fenced for broker in self.brokers.values()), "a broker stays out of service")
        for topic in image.topics.by_id.values():
            for number, partition in enumerate(topic.partitions):
                name = f"{topic.name}-{number}: {partition}"
                require(partition.has_leader, f"no leader in the end: {name}")
                require(set(partition.isr) == set(partition.replicas), f"not in sync in the end: {name}")
                require(not partition.adding_replicas and not partition.removing_replicas, f"still moving in the end: {name}")
                require(partition.leader == partition.replicas[0], f"not the preferred leader in the end: {name}")
                require(elr_enabled(image) or not partition.elr, f"eligible leaders in the end: {name}")
