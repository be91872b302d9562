"""Collects the facts of ``metrics.facts`` from a running node: on the loop what the loop changes, in a thread what may block.

A section that fails is null in the page and named once in the log: it does not hide the others.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tidelog import __version__
from tidelog.broker.request_times import PHASES
from tidelog.broker.usage import NO_API, Amounts
from tidelog.coordinator.transaction.describing import open_transactions
from tidelog.metrics.facts import LONGEST_TEXT, TOP
from tidelog.metrics.latency import Latencies, added, quantiles
from tidelog.model.errors import ErrorCode
from tidelog.protocol.api_keys import API_FACTS
from tidelog.server.disk import descriptors_allowed
from tidelog.server.serving.connection_states import State
from tidelog.server.upkeep.fact_windows import BusiestClients, Growth

if TYPE_CHECKING:
    from tidelog.server.broker_parts import BrokerParts
    from tidelog.server.cluster.metadata_replica import MetadataReplica
    from tidelog.server.runtime import LoopRuntime
    from tidelog.server.serving.listener import Listener

log = logging.getLogger(__name__)

A_TURN: Final = 1000
"""Connections that are added up before other work of the loop gets its turn."""
_SHARES: Final = (0.5, 0.99, 0.999)
_NS: Final = 1e9
_CPU: Final = -1
"""In place of an API key: the CPU time of the loop's thread."""
_NS_IN_MS: Final = 1e6
_STATES: Final = {
    State.AUTHENTICATING: "authenticating",
    State.THROTTLED: "throttled",
    State.DRAINING: "draining",
    State.CLOSED: "draining",
}
_NAMES_OF_STATES: Final = ("authenticating", "idle", "busy", "throttled", "draining")

Section = Callable[[], Any]


