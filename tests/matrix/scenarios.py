"""What is done to a cluster while clients use it. Each scenario leaves it whole: all nodes run, network and disks are well.

The faults are those of Kafka's own system tests (replication, round trip, network degrade, reassignment, log dir failure, quorum
reconfiguration), and one-way cuts besides. After each fault, and during it where a majority can reach each other, every client
has to be acknowledged more (``Trial.go_on``).
"""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.network import CLIENTS, Network
from tests.matrix.cluster import MatrixCluster
from tests.matrix.load import STEADY, Load
from tests.node.cluster import ClusterFailed
from tests.node.transactional_run import leader
from tests.transactions.worker import INPUT, OUTPUT, PARTITIONS

LEADER, CONTROLLER = "leader", "controller"
SESSION_S = 3.0
"""``broker.session.timeout.ms`` of the nodes."""
LATENCY_S, JITTER_S = 0.03, 0.02


@dataclass
class Trial:
    """A cluster under load. ``bounces``: how often a node is bounced; ``more``: how much every client must go on."""

    cluster: MatrixCluster
    load: Load
    say: Callable[[str], None]
    bounces: int = 5
    more: int = 10
    long_s: float = 2 * SESSION_S

    def victim(self, role: str) -> int:
        """The leader of the first input partition, or the active controller."""
        if role == CONTROLLER:
            return self.cluster.controller()
        return self.cluster.until(lambda: leader(self.cluster, INPUT, 0), f"a leader of {INPUT}-0")

    def go_on(self, *kinds: str) -> None:
        """Every client, or these, makes progress."""
        self.load.go_on(self.more, kinds) if kinds else self.load.go_on(self.more)

    def whole(self) -> None:
        """All is well again: every client goes on, and every partition is in sync."""
        self.go_on()
        self.cluster.in_sync()

    def others_lead(self, victim: int, role: str) -> None:
        """Wait until it leads no partition, or is not the active controller any more."""

        def lost() -> bool:
            if role == CONTROLLER:
                told = self.cluster.quorum_without(victim)
                return told is not None and told.leader_id != victim
            return not self.cluster.leads(victim)

        self.cluster.until(lost, f"others lead instead of node {victim}")


Scenario = Callable[[Trial], None]


def stop(role: str, *, clean: bool) -> Scenario:
    """A node ends, all go on without it, it comes back."""

    def run(trial: Trial) -> None:
        victim = trial.victim(role)
        trial.say(f"{'stop' if clean else 'kill -9'} node {victim} ({role})")
        (trial.cluster.stop if clean else trial.cluster.kill)(victim)
        trial.go_on()
        trial.cluster.start(victim)

    return run


def bounce(role: str, *, clean: bool) -> Scenario:
    """A node ends and restarts at once; five times, each time the node that has the role then."""

    def run(trial: Trial) -> None:
        for number in range(trial.bounces):
            victim = trial.victim(role)
            trial.say(f"bounce {number + 1} of {trial.bounces}, {'clean' if clean else 'hard'}: node {victim} ({role})")
            (trial.cluster.stop if clean else trial.cluster.kill)(victim)
            trial.cluster.start(victim)
            trial.whole()

    return run


def pause(role: str) -> Scenario:
    """A node hangs for longer than its session, and goes on as if nothing had been."""

    def run(trial: Trial) -> None:
        victim = trial.victim(role)
        trial.say(f"SIGSTOP node {victim} ({role})")
        trial.cluster.pause(victim)
        try:
            trial.others_lead(victim, role)
            trial.go_on()
        finally:
            trial.cluster.resume(victim)

    return run


def isolate(role: str) -> Scenario:
    """Neither nodes nor clients reach the node."""

    def run(trial: Trial) -> None:
        victim = trial.victim(role)
        trial.say(f"node {victim} ({role}) is cut off from nodes and clients")
        with trial.cluster.faulty(lambda network: network.part([victim], trial.cluster.everybody())):
            trial.others_lead(victim, role)
            trial.go_on()

    return run


