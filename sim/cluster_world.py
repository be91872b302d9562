"""A whole cluster under simulation: real nodes in virtual time, clients that keep it busy, faults, and what must hold.

``ClusterRun(seed).run()`` is one run: a cluster is formatted and started, clients write, transact, share partitions in groups and
administer while faults come and go; then everything is healed, and it must all move again; then what clients were told is held
against what the replicas have. A violation is raised as ``Violation`` with the seed in its text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sim.clients import Client, History, Transactor, Writer
from sim.cluster_admin import Admin
from sim.cluster_checks import Checks, Violation
from sim.cluster_faults import Faults
from sim.disk import SimDisk
from sim.loop import Agenda, SimLoop, Stuck
from sim.machines import EPOCH_MS, Machine
from sim.members import ClassicMember, ConsumerMember
from sim.network import Network
from tidelog.metadata.features import default_levels
from tidelog.model.ids import TopicPartition, Uuid
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint, Voter

ELIGIBLE_REPLICAS = "eligible.leader.replicas.version"
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "800",
    "controller.quorum.fetch.timeout.ms": "1500",
    "controller.quorum.election.backoff.max.ms": "400",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.backoff.ms": "200",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "log.roll.ms": "7000",
    "auto.create.topics.enable": "false",
    "leader.imbalance.check.interval.seconds": "10",
    "tidelog.http.listener": "",
}
TOPICS = {"plain": 4, "tx": 3, "shared": 4}


@dataclass(slots=True)
class Report:
    """What a run went through."""

    seed: int
    virtual_s: float = 0.0
    operations: int = 0
    acked: int = 0
    committed: int = 0
    aborted: int = 0
    leader_changes: int = 0
    controller_changes: int = 0
    steps: int = 0
    faults: dict[str, int] = field(default_factory=dict)


class ClusterRun:
    """See the module. ``busy_s``: how long faults go on."""

    def __init__(self, seed: int, *, busy_s: float = 60.0, heal_s: float = 60.0) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.busy_s, self.heal_s = busy_s, heal_s
        self.agenda = Agenda(seed)
        self.network = Network(self.agenda, self.rng.getrandbits(64))
        self.history = History()
        self.eligible = self.rng.random() < 0.5
        """With eligible leader replicas (KIP-966): who lost its power is not elected then, however few are left."""
        self.machines = self._machines()
        self.brokers = [each for each in self.machines if each.is_broker]
        self.faults = Faults(self.agenda, self.network, self.machines, self.rng.getrandbits(64))
        self.checks = Checks(self.brokers, self.history)
        self.faults.settled = lambda: self.eligible and self.checks.healthy()
        self.finished = False
        self._clients = 0

    # Making it

    def _machines(self) -> list[Machine]:
        separate = self.rng.random() < 0.3
        levels = default_levels() | ({ELIGIBLE_REPLICAS: 1} if self.eligible else {})
        brokers = [1, 2, 3] + ([4] if self.rng.random() < 0.3 else [])
        controllers = [101, 102, 103] if separate else [1, 2, 3]
        voters = VoterSet.of(
            Voter(each, _directory_id(each), (Endpoint("CONTROLLER", _host(each), 9093),)) for each in controllers
        )
        machines = []
        for node_id in sorted({*brokers, *controllers}):
            disk = SimDisk(self.rng.getrandbits(32))
            initial = voters if node_id in controllers else None
            request = FormatRequest(["/data"], node_id, CLUSTER_ID, initial_voters=initial, levels=levels)
            format_dirs(disk, request, rng=random.Random(node_id), now_ms=EPOCH_MS)
            disk.sync_dir("/")  # the directory that log dirs lie in was there before
            properties = self._properties(node_id, brokers, controllers)
            seed = self.rng.getrandbits(64)
            machines.append(Machine(self.agenda, self.network, node_id, _host(node_id), properties, seed, disk))
        return machines

    def _properties(self, node_id: int, brokers: Sequence[int], controllers: Sequence[int]) -> dict[str, str]:
        roles, listeners = [], []
        if node_id in brokers:
            roles.append("broker")
            listeners.append(f"PLAINTEXT://{_host(node_id)}:9092")
        if node_id in controllers:
            roles.append("controller")
            listeners.append(f"CONTROLLER://{_host(node_id)}:9093")
        return {
            **SETTINGS,
            "process.roles": ",".join(roles),
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(f"{_host(each)}:9093" for each in controllers),
            "log.dirs": "/data",
        }

    def client(self) -> Client:
        """One more machine that talks to the cluster."""
        self._clients += 1
        loop = SimLoop(self.agenda, f"client {self._clients}", seed=self.rng.getrandbits(64))
        self.network.attach(loop, f"10.1.0.{self._clients}")
        return Client(loop, self.rng.getrandbits(64), [(each.host, 9092) for each in self.brokers])

    # Running it

    def run(self) -> Report:
        """The whole of it. Violation when something did not hold."""
        try:
            return self._run()
        except (Violation, AssertionError, Stuck) as error:
            raise Violation(
                f"seed {self.seed}, at {self.agenda.now:.3f} s: {type(error).__name__}: {error}; {self.state()}"
            ) from error

    def _run(self) -> Report:
        for machine in self.machines:
            machine.start()
        self._until(lambda: all(each.serving for each in self.machines), 30, "the cluster starts")
        admin = Admin(self.client(), self.history, self.rng.getrandbits(64))
        created = admin.client.loop.create_task(admin.create(TOPICS))
        self._until(created.done, 30, "the topics are created")
        created.result()
        tasks = self._workload(admin)
        self.checks.watch(self.agenda)
        self.faults.begin(self.busy_s)
        self._go_on(self.busy_s)
        self.faults.end()
        self._until(lambda: all(each.serving for each in self.machines), self.heal_s, "every node serves again")
        self._until(self.checks.healthy, self.heal_s, "every partition is led and in sync again")
        before = self.history.operations
        self._until(lambda: self.history.operations >= before + 20, self.heal_s, "clients get on again")
        self.finished = True
        self._until(lambda: all(task.done() for task in tasks), self.heal_s, "clients come to an end")
        for task in tasks:
            task.result()
        self._go_on(3.0)
        self._until(self.checks.healthy, self.heal_s, "every partition is led and in sync at the end")
        self._until(self.checks.transactions_ended, self.heal_s, "every transaction has ended")
        self._compare(admin.client)
        return self._report()

    def _workload(self, admin: Admin) -> list:
        history, stop = self.history, lambda: self.finished
        plain = [TopicPartition("plain", index) for index in range(TOPICS["plain"])]
        tx = [TopicPartition("tx", index) for index in range(TOPICS["tx"])]
        tasks = []
        for number in range(3):
            client = self.client()
            tasks.append(client.loop.create_task(Writer(client, history, f"w{number}", plain).run(stop, 0.1)))
        for number in range(2):
            client = self.client()
            tasks.append(client.loop.create_task(Transactor(client, history, f"t{number}", tx).run(stop, 0.3)))
        for kind in (ClassicMember, ConsumerMember):
            for _ in range(2):
                client = self.client()
                member = kind(client, history, kind.__name__, "shared", TOPICS["shared"])
                tasks.append(client.loop.create_task(member.run(stop, 0.5)))
        tasks.append(admin.client.loop.create_task(admin.run(stop, [each.node_id for each in self.brokers])))
        return tasks

    def _go_on(self, seconds: float) -> None:
        deadline = self.agenda.now + seconds
        self.agenda.run_until(lambda: bool(self.history.wrong), deadline)
        self._check_now()

    def _until(self, done: Callable[[], bool], seconds: float, what: str) -> None:
        if not self.agenda.run_until(lambda: bool(self.history.wrong) or done(), self.agenda.now + seconds):
            raise Violation(f"not within {seconds:.0f} s: {what}; {self.state()}")
        self._check_now()

    def _check_now(self) -> None:
        if self.history.wrong:
            raise Violation("; ".join(self.history.wrong[:3]))
        for machine in self.machines:
            problems = machine.problems + (machine.loop.problems if machine.loop is not None else [])
            if problems:
                raise Violation(problems[0])
            if machine.ended is not None and not self.faults.explains(machine):
                raise Violation(f"node {machine.node_id} ended: {machine.ended}")

    def state(self) -> str:
        """Who is up, for the text of a violation."""

        def word(machine: Machine) -> str:
            if machine.ended is not None:
                return machine.ended
            return "serving" if machine.serving else "starting" if machine.running else "down"

        nodes = ", ".join(f"{each.node_id}: {word(each)}" for each in self.machines)
        return f"{nodes}; {self.checks.why}; faults: {', '.join(self.faults.told[-12:])}"

    # The end

    def _compare(self, client: Client) -> None:
        self.checks.records()
        self.checks.metadata()
        self.checks.offsets(client, self._finish)

    def _finish(self, task: object) -> None:
        self._until(task.done, self.heal_s, "the groups' offsets are told")  # type: ignore[attr-defined]

    def _report(self) -> Report:
        return Report(
            self.seed,
            virtual_s=self.agenda.now,
            operations=self.history.operations,
            acked=len(self.history.acked),
            committed=len(self.history.committed),
            aborted=len(self.history.aborted),
            leader_changes=self.checks.leader_changes,
            controller_changes=self.checks.controller_changes,
            steps=self.agenda.steps,
            faults=dict(self.faults.done),
        )


def _host(node_id: int) -> str:
    return f"10.0.0.{node_id}"


def _directory_id(node_id: int) -> Uuid:
    return Uuid(node_id.to_bytes(2, "big") * 8)