class NodeFacts:
    """The facts of one node. ``parts``: None for a process that is only a controller."""

    def __init__(
        self,
        runtime: LoopRuntime,
        replica: MetadataReplica,
        listeners: Callable[[], Sequence[Listener]],
        parts: BrokerParts | None,
    ) -> None:
        now_s = runtime.loop.time()
        self._runtime = runtime
        self._replica = replica
        self._listeners = listeners
        self._parts = parts
        self._began_s = now_s
        self._began_cpu_ns = time.thread_time_ns()
        self._apis: Growth[int] = Growth(now_s)
        self._topics: Growth[str] = Growth(now_s)
        self._partitions: Growth[tuple[str, int]] = Growth(now_s)
        self._clients = BusiestClients(now_s)
        self._reported: set[str] = set()

    async def collect(self) -> dict[str, Any]:
        """All sections but ``requests`` and ``process``, which ``in_thread`` completes: a page with names."""
        await self._add_up()
        sections: dict[str, Section] = {
            "node": self._node,
            "process": dict,
            "loop": self._loop,
            "requests": self._latencies,
            "clients": self._busiest_clients,
            "connections": self._connections,
            "parked": self._parked,
            "quorum": self._quorum,
        }
        if self._parts is not None:
            parts = self._parts
            sections |= {
                "topics": lambda: self._busiest_topics(parts),
                "partitions": lambda: self._busiest_partitions(parts),
                "groups": lambda: _groups(parts),
                "transactions": lambda: _transactions(parts),
            }
        return {name: self._read(name, section) for name, section in sections.items()}

    def in_thread(self, page: dict[str, Any]) -> None:
        """Completes what ``collect`` returned, where blocking is allowed."""
        page["process"] = self._read("process", _process)
        found = page["requests"]
        page["requests"] = self._read("requests", lambda: None if found is None else [_quantiles(*each) for each in found])

    def _read(self, name: str, section: Section) -> Any:
        try:
            return section()
        except Exception as error:  # one failing section must not hide the others
            if name not in self._reported:
                self._reported.add(name)
                log.warning("%s of /facts cannot be read: %r", name, error)
            return None

    async def _add_up(self) -> None:
        for listener in self._listeners():
            for at, connection in enumerate(list(listener.connections), 1):
                listener.usage.add(connection.machine.session)
                if not at % A_TURN:
                    await asyncio.sleep(0)

    # -- sections -----------------------------------------------------------------------------------------------------------

    def _node(self) -> dict[str, Any]:
        config = self._replica.config
        return {
            "id": config.node_id,
            "version": __version__,
            "cluster_id": self._replica.cluster_id,
            "roles": [role for role, here in (("broker", config.is_broker), ("controller", config.is_controller)) if here],
            "uptime_seconds": round(self._runtime.loop.time() - self._began_s, 3),
        }

    def _loop(self) -> dict[str, Any]:
        spent: Counter[int] = Counter()
        requests: Counter[int] = Counter()
        for listener in self._listeners():
            spent.update(listener.usage.loop_ns())
            for (key, _), count in listener.requests.items():
                requests[key] += count
        counters = {key: (spent[key], requests[key]) for key in {*spent, *requests}}
        counters[_CPU] = (time.thread_time_ns() - self._began_cpu_ns, 0)
        seconds, grown = self._apis.since(self._runtime.loop.time(), counters)
        cpu_ns, _ = grown.pop(_CPU)
        apis: list[dict[str, Any]] = [
            {"api": "" if key == NO_API else API_FACTS[key].name, "requests": count, "share": _share(loop_ns, seconds)}
            for key, (loop_ns, count) in grown.items()
            if loop_ns or count
        ]
        apis.sort(key=lambda api: -api["share"])
        return {"seconds": round(seconds, 3), "busy": max(0.0, min(1.0, _share(cpu_ns, seconds))), "apis": apis}

    def _latencies(self) -> list[tuple[str, int, list[dict[int, int]]]]:
        """By name: the count, and the recent counts by bucket of each phase."""
        found: dict[str, list[tuple[Latencies, ...]]] = {}
        minute = 0
        for listener in self._listeners():
            minute = listener.times.minute()
            for name, latencies in listener.times.by_name.items():
                found.setdefault(name, []).append(latencies)
        return [
            (
                name,
                sum(each[0].count for each in several),
                [added(each[phase].recent(minute) for each in several) for phase in range(len(PHASES))],
            )
            for name, several in sorted(found.items())
        ]

    def _busiest_clients(self) -> dict[str, Any]:
        accounts = [listener.usage for listener in self._listeners()]
        seconds, entries = self._clients.since(self._runtime.loop.time(), accounts)
        busiest = entries[:TOP]
        return {
            "seconds": round(seconds, 3),
            "share_error": _share(max((entry.error for entry in busiest), default=0), seconds),
            "busiest": [
                {**entry.key._asdict(), "share": _share(entry.weight, seconds), **Amounts(*entry.amounts)._asdict()}
                for entry in busiest
            ],
        }

    def _connections(self) -> dict[str, Any]:
        listeners = []
        for listener in self._listeners():
            states = dict.fromkeys(_NAMES_OF_STATES, 0)
            for connection in listener.connections:
                machine = connection.machine
                states[_STATES.get(machine.state) or ("busy" if machine.busy else "idle")] += 1
            listeners.append({"listener": listener.name[:LONGEST_TEXT], "refused": listener.refused, "states": states})
        return {"open": sum(len(listener.connections) for listener in self._listeners()), "listeners": listeners}

    def _parked(self) -> list[dict[str, Any]]:
        census = self._runtime.purgatory.census()
        return [{"api": api, "requests": requests, "watched": watched} for api, (requests, watched) in census.items()]

    def _quorum(self) -> dict[str, Any]:
        raft = self._replica.member.machine
        return {
            "role": raft.role.value,
            "leader": raft.leader_id,
            "epoch": raft.epoch,
            "high_watermark": raft.high_watermark,
        }

    def _busiest_topics(self, parts: BrokerParts) -> dict[str, Any]:
        counters = {
            name: (
                stats.messages_in,
                stats.bytes_in,
                stats.bytes_out,
                stats.replication_bytes_in + stats.replication_bytes_out,
                stats.total_produce_requests + stats.total_fetch_requests,
            )
            for name, stats in parts.broker.replicas.hosted.topic_stats().items()
        }
        seconds, grown = self._topics.since(self._runtime.loop.time(), counters)
        busiest = _largest(grown.items(), lambda item: (sum(item[1][1:4]), item[1][4]))
        fields = ("records_in", "bytes_in", "bytes_out", "replication_bytes", "requests")
        return {
            "seconds": round(seconds, 3),
            "count": len(counters),
            "busiest": [{"topic": name, **dict(zip(fields, values, strict=True))} for name, values in busiest if any(values)],
        }

    def _busiest_partitions(self, parts: BrokerParts) -> dict[str, Any]:
        replicas = parts.broker.replicas
        gauges = replicas.gauges()
        ends: dict[tuple[str, int], tuple[int, ...]] = {}
        held = 0
        for partition in replicas.partitions():
            if partition.log is not None:
                ends[partition.topic, partition.index] = (partition.log.log_end_offset,)
                held += partition.is_leader and partition.log.last_stable_offset < partition.log.high_watermark
        seconds, grown = self._partitions.since(self._runtime.loop.time(), ends)
        busiest = _largest(grown.items(), lambda item: item[1])
        return {
            "seconds": round(seconds, 3),
            "count": gauges["kafka_server_replicamanager_partitioncount"],
            "leaders": gauges["kafka_server_replicamanager_leadercount"],
            "offline": gauges["kafka_server_replicamanager_offlinereplicacount"],
            "under_replicated": gauges["kafka_server_replicamanager_underreplicatedpartitions"],
            "under_min_isr": gauges["kafka_server_replicamanager_underminisrpartitioncount"],
            "held_by_transactions": held,
            "busiest": [
                {"topic": topic, "partition": index, "records_in": count} for (topic, index), (count,) in busiest if count
            ],
        }