def peers(role: str) -> Scenario:
    """The node and its peers do not reach each other; clients reach all of them, and may believe the wrong one for a while."""

    def run(trial: Trial) -> None:
        victim = trial.victim(role)
        trial.say(f"node {victim} ({role}) is cut off from nodes, not from clients")
        with trial.cluster.faulty(lambda network: network.part([victim], trial.cluster.ids)):
            trial.others_lead(victim, role)
            trial.go_on(STEADY)

    return run


def one_way(role: str, *, outwards: bool) -> Scenario:
    """What the node sends does not reach its peers; or the other way round."""

    def run(trial: Trial) -> None:
        victim, others = trial.victim(role), trial.cluster.ids
        trial.say(f"node {victim} ({role}) {'is not heard by' if outwards else 'does not hear'} other nodes")

        def change(network: Network) -> None:
            network.cut([victim], others) if outwards else network.cut(others, [victim])

        with trial.cluster.faulty(change):
            trial.others_lead(victim, role)
            trial.go_on(STEADY)

    return run


def clients(trial: Trial) -> None:
    """Clients reach no node for twice the session timeout; then only the leader of a partition is out of their reach."""
    for out_of_reach in (trial.cluster.ids, [trial.victim(LEADER)]):
        trial.say(f"clients do not reach {out_of_reach}")
        ways = [(CLIENTS, each) for each in out_of_reach]
        with trial.cluster.faulty(lambda network, ways=ways: network.part([CLIENTS], [each for _, each in ways])):  # type: ignore[misc]
            time.sleep(trial.long_s)
        trial.go_on()


def latency(trial: Trial) -> None:
    """All packets are slower for a while; no node loses a role over it."""
    everybody = trial.cluster.everybody()
    epoch = trial.cluster.epoch()
    trial.say(f"{LATENCY_S * 1000:.0f} to {(LATENCY_S + JITTER_S) * 1000:.0f} ms each way between all")
    with trial.cluster.faulty(lambda network: network.slow(everybody, everybody, LATENCY_S, JITTER_S)):
        trial.go_on()
        later = trial.cluster.epoch()
    trial.say(f"the quorum's epoch was {epoch} and is {later}")


def disk(error: int, *, metadata: bool) -> Scenario:
    """A log dir fails: others serve its replicas; with the metadata's dir the node ends. Later it is started, mended."""

    def run(trial: Trial) -> None:
        cluster = trial.cluster
        victim, partition, log_dir = (trial.victim(CONTROLLER), "", 0) if metadata else _beside_metadata(trial)
        trial.say(f"{errno.errorcode[error]} in log dir {log_dir} of node {victim} {partition and f'with {partition}'}")
        cluster.spoil(victim, log_dir, error)
        try:
            if metadata:
                cluster.until(lambda: cluster.running[victim].poll() is not None, f"node {victim} ends without its metadata")
                cluster.kill(victim)
            else:
                cluster.until(lambda: not cluster.leads(victim, partition), f"others lead {partition} than node {victim}")
            trial.go_on()
        finally:
            cluster.spoil(victim, log_dir, 0)
        if victim in cluster.running:
            cluster.kill(victim)  # a log dir that failed stays out of use until the node is started again
        cluster.start(victim)

    return run


def _beside_metadata(trial: Trial) -> tuple[int, str, int]:
    """A leader, its partition and the log dir, which is not the one with the metadata."""

    def found() -> tuple[int, str, int] | None:
        for topic in (INPUT, OUTPUT):
            for index in range(PARTITIONS):
                victim = leader(trial.cluster, topic, index)
                if victim is not None and trial.cluster.holds(victim, f"{topic}-{index}") == 1:
                    return victim, f"{topic}-{index}", 1
        return None

    return trial.cluster.until(found, "a leader in a log dir without the metadata")


