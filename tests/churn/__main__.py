"""Thirty group members of four client libraries that come, go, pause, freeze and die, and a node that is killed under them.

``make churn ARGS='--minutes 10 --seed 1'``. Java's and librdkafka's members speak both group protocols, also in one group;
aiokafka and kafka-python speak the classic one. What happened is judged by ``history``; when something did not hold, everything
that was noted is kept and named. The same seed makes the same decisions, but meets them at other moments.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.churn.history import Event, Run, Seen, incomplete, violations
from tests.interop.java import JavaSide
from tests.interop.nodes import FEATURES, ROOT, Node, environment
from tidelog.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from tools.jars import compiled, ensure

TOPICS = {"churn-a": 12, "churn-b": 6}
PARTITIONS = [f"{topic}-{number}" for topic, count in TOPICS.items() for number in range(count)]
HOSTS = ["java"] * 2 + ["librdkafka"] * 3 + ["aiokafka"] * 2 + ["kafka-python"] * 2
SLOTS = {"java": (5, 4), "librdkafka": (4, 4, 4), "aiokafka": (3, 2), "kafka-python": (2, 2)}
CLASSIC_ONLY = [("eager", "classic", "range"), ("cooperative", "classic", "cooperative-sticky")]
BOTH = [
    *CLASSIC_ONLY,
    ("consumer", "consumer", "uniform"),
    ("mixed", "consumer", "uniform"),
    ("mixed", "classic", "range"),
]
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "500",
    "group.consumer.session.timeout.ms": "8000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "300",
}
RECORDS_PER_S = 250
SETTLE_S = 120
OFFSET_FETCH = 5
JVM = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def java_members() -> Path:
    """The folder with ``Members.class``."""
    return compiled("churn", [Path(__file__).with_name("Members.java")], ensure())


@dataclass
class Host:
    """A process with members of one library."""

    kind: str
    slots: int
    number: int
    process: Any = None
    members: dict[str, dict[str, Any]] = field(default_factory=dict)
    frozen_until: float = 0.0
    back_at: float = 0.0
    read_to: int = 0
    """How far its history was looked at."""

    def send(self, command: dict[str, Any]) -> None:
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()


class Producing(threading.Thread):
    """Writes all the time; ``acknowledged`` has what was promised."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.acknowledged: dict[str, set[int]] = {partition: set() for partition in PARTITIONS}
        self.stop = threading.Event()
        settings = {"enable.idempotence": True, "delivery.timeout.ms": 300_000, "linger.ms": 5, "reconnect.backoff.max.ms": 500}
        self.producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "log_level": 0, **settings})
        self.refused: list[str] = []

    def delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.refused.append(str(error))
        else:
            self.acknowledged[f"{message.topic()}-{message.partition()}"].add(message.offset())

    def run(self) -> None:
        number = 0
        while not self.stop.wait(0.02):
            for _ in range(RECORDS_PER_S // 50):
                topic = "churn-a" if number % 3 else "churn-b"
                self.producer.produce(topic, b"%d" % number, partition=number // 3 % TOPICS[topic], on_delivery=self.delivered)
                number += 1
            self.producer.poll(0)
        self.producer.flush(60)


def receive(connection: socket.socket, size: int) -> bytes:
    """Exactly so many bytes. Raises OSError when the connection ends before."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionResetError(f"the connection ended {size - len(data)} bytes too early")
        data += part
    return data


class Looking(threading.Thread):
    """Asks for committed offsets all the time."""

    def __init__(self, bootstrap: str, groups: tuple[str, ...]) -> None:
        super().__init__(daemon=True)
        self.bootstrap, self.groups = bootstrap, groups
        self.seen: list[Seen] = []
        self.stop = threading.Event()

    def run(self) -> None:
        host, port = self.bootstrap.split(":")
        while not self.stop.wait(0.5):
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 5) as connection:
                while not self.stop.wait(0.5):
                    for group in self.groups:
                        self.look(connection, group)

    def look(self, connection: socket.socket, group: str) -> None:
        """By hand: librdkafka 2.16's admin client aborts when a coordinator goes away under this request."""
        asked = time.monotonic_ns()
        body = OffsetFetchRequest(group_id=group, topics=None).encode(OFFSET_FETCH)
        head = struct.pack(">hhih", OffsetFetchRequest.API_KEY, OFFSET_FETCH, 1, -1)
        connection.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        size = struct.unpack(">i", receive(connection, 4))[0]
        answer = OffsetFetchResponse.read(receive(connection, size), 4, OFFSET_FETCH)
        if answer.error_code:
            return  # it is loading
        offsets = {
            f"{topic.name}-{one.partition_index}": one.committed_offset
            for topic in answer.topics
            for one in topic.partitions
            if one.committed_offset >= 0
        }
        self.seen.append(Seen(asked, group, offsets))


class Churn:
    """The run: what is done to whom and when."""

    def __init__(self, args: argparse.Namespace, home: Path) -> None:
        self.rng = random.Random(args.seed)
        self.home = home
        self.roles = CLASSIC_ONLY if args.classic_only else BOTH
        self.groups = tuple(dict.fromkeys(role[0] for role in self.roles))
        java = JavaSide(home / "java.log") if args.broker == "apache" else None
        features = {**FEATURES, "group.version": 0 if args.classic_only else 1}
        self.node = Node(args.broker, home / "node", java, PROPERTIES, features, ports=[args.port, args.port + 1])
        counts: collections.Counter[str] = collections.Counter()
        self.hosts = []
        for number, library in enumerate(HOSTS):
            self.hosts.append(Host(library, SLOTS[library][counts[library]], number))
            counts[library] += 1
        self.named = 0
        self.identity: dict[str, str] = {}
        self.free_instances: dict[tuple[str, str, str, str], list[str]] = {}
        self.done: collections.Counter[str] = collections.Counter()

    # -- hosts and members ---------------------------------------------------------------------------------------------------

    def history(self, host: Host) -> Path:
        return self.home / f"history-{host.number}-{host.kind}.jsonl"

    def launch(self, host: Host) -> None:
        history = str(self.history(host))
        if host.kind == "java":
            command = ["java", *JVM, "-cp", f"{java_members()}:{ensure()}/*", "Members", self.node.bootstrap, history]
        else:
            command = [sys.executable, "-m", "tests.churn.worker", host.kind, self.node.bootstrap, history]
        with (self.home / f"host-{host.number}.log").open("ab") as log:
            host.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, cwd=ROOT, env=environment()
            )
        for _ in range(host.slots):
            self.join(host)

    def join(self, host: Host) -> None:
        role = self.role() if host.kind in {"java", "librdkafka"} else self.roles[0]
        group, protocol, assignor = role
        self.named += 1
        name = f"{host.kind}-{self.named}"
        free = self.free_instances.setdefault((host.kind, *role), [])
        instance = None
        if free and self.rng.random() < 0.7:
            instance = free.pop()
        elif self.rng.random() < 0.25:
            instance = f"static-{self.named}"
        if instance:
            self.identity[name] = instance
        host.members[name] = {"group": group, "protocol": protocol, "assignor": assignor, "instance": instance, "member": name}
        host.send({"op": "start", **host.members[name]})

    def role(self) -> tuple[str, str, str]:
        """One of the roles that fewest have; groups of a similar size are harder on everybody than one large one."""
        counts = collections.Counter(
            (member["group"], member["protocol"]) for host in self.hosts for member in host.members.values()
        )
        fewest = min(counts[role[:2]] for role in self.roles)
        return self.rng.choice([role for role in self.roles if counts[role[:2]] <= fewest + 1])

    def forget(self, host: Host, name: str) -> None:
        member = host.members.pop(name)
        if member["instance"]:
            role = (host.kind, member["group"], member["protocol"], member["assignor"])
            self.free_instances.setdefault(role, []).append(member["instance"])

    # -- what happens --------------------------------------------------------------------------------------------------------

    def act(self) -> None:
        awake = [host for host in self.hosts if host.process is not None and not host.frozen_until]
        host = self.rng.choice(awake)
        what = self.rng.choices(["close", "join", "pause", "die", "freeze"], [3, 4, 4, 1, 1.5])[0]
        if what == "join" and len(host.members) >= host.slots:
            what = "close"
        if what in {"close", "pause"} and not host.members:
            what = "join"
        if what == "freeze" and len(awake) <= 6:
            what = "pause"
        self.done[what] += 1
        if what == "join":
            self.join(host)
        elif what == "close":
            name = self.rng.choice(list(host.members))
            host.send({"op": "close", "member": name})
            # A static member that closes stays a member; its instance id is free once it has closed, which takes its time.
            self.forget(host, name) if not host.members[name]["instance"] else host.members.pop(name)
        elif what == "pause":
            name = self.rng.choice(list(host.members))
            host.send({"op": "pause", "member": name, "ms": self.rng.randint(1_000, 22_000)})
        elif what == "die":
            self.kill(host)
            host.back_at = time.monotonic() + self.rng.uniform(0, 12)
        else:
            host.process.send_signal(signal.SIGSTOP)
            host.frozen_until = time.monotonic() + self.rng.uniform(2, 20)

    def kill(self, host: Host) -> None:
        host.process.kill()
        host.process.wait()
        host.process = None
        for name in list(host.members):
            self.forget(host, name)

    def tend(self, now: float) -> None:
        """What falls due: frozen hosts go on, dead ones come back."""
        for host in self.hosts:
            if host.frozen_until and now >= host.frozen_until:
                host.process.send_signal(signal.SIGCONT)
                host.frozen_until = 0.0
            if host.process is None and now >= host.back_at:
                self.launch(host)
            if host.process is not None and not host.frozen_until and host.process.poll() is not None:
                raise AssertionError(f"the {host.kind} host ended by itself; see {self.home}/host-{host.number}.log")
            self.bury(host)

    def bury(self, host: Host) -> None:
        """Members whose library gave up, as applications have to expect: they are replaced like any other that goes."""
        path = self.history(host)
        if not path.exists():
            return
        with path.open("rb") as history:
            history.seek(host.read_to)
            new = history.read()
        host.read_to += new.rfind(b"\n") + 1
        for line in new[: new.rfind(b"\n") + 1].splitlines():
            if b'"e":"died"' in line and (name := json.loads(line)["m"]) in host.members:
                self.done["gave up"] += 1
                self.forget(host, name)

    def run(self, minutes: float) -> Run:
        self.node.start()
        admin = AdminClient({"bootstrap.servers": self.node.bootstrap, "log_level": 0})
        for made in admin.create_topics([NewTopic(topic, count, 1) for topic, count in TOPICS.items()]).values():
            made.result(30)
        producing, looking = Producing(self.node.bootstrap), Looking(self.node.bootstrap, self.groups)
        producing.start()
        looking.start()
        for host in self.hosts:
            self.launch(host)
        self.upset(time.monotonic() + minutes * 60)
        producing.stop.set()
        producing.join()
        assert not producing.refused, producing.refused[:5]
        run = Run([], producing.acknowledged, looking.seen, self.identity, {}, self.groups)
        self.settle(run)
        looking.stop.set()
        looking.join()
        run.events = self.events()
        return run

    def upset(self, end: float) -> None:
        next_act, next_kill = time.monotonic() + 8, time.monotonic() + 30
        told = time.monotonic()
        while (now := time.monotonic()) < end:
            self.tend(now)
            if now >= next_act:
                self.act()
                next_act = now + self.rng.uniform(0.3, 3.0)
                if self.rng.random() < 0.06:
                    next_kill = min(next_kill, now + self.rng.uniform(0.1, 2.0))  # while that is being sorted out
            if now >= next_kill:
                self.node.kill()
                self.done["node killed"] += 1
                time.sleep(self.rng.choice([0, 0, 0.5, 3]))
                self.node.start()
                next_kill = time.monotonic() + self.rng.uniform(15, 60)
            if now - told > 30:
                told = now
                print(f"{end - now:4.0f} s left: {dict(self.done)}", flush=True)
            time.sleep(0.05)

    def settle(self, run: Run) -> None:
        """Everybody is there, and nothing disturbs any more."""
        for host in self.hosts:
            host.frozen_until = host.frozen_until and 1.0
            host.back_at = 0.0
        self.tend(time.monotonic())
        began = time.monotonic()
        while time.monotonic() < began + SETTLE_S:
            time.sleep(1)
            self.tend(time.monotonic())
            run.live = {name: member["group"] for host in self.hosts for name, member in host.members.items()}
            latest = {seen.group: seen.offsets for seen in run.seen}
            behind = [
                (group, partition)
                for group in self.groups
                if group in run.live.values()
                for partition, offsets in run.acknowledged.items()
                if latest.get(group, {}).get(partition, 0) <= max(offsets, default=-1)
            ]
            if not behind and not incomplete(run, self.events()):
                break
        print(f"settled after {time.monotonic() - began:.0f} s with {len(run.live)} members", flush=True)
        if behind:
            print("not read to the end:", behind[:10], flush=True)

    def events(self) -> list[Event]:
        found = []
        for path in sorted(self.home.glob("history-*.jsonl")):
            for line in path.read_text().splitlines():
                if line.endswith("}"):
                    found.append(json.loads(line))
        return found

    def end(self) -> None:
        for host in self.hosts:
            if host.process is not None:
                host.process.kill()
                host.process.wait()
        self.node.kill()
        if self.node.java is not None:
            self.node.java.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make churn", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--port", type=int, default=30590)
    parser.add_argument("--broker", choices=("tidelog", "apache"), default="tidelog")
    parser.add_argument("--classic-only", action="store_true", help="without the consumer protocol")
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="tidelog-churn-"))
    print(f"seed {args.seed}, {args.minutes} minutes, everything in {home}", flush=True)
    churn = Churn(args, home)
    try:
        run = churn.run(args.minutes)
    finally:
        churn.end()
    found = violations(run)
    kinds = collections.Counter(event["e"] for event in run.events)
    handled = sum(len(offsets) for event in run.events if event["e"] == "handled" for offsets in event["o"].values())
    written = sum(map(len, run.acknowledged.values()))
    print(f"{written} records written, handled {handled} times by {len(run.groups)} groups; {dict(churn.done)}")
    print(f"events: {dict(kinds)}; {len(run.seen)} looks at committed offsets; node started {churn.node.starts} times")
    for event in run.events:
        if event["e"] == "died":
            print(f"{event['m']} of {event['g']} gave up: {event['why'][:160]}")
    if found:
        (home / "seen.json").write_text(json.dumps([[one.t, one.group, dict(one.offsets)] for one in run.seen]))
        (home / "acknowledged.json").write_text(json.dumps({key: sorted(value) for key, value in run.acknowledged.items()}))
        print(f"{len(found)} violations; histories are kept in {home}", *found[:40], sep="\n  ")
        return 1
    shutil.rmtree(home)
    print("nothing was violated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