def _share(loop_ns: int, seconds: float) -> float:
    return round(loop_ns / _NS / seconds, 6) if seconds > 0 else 0.0


def _largest(items: Iterable[Any], key: Callable[[Any], Any]) -> list[Any]:
    return heapq.nlargest(TOP, items, key=key)


def _quantiles(name: str, count: int, phases: Sequence[dict[int, int]]) -> dict[str, Any]:
    found = []
    for phase, counts in zip(PHASES, phases, strict=True):
        p50, p99, p999 = quantiles(counts, _SHARES) or (None, None, None)
        values = {"p50_ms": p50, "p99_ms": p99, "p999_ms": p999}
        found.append({"phase": phase, **{at: None if ns is None else round(ns / _NS_IN_MS, 4) for at, ns in values.items()}})
    return {"api": name, "count": count, "phases": found}


def _groups(parts: BrokerParts) -> list[dict[str, Any]]:
    machines = parts.broker.groups.machines()
    groups: Counter[tuple[str, str]] = Counter()
    members: Counter[tuple[str, str]] = Counter()
    for machine in [] if isinstance(machines, ErrorCode) else machines:
        for group in machine.groups.values():
            kind = machine.kind_of(group)
            key = kind.name, kind.state_name(group)
            groups[key] += 1
            members[key] += len(group.members)
    return [
        {"type": kind, "state": state, "count": count, "members": members[kind, state]}
        for (kind, state), count in sorted(groups.items())
    ]


def _transactions(parts: BrokerParts) -> dict[str, Any]:
    found = parts.broker.transactions.machines()
    machines = [] if isinstance(found, ErrorCode) else found
    still_open = open_transactions(machines)
    started = [known.start_ms for known in islice(still_open, 1)]
    return {
        "ids": sum(len(machine.transactions) for machine in machines),
        "open": len(still_open),
        "oldest_seconds": max(0, parts.runtime.even_ms() - started[0]) / 1000 if started else 0,
        "missing_markers": sum(machine.missing_markers for machine in machines),
    }


def _process() -> dict[str, Any]:
    """What Linux says of this process; elsewhere null where there is no other source."""
    memory = files = None
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        files = len(os.listdir("/proc/self/fd"))
    except OSError:
        pass
    return {
        "memory_bytes": memory,
        "cpu_seconds": round(time.process_time(), 3),
        "open_files": files,
        "open_files_limit": descriptors_allowed(),
    }