def reassign(*, clean: bool) -> Scenario:
    """Partitions move to other brokers while brokers are bounced."""

    def run(trial: Trial) -> None:
        cluster = trial.cluster
        ids = cluster.brokers
        for number in range(2):
            wanted = {
                (INPUT, index): [ids[(index + number + step) % len(ids)] for step in range(3)] for index in range(PARTITIONS)
            }
            trial.say(f"move {INPUT} to {list(wanted.values())}")
            cluster.move(wanted)
            victim = trial.victim(LEADER)
            (cluster.stop if clean else cluster.kill)(victim)
            trial.go_on()
            cluster.start(victim)
            cluster.until(lambda: not cluster.moving(), "reassignments end")
            trial.whole()

    return run


def quorum(trial: Trial) -> None:
    """The active controller is taken out of the quorum and joins it again; on another disk where it is nothing else."""
    cluster = trial.cluster
    victim = cluster.controller()
    trial.say(f"controller {victim} is removed")
    cluster.remove_controller(victim)
    cluster.until(lambda: cluster.voters() == [each for each in cluster.controllers if each != victim], "one voter less")
    trial.go_on()
    if not cluster.combined:
        cluster.stop(victim)
        for each in cluster.dirs(victim):
            shutil.rmtree(each)
        cluster.format_node(victim, None)
        cluster.start(victim)
    trial.say(f"controller {victim} is added")
    _patient(trial, lambda: cluster.add_controller(victim))
    cluster.until(lambda: cluster.voters() == cluster.controllers, "all vote again")


def _patient(trial: Trial, deed: Callable[[], None]) -> None:
    """A new voter has to have caught up first; the tool says so until then."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return deed()
        except ClusterFailed as failed:
            if time.monotonic() > deadline:
                raise
            trial.say(str(failed).strip().splitlines()[-1])


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario of the matrix. ``brokers``: how many it needs. ``errors``: nodes may complain of what was done to them."""

    run: Scenario
    brokers: int = 3
    errors: bool = False
    planted: bool = False
    """A violation is planted: the run is good when the checker finds it."""


def _matrix() -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for role in (LEADER, CONTROLLER):
        for clean, how in ((True, "clean"), (False, "hard")):
            rows[f"{how}-stop-{role}"] = Row(stop(role, clean=clean))
            rows[f"{how}-bounce-{role}"] = Row(bounce(role, clean=clean))
        rows[f"pause-{role}"] = Row(pause(role))
        rows[f"isolate-{role}"] = Row(isolate(role))
        rows[f"peers-{role}"] = Row(peers(role))
        rows[f"unheard-{role}"] = Row(one_way(role, outwards=True))
        rows[f"deaf-{role}"] = Row(one_way(role, outwards=False))
    rows["clients-cut"] = Row(clients)
    rows["latency"] = Row(latency)
    rows["disk-fails"] = Row(disk(errno.EIO, metadata=False), errors=True)
    rows["disk-full"] = Row(disk(errno.ENOSPC, metadata=False), errors=True)
    rows["metadata-disk-fails"] = Row(disk(errno.EIO, metadata=True), errors=True)
    rows["reassign-clean-bounce"] = Row(reassign(clean=True), brokers=4)
    rows["reassign-hard-bounce"] = Row(reassign(clean=False), brokers=4)
    rows["quorum-change"] = Row(quorum)
    rows["planted-acks-1"] = Row(unsafe, planted=True)
    return rows


def unsafe(trial: Trial) -> None:
    """The violation that is planted: what only the leader has is recorded as acknowledged by all (``--acks 1``), and the leader
    dies while its followers hang."""
    cluster = trial.cluster
    victim = trial.victim(LEADER)
    others = [each for each in cluster.brokers if each != victim]
    trial.say(f"only node {victim} is awake, and is killed")
    cluster.pause(*others)
    try:
        trial.go_on(STEADY)
        cluster.kill(victim)
    finally:
        cluster.resume(*others)
    trial.go_on()
    cluster.start(victim)


MATRIX = _matrix()
