"""A whole cluster under simulation: real nodes in virtual time, clients that keep it busy, faults, and what must hold.

``ClusterRun(seed).run()`` is one run: a cluster is formatted and started, clients write, transact, share partitions in groups and
administer while faults come and go; then everything is healed, and it must all move again; then what clients were told is held
against what the replicas have. A violation is raised as ``Violation`` with the seed in its text.
"""

from __future__ import annotations

import collections
import contextlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sim import cluster_security
from sim.clients import History, Transactor, Writer
from sim.cluster_admin import Admin
from sim.cluster_checks import Checks, Violation
from sim.members import ClassicMember, ConsumerMember
from sim.rare import counted
from sim.readers import Reader
from tidelog.metadata.supported_features import default_levels
from tidelog.model.ids import TopicPartition
from tidelog.server.cluster.node_login import PLAIN_TEXT
from tidelog.testing.simulation.client import Client
from tidelog.testing.simulation.cluster import Shape, SimCluster
from tidelog.testing.simulation.faults import ELIGIBLE_REPLICAS, Faults
from tidelog.testing.simulation.loop import Stuck

SETTINGS = {
    "log.roll.ms": "7000",
    "log.index.interval.bytes": "300",
    "log.retention.check.interval.ms": "5000",
    "metadata.log.max.snapshot.interval.ms": "8000",
    "metadata.max.retention.ms": "12000",
}
MEND_S = 150.0
"""A node tries to mend a range again after at most twice the time that it could not, which is that of the faults."""
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
    rare: dict[str, int] = field(default_factory=dict)
    """Branches that most runs of a cluster never take."""
    digest: str = ""
    """A hash of every byte that was sent, from where to where and when: the same for two runs that did the same."""


