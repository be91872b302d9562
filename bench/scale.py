"""``python -m bench.scale``: large clusters on one machine. Real controllers and one real broker; the other brokers are stubs.

A stub registers, sends heartbeats and reads the metadata log as an observer does, each over connections of its own; it keeps no
image (the real broker has one) and serves nobody. Replicas are placed on stubs as on anybody: the controllers have the records,
sessions, fetches and the fail-over of a cluster of that size. Prints a line of JSON for each step.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.cluster_sides import DEFAULTS
from bench.report import machine
from bench.sides import cpu_seconds, resident_mb
from tests.node.cluster import CLUSTER_ID, Cluster
from tidelog.broker.controller_reports import registration
from tidelog.config.listeners import EndPoint
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, Uuid
from tidelog.protocol.messages import fetch
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.records.batch import read_header
from tidelog.server.cluster.channels import ChannelError, Channels
from tidelog.server.runtime import LoopRuntime, new_event_loop

FIRST_STUB = 1001
REAL = 1
HEARTBEAT_S = 2.0
TIMEOUT_MS = 60_000
REPLICAS = 3
CHANGES = 100
TOPIC, SET = 2, 0
AT_ONCE = 20
"""Stubs that register at the same time."""
NOBODY = 25999
"""Where the stub that is to die is said to listen: nobody does, so when it hangs up it is known to be dead. The others name one
that is open: a new active controller knocks there."""


class Stub:
    """One broker. ``where``: the active controller."""

    def __init__(self, stubs: Stubs, broker_id: int) -> None:
        self.id = broker_id
        self.epoch = -1
        self.offset = 0
        self.offset_epoch = 0
        self.leader_epoch = 0
        self.fenced = True
        self._stubs = stubs
        self._tasks: list[asyncio.Task[None]] = []

    def _channel(self, purpose: str) -> Any:
        return self._stubs.channels.to("127.0.0.1", self._stubs.port, f"{purpose} of {self.id}")

    async def register(self) -> None:
        """Until it is taken; heartbeats and the metadata log from then on."""
        request = registration(
            self.id,
            CLUSTER_ID,
            Uuid(self.id.to_bytes(8, "big") * 2),
            endpoints=[EndPoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", self._stubs.listening_at(self.id))],
            rack=None,
            log_dirs=[Uuid((self.id + 1_000_000).to_bytes(8, "big") * 2)],
            previous_broker_epoch=-1,
        )
        while True:
            answer = await self._channel("life").ask(request, timeout_ms=TIMEOUT_MS)
            if answer.error_code == ErrorCode.NONE:
                break
            await asyncio.sleep(0.2)
        self.epoch = answer.broker_epoch
        self._tasks = [asyncio.create_task(self._beat()), asyncio.create_task(self._follow())]

    async def _beat(self) -> None:
        while True:
            request = BrokerHeartbeatRequest(
                broker_id=self.id, broker_epoch=self.epoch, current_metadata_offset=self.offset - 1, want_fence=False
            )
            try:
                answer = await self._channel("life").ask(request, timeout_ms=TIMEOUT_MS)
            except ChannelError:
                await asyncio.sleep(0.1)
                continue
            self.fenced = answer.is_fenced
            await asyncio.sleep(0.2 if self.fenced else HEARTBEAT_S)

    async def _follow(self) -> None:
        """Read the metadata log; only where it ends is of interest."""
        while True:
            partition = fetch.FetchPartition(
                current_leader_epoch=self.leader_epoch,
                fetch_offset=self.offset,
                last_fetched_epoch=self.offset_epoch,
                high_watermark=1 << 62,
            )
            topic = fetch.FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
            request = fetch.FetchRequest(
                cluster_id=CLUSTER_ID,
                replica_state=fetch.ReplicaState(replica_id=self.id),
                max_wait_ms=500,
                max_bytes=1 << 23,
                topics=[topic],
            )
            try:
                answer = await self._channel("log").ask(request, timeout_ms=TIMEOUT_MS)
            except ChannelError:
                await asyncio.sleep(0.1)
                continue
            if answer.error_code or not answer.responses:
                await asyncio.sleep(0.5)
                continue
            self._take(answer.responses[0].partitions[0])

    def _take(self, part: fetch.PartitionData) -> None:
        if part.error_code:
            self.leader_epoch = part.current_leader.leader_epoch
            self._stubs.led_by(part.current_leader.leader_id)
            return
        if part.snapshot_id.epoch >= 0:
            self.offset, self.offset_epoch = part.snapshot_id.end_offset, part.snapshot_id.epoch
            return
        if part.diverging_epoch.epoch >= 0:
            # What a leader that was deposed had not committed: it is cut off.
            self.offset = min(self.offset, part.diverging_epoch.end_offset)
            self.offset_epoch = part.diverging_epoch.epoch
            return
        records = memoryview(part.records or b"")
        at = 0
        while at < len(records):
            header = read_header(records, at)
            self.offset, self.offset_epoch = header.last_offset + 1, header.leader_epoch
            at += header.size

    def die(self) -> None:
        """Its connections are closed."""
        for task in self._tasks:
            task.cancel()
        for purpose in ("life", "log"):
            self._channel(purpose).close()


async def until(what: Callable[[], Awaitable[bool]], pause_s: float = 0.05) -> None:
    """Ask again and again."""
    while not await what():  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(pause_s)


class Stubs:
    """All of them, in one loop."""

    def __init__(self, ports: dict[int, int], leader: int) -> None:
        self._ports = ports
        self.port = ports[leader]
        self.leaders = [leader]
        """Active controllers, one after another: more than one is a change that nobody asked for."""
        self.channels = Channels(LoopRuntime(asyncio.get_running_loop()), "stub")
        self.all: list[Stub] = []
        self._open = socket.create_server(("127.0.0.1", 0), backlog=1024)
        asyncio.get_running_loop().add_reader(self._open, self._knocked)

    def _knocked(self) -> None:
        self._open.accept()[0].close()

    def listening_at(self, broker_id: int) -> int:
        """The port that a stub names; the last one is the one that dies."""
        return NOBODY if broker_id == self.all[-1].id else self._open.getsockname()[1]

    def led_by(self, leader: int) -> None:
        """Somebody says that another controller leads."""
        if leader in self._ports and self.leaders[-1] != leader:
            self.leaders.append(leader)
            self.port = self._ports[leader]

    async def add(self, count: int) -> None:
        """So many register, some at a time, and are unfenced."""
        places = asyncio.Semaphore(AT_ONCE)

        async def one(stub: Stub) -> None:
            async with places:
                await stub.register()

        self.all = [Stub(self, FIRST_STUB + number) for number in range(count)]
        await asyncio.gather(*map(one, self.all))

        async def unfenced() -> bool:
            return not any(stub.fenced for stub in self.all)

        await until(unfenced)


class Scale:
    """One run: ``brokers`` in all, ``replicas`` on each of them."""

    def __init__(self, cluster: Cluster, brokers: int, replicas: int, topic_partitions: int) -> None:
        self.cluster = cluster
        self.brokers = brokers
        self.partitions = brokers * replicas // REPLICAS
        self.topic_partitions = min(topic_partitions, self.partitions)
        self.topics = self.partitions // self.topic_partitions
        self.active = cluster.active_controller()
        self.stubs = Stubs(cluster.controller_ports, self.active)

    def cpu(self) -> dict[str, float]:
        """Of the active controller, a standby, the broker, and the stubs."""
        pids = {each: process.pid for each, process in self.cluster.running.items()}
        standby = next(each for each in self.cluster.controllers if each != self.active)
        own = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "active": cpu_seconds(pids[self.active]),
            "standby": cpu_seconds(pids[standby]),
            "broker": cpu_seconds(pids[REAL]),
            "stubs": own.ru_utime + own.ru_stime,
        }

    async def step(self, name: str, work: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        """Do it; print what it took."""
        before, began = self.cpu(), time.perf_counter()
        found = await work()
        seconds = time.perf_counter() - began
        cpu = {each: round(value - before[each], 3) for each, value in self.cpu().items()}
        print(json.dumps({"step": name, "seconds": round(seconds, 3), "cpu_s": cpu, **found}), flush=True)

    async def ask(self, request: Any) -> Any:
        """The real broker's answer."""
        return await asyncio.to_thread(self.cluster.ask, REAL, request)

    async def register(self) -> dict[str, Any]:
        await self.stubs.add(self.brokers - 1)

        async def told() -> bool:
            return len((await self.ask(DescribeClusterRequest())).brokers) >= self.brokers

        await until(told)
        return {"brokers": self.brokers}

    async def create(self) -> dict[str, Any]:
        for number in range(self.topics):
            wanted = CreatableTopic(name=f"t{number:05}", num_partitions=self.topic_partitions, replication_factor=REPLICAS)
            answer = await self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS))
            # A controller that lost its leadership in the middle was asked before the one that answers.
            if answer.topics[0].error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                raise SystemExit(f"topic {number}: {ErrorCode(answer.topics[0].error_code).name}")

        async def read() -> bool:
            return all(stub.offset == self.stubs.all[0].offset for stub in self.stubs.all)

        await until(read)
        return {"topics": self.topics, "partitions": self.topics * self.topic_partitions}

    async def fan_out(self) -> dict[str, Any]:
        """Small changes, one after another, each of which every broker hears of before the next; CPU as of ``step``, in all."""
        before = cpu_seconds(self.cluster.running[self.active].pid)
        for number in range(CHANGES):
            offset = self.stubs.all[0].offset
            value = AlterableConfig(name="retention.ms", config_operation=SET, value=str(10_000_000 + number))
            resource = AlterConfigsResource(resource_type=TOPIC, resource_name="t00000", configs=[value])
            answer = await self.ask(IncrementalAlterConfigsRequest(resources=[resource]))
            if answer.responses[0].error_code:
                raise SystemExit(f"change {number}: {ErrorCode(answer.responses[0].error_code).name}")
            await until(partial(self.heard, offset), 0.001)
        spent = cpu_seconds(self.cluster.running[self.active].pid) - before
        return {"changes": CHANGES, "active_us_per_change_and_observer": round(spent / CHANGES / self.brokers * 1e6, 1)}

    async def heard(self, offset: int) -> bool:
        """Have all stubs read beyond ``offset``?"""
        return all(stub.offset > offset for stub in self.stubs.all)

    async def steady(self, seconds: float) -> dict[str, Any]:
        await asyncio.sleep(seconds)
        return {}

    async def fail_over(self) -> dict[str, Any]:
        """One stub dies; until the real broker tells of other leaders for all partitions of a topic that it led some of."""
        victim = self.stubs.all[-1]
        topic = f"t{self.topics - 1:05}"

        async def led() -> int:
            answer = await self.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
            return sum(each.leader_id == victim.id for each in answer.topics[0].partitions)

        async def moved() -> bool:
            return await led() == 0

        before = await led()
        began = time.perf_counter()
        victim.die()
        await until(moved, 0.02)
        took = time.perf_counter() - began
        return {"led_of_topic": before, "until_led_s": round(took, 3)}

    async def describe(self) -> dict[str, Any]:
        """All topics at once, twice: the second time from what the broker kept."""
        took = []
        for _ in range(2):
            began = time.perf_counter()
            answer = await self.ask(MetadataRequest(topics=None))
            took.append(round(time.perf_counter() - began, 3))
        return {"partitions": sum(len(each.partitions) for each in answer.topics), "first_s": took[0], "again_s": took[1]}

    async def restart(self, node_id: int) -> dict[str, Any]:
        """Of a standby, or of the broker: with a snapshot and the log after it."""
        await asyncio.to_thread(self.cluster.stop, node_id)
        began = time.perf_counter()
        await asyncio.to_thread(self.cluster.start, node_id)
        pid = self.cluster.running[node_id].pid
        return {
            "ready_s": round(time.perf_counter() - began, 2),
            "its_cpu_s": cpu_seconds(pid),
            "its_mb": round(resident_mb(pid), 1),
        }

    async def sizes(self) -> dict[str, Any]:
        folder = self.cluster.path(self.active) / f"{METADATA_TOPIC}-0"
        bytes_of = {suffix: [path.stat().st_size for path in folder.glob(f"*{suffix}")] for suffix in (".log", ".checkpoint")}
        return {
            "active_controllers": self.stubs.leaders,
            "log_bytes": sum(bytes_of[".log"]),
            "snapshot_bytes": max(bytes_of[".checkpoint"], default=0),
            "mb": {str(each): round(resident_mb(process.pid), 1) for each, process in self.cluster.running.items()},
        }


