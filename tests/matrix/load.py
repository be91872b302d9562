"""What runs while a cluster is tormented: idempotent producers, transactions, and a group of each protocol; and its judge."""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.matrix.cluster import MatrixCluster
from tests.node.transactional_run import QUICK_NODES, create
from tests.transactions.worker import CALL_S, INPUT, OUTPUT, PARTITIONS
from tests.transactions.workload import GROUPS, Client, Run
from tidelog.testing.checker import Verdict, check

PACE_S = 0.02
COMMITTED = b'"type":"ok","op":"commit"'
SENT = b'"type":"ok","op":"send"'
NODE_SETTINGS = {**QUICK_NODES, "auto.create.topics.enable": "false"}
"""Ports are used again: a client of another test that looks for its cluster here makes no topic."""
STEADY = "idempotent"
STUCK_S = 3 * CALL_S
"""A call of a client that lasts so much longer than the time it was given does not come back by itself."""
ASKED_OFFSETS = b'"type":"invoke","op":"offsets"'


def _module(module: str, *args: str) -> list[str]:
    return [sys.executable, "-m", module, *args]


def members(cluster: MatrixCluster, folder: Path, seed: int, acks: str = "all", in_flight: int = 5) -> list[Client]:
    """The clients. Two members for each group, so that its partitions change hands."""

    common = ("--bootstrap", cluster.bootstrap, "--pace", str(PACE_S))
    if cluster.client_settings:
        common = (*common, "--config", str(cluster.client_file))

    def steady(name: str, path: Path) -> list[str]:
        base = ("--name", name, "--history", str(path), *common)
        return _module("tests.matrix.worker", *base, "--acks", acks, "--in-flight", str(in_flight))

    def transactional(role: str, *more: str) -> Callable[[str, Path], list[str]]:
        def command(name: str, path: Path) -> list[str]:
            base = ("--name", name, "--history", str(path), "--seed", str(seed), *common)
            return _module("tests.transactions.worker", role, *base, *more)

        return command

    found = [
        Client(STEADY, steady, folder),
        Client("transactions", transactional("producer", "--transactional-id", "transactions"), folder),
        Client("reader", transactional("reader"), folder),
    ]
    for group, protocol in zip(GROUPS, ("classic", "consumer"), strict=True):
        for number in range(2):
            name = f"{group}-{number}"
            more = ("--transactional-id", name, "--group", group, "--protocol", protocol)
            found.append(Client(name, transactional("transformer", *more), folder))
    return found


KINDS: dict[str, bytes] = {STEADY: SENT, "transactions": COMMITTED, **dict.fromkeys(GROUPS, COMMITTED)}
"""Who has to make progress, and what counts as that."""


class Load(Run):
    """All clients on a cluster. The caller injects the faults.

    ``in_flight``: of the idempotent producer. librdkafka 2.16 with more than one raises its epoch when a later request gets
    OUT_OF_ORDER_SEQUENCE_NUMBER because an earlier one was refused, and sends again what another partition has (its issue 4953).
    """

    def __init__(self, home: Path, cluster: MatrixCluster, *, seed: int = 7, acks: str = "all", in_flight: int = 5) -> None:
        self.home, self.seed, self.kind = home, seed, "cluster"
        self.rng = random.Random(seed)
        self.histories = home / "histories"
        self.histories.mkdir(parents=True)
        self.cluster = cluster
        self.node = cluster  # type: ignore[assignment]
        self.done: Counter[str] = Counter()
        self.replaced = 0
        self._latest: dict[Path, tuple[bytes, float]] = {}
        self._counted: dict[Path, int] = {}
        self.clients = members(cluster, self.histories, seed, acks=acks, in_flight=in_flight)

    def __enter__(self) -> Load:
        create(self.cluster, INPUT, OUTPUT, partitions=PARTITIONS)
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client.kill()

    @property
    def quick(self) -> Mapping[str, Any]:
        return {**super().quick, **self.cluster.client_settings}

    def count(self) -> None:
        """What each kind of client has been acknowledged so far."""
        for client in self.clients:
            kind = next((kind for kind in KINDS if client.name.startswith(kind)), None)
            for path in client.histories if kind else ():
                with path.open("rb") as file:
                    file.seek(self._counted.get(path, 0))
                    data = file.read()
                data = data[: data.rfind(b"\n") + 1]
                if data:
                    self._latest[path] = (data.rstrip().rpartition(b"\n")[2], time.monotonic())
                self._counted[path] = self._counted.get(path, 0) + len(data)
                self.done[str(kind)] += data.count(KINDS[str(kind)])

    def replace_stuck(self) -> None:
        """librdkafka 2.16 does not come back from send_offsets_to_transaction, whatever time it is given, when the broker that
        coordinated the group is not among the brokers any more (its issues 5456 and 5511). Such a client is killed and another
        takes its place, as people do; a client that waits for a broker gets its call back in time, and is left alone."""
        for client in self.clients:
            last, since = self._latest.get(client.histories[-1], (b"", 0.0))
            if ASKED_OFFSETS in last and time.monotonic() - since > STUCK_S:
                client.kill()
                client.start()
                self.replaced += 1

    def go_on(self, more: int, kinds: Iterable[str] = tuple(KINDS), bound_s: float = 60.0) -> None:
        """Until each of these kinds of client was acknowledged so much more: whatever happened, all of them go on."""
        self.count()
        before = Counter(self.done)
        deadline = time.monotonic() + bound_s
        while slow := [kind for kind in kinds if self.done[kind] < before[kind] + more]:
            there = {kind: self.done[kind] - before[kind] for kind in KINDS}
            late = f"not within {bound_s:.0f} s: {more} more from {', '.join(slow)} (there were {there})"
            assert time.monotonic() < deadline, f"{late}\n{self.said()}\n{self.cluster.tails()}"
            time.sleep(0.1)
            self.count()
            self.replace_stuck()

    def said(self) -> str:
        """The end of what each client printed."""
        texts = ((path, path.read_text(errors="replace").splitlines()[-5:]) for path in sorted(self.histories.glob("*.log")))
        return "\n".join(f"{path.stem}: {line}" for path, lines in texts for line in lines)

    def finish(self) -> Verdict:
        """Clients end, open transactions too, everything is read; then what the checker says."""
        for client in self.clients:
            if client.process is not None:
                client.process.terminate()
        for client in self.clients:
            if client.process is not None:
                client.finish()
        self.count()
        self._read_all()
        return check(*self.files())

    def files(self) -> list[Path]:
        """The histories."""
        return sorted(self.histories.glob("*.jsonl"))


def longest_wait_s(paths: Iterable[Path]) -> float:
    """From a send of the idempotent producers to its acknowledgement, the longest."""
    longest = 0
    for path in paths:
        if not path.name.startswith(STEADY):
            continue
        asked: dict[str, int] = {}
        with path.open() as lines:
            for line in lines:
                if not line.endswith("\n"):
                    break
                event = json.loads(line)
                if event["op"] == "send" and event["type"] == "invoke":
                    asked[event["value"]] = event["time"]
                elif event["op"] == "send" and event["type"] == "ok":
                    longest = max(longest, event["time"] - asked[event["value"]])
    return longest / 1e9