class ClusterRun:
    """See the module. ``busy_s``: how long faults go on. ``secure``: with logins and an authorizer."""

    def __init__(self, seed: int, *, busy_s: float = 60.0, heal_s: float = 60.0, secure: bool = False) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.busy_s, self.heal_s = busy_s, heal_s
        self.cluster = SimCluster(_shape(self.rng, cluster_security.SETTINGS if secure else {}), self.rng.getrandbits(64))
        self.agenda = self.cluster.agenda
        self.history = History()
        self.faults = Faults(self.cluster, self.rng.getrandbits(64))
        self.checks = Checks(self.cluster, self.history)
        self.security = cluster_security.ClusterSecurity(self, seed) if secure else None
        self.finished = False
        self._next_look = 0.0

    def client(self, *, admin: bool = False) -> Client:
        """One more machine that talks to the cluster."""
        login = PLAIN_TEXT
        if self.security is not None:
            login = cluster_security.ADMIN_LOGIN if admin else cluster_security.LOGINS[cluster_security.APP]
        return Client(self.cluster.process(), self.rng.getrandbits(64), self.cluster.bootstrap, login)

    # Running it

    def run(self) -> Report:
        """The whole of it. Violation when something did not hold."""
        try:
            with counted(self.history.rare), self.security.state.watched() if self.security else contextlib.nullcontext():
                return self._run()
        except (Violation, AssertionError, Stuck) as error:
            raise Violation(
                f"seed {self.seed}, at {self.agenda.now:.3f} s: {type(error).__name__}: {error}; {self.state()}"
            ) from error
        finally:
            self.cluster.end()

    def _run(self) -> Report:
        self.cluster.start()
        self._until(self.cluster.serving, 30, "the cluster starts")
        admin = Admin(self.client(admin=True), self.history, self.cluster, self.rng.getrandbits(64))
        topics = TOPICS if self.security is None else {**TOPICS, **cluster_security.topics()}
        created = admin.client.loop.create_task(admin.create(topics))
        self._until(created.done, 30, "the topics are created")
        created.result()
        if self.security is not None:
            self._prepare(self.security)
        tasks = self._workload(admin)
        self.checks.watch()
        self.faults.begin()
        self._go_on(self.busy_s)
        self.faults.end()
        self._until(self.cluster.serving, self.heal_s, "every node serves again")
        self._until(self._repaired, self.heal_s, "what was damaged is thrown away")
        self._until(self.cluster.healthy, self.heal_s, "every partition is led and in sync again")
        before = self.history.operations
        self._until(lambda: self.history.operations >= before + 20, self.heal_s, "clients get on again")
        self.finished = True
        self._until(lambda: all(task.done() for task in tasks), 2 * self.heal_s, "clients come to an end")
        for task in tasks:
            task.result()
        self._go_on(3.0)
        self._until(self.cluster.healthy, self.heal_s, "every partition is led and in sync at the end")
        self._until(self.checks.transactions_ended, self.heal_s, "every transaction has ended")
        self._until(self._mended, MEND_S, "known damage is replaced by what other replicas have")
        self._until(self._at_rest, self.heal_s, "every partition is led and in sync once all damage is replaced")
        self._compare(admin.client)
        return self._report()

    def _prepare(self, security: cluster_security.ClusterSecurity) -> None:
        task = security.admin.loop.create_task(security.prepare())
        self._until(task.done, 30, "the users and their ACLs are there")
        task.result()
        self._until(security.ready, 30, "every node has read the users and the ACLs")

    def _repaired(self) -> bool:
        """Looked at once in a while: a repair restarts processes."""
        return self._due() and self.faults.damage.repair() and self.cluster.serving()

    def _mended(self) -> bool:
        """Nodes replace what they know to be damaged, the first time within ten seconds; until then a replica's file differs, and
        readers get an error for the batch. Looked at once in a while: it looks at every segment."""
        return self._due() and self.cluster.mended()

    def _at_rest(self) -> bool:
        """A leader may have changed while damage was mended."""
        return self.cluster.healthy() and self.checks.transactions_ended()

    def _due(self) -> bool:
        """Once in a virtual second."""
        if self.agenda.now < self._next_look:
            return False
        self._next_look = self.agenda.now + 1.0
        return True

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
        for number in range(2):
            client = self.client()
            damaged = self.faults.damage.machines
            reader = Reader(client, history, [*plain, *tx], committed=number == 1, damaged=damaged)
            tasks.append(client.loop.create_task(reader.run(stop, 0.5)))
        tasks.append(admin.client.loop.create_task(admin.run(stop)))
        if self.security is not None:
            tasks += self.security.tasks(stop)
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
        problem = self.cluster.problem(self.faults.explains)
        if problem is not None:
            raise Violation(problem)

    def state(self) -> str:
        """Who is up, for the text of a violation."""
        return f"{self.cluster.state()}; {self.cluster.why}; {self.checks.why}; faults: {', '.join(self.faults.told[-12:])}"

    # The end

    def _compare(self, client: Client) -> None:
        self.checks.records()
        self.checks.metadata()
        self.checks.offsets(client, self._finish)
        if self.security is not None:
            self._until(self.security.caught_up, self.heal_s, "every node has the same ACLs and credentials")
            self.security.compare()

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
            controller_changes=self.checks.quorum.changes,
            steps=self.agenda.steps,
            faults=dict(self.faults.done),
            rare=dict(self._rare()),
            digest=self.cluster.network.digest(),
        )

    def _rare(self) -> collections.Counter[str]:
        found = self.history.rare.copy()
        found["replicas thrown away"] += self.faults.damage.repaired
        return +found


def _shape(rng: random.Random, more: Mapping[str, str]) -> Shape:
    """Which cluster a seed is about."""
    eligible = rng.random() < 0.5
    levels = {name: level for name, level in default_levels().items() if eligible or name != ELIGIBLE_REPLICAS}
    return Shape(
        brokers=4 if rng.random() < 0.3 else 3,
        controllers=3 if rng.random() < 0.3 else 0,
        static=rng.random() < 0.3,
        log_dirs=2 if rng.random() < 0.3 else 1,
        levels=levels,
        settings={**SETTINGS, **more},
    )