async def run(args: argparse.Namespace, cluster: Cluster) -> None:
    scale = Scale(cluster, args.brokers, args.replicas, args.topic_partitions)
    await scale.step("all brokers registered and unfenced", scale.register)
    await scale.step(f"steady without topics, {args.seconds} s", lambda: scale.steady(args.seconds))
    await scale.step("topics created", scale.create)
    await scale.step(f"steady, {args.seconds} s", lambda: scale.steady(args.seconds))
    await scale.step("small changes", scale.fan_out)
    await scale.step("one broker dead: others lead", scale.fail_over)
    await scale.step("metadata of all topics", scale.describe)
    await scale.step("sizes", scale.sizes)
    standby = next(each for each in cluster.controllers if each != scale.active)
    # The CPU of a process that ends is not in the difference: what counts there is its own.
    for name, node_id in (("standby controller restarted", standby), ("broker restarted", REAL)):
        print(json.dumps({"step": name, **await scale.restart(node_id)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--brokers", type=int, default=30, help="one of them is real [30]")
    parser.add_argument("--replicas", type=int, default=200, help="partitions on each broker [200]")
    parser.add_argument("--topic-partitions", type=int, default=1000, help="partitions of each topic [1000]")
    parser.add_argument("--snapshot-bytes", type=int, default=1 << 20, help="metadata log between two snapshots [1048576]")
    parser.add_argument("--seconds", type=float, default=10, help="how long the steady state is watched [10]")
    args = parser.parse_args()
    data = Path(tempfile.mkdtemp(prefix="tidelog-scale-"))
    properties = {**DEFAULTS, "metadata.log.max.record.bytes.between.snapshots": str(args.snapshot_bytes)}
    print(json.dumps({"date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "machine": machine(), **vars(args)}), flush=True)
    loop = new_event_loop()
    try:
        with Cluster(data, 1, roles="broker", properties=properties) as cluster:
            loop.run_until_complete(run(args, cluster))
            print(json.dumps({"step": "complaints", "lines": cluster.complaints()[:5]}), flush=True)
    finally:
        shutil.rmtree(data, ignore_errors=True)
    sys.stdout.flush()
    os._exit(0)  # stubs are in the middle of something


if __name__ == "__main__":
    main()
