"""Simulated machines: a real node each, on a loop in virtual time, with its own disk and address.

``start`` boots what is on the disk. A process can be killed (the disk keeps what was written), a machine can lose power (the disk
keeps what was synced, and pieces of the rest), a process can be paused, or stopped as an operator does.
"""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidelog.config.resolve import BrokerConfig
from tidelog.server.cluster.controller_node import ControllerNode
from tidelog.server.node import Node
from tidelog.server.runtime import LoopRuntime
from tidelog.testing.simulation.disk import PowerLoss, SimDisk
from tidelog.testing.simulation.loop import Agenda, SimLoop, new_loop
from tidelog.testing.simulation.network import Network, SimListener

EPOCH_MS = 1_800_000_000_000
"""The world begins in 2027."""


class SimRuntime(LoopRuntime):
    """A node's runtime in virtual time. ``skew_ms`` is the error of its wall clock."""

    loop: SimLoop

    def __init__(self, loop: SimLoop, seed: int, skew_ms: int) -> None:
        super().__init__(loop)
        self.skew_ms = skew_ms
        self.rng = random.Random(seed)
        self.now_ms = self._wall_ms

    def _wall_ms(self) -> int:
        return EPOCH_MS + self.skew_ms + int(self.loop.time() * 1000)

    def steady_ms(self) -> int:
        return int(self.loop.time() * 1000)

    def real_ms(self) -> int:
        return self.steady_ms()

    def busy_ns(self) -> int:
        return int(self.loop.time() * 1_000_000_000)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """A failed task of the node is a failure of the node, not only a log line."""
        if not task.cancelled() and (error := task.exception()) is not None and not self.loop.dead:
            trace = "".join(traceback.format_exception(error))
            self.loop.problems.append(f"{self.loop.name}: {task.get_name()} failed\n{trace}")
        super()._ended(task)

    def bind(self, name: str, host: str, port: int) -> SimListener:  # type: ignore[override]
        return self.loop.network.bind(self.loop, host, port)  # type: ignore[no-any-return]

    def in_parallel(
        self, jobs: Sequence[Callable[[], Any]], threads: int, name: str, told: Callable[[int], None] | None = None
    ) -> None:
        for count, job in enumerate(jobs, 1):
            job()
            if told is not None:
                told(count)


class Machine:
    """One machine. ``properties`` is the node's server.properties."""

    def __init__(
        self, agenda: Agenda, network: Network, node_id: int, host: str, properties: Mapping[str, str], seed: int, disk: SimDisk
    ) -> None:
        self.node_id, self.host, self.disk = node_id, host, disk
        self.properties = dict(properties)
        self.rng = random.Random(seed)
        self.loop: SimLoop | None = None
        self.node: Node | ControllerNode | None = None
        self.runtime: SimRuntime | None = None
        self.serving = False
        self.starts = 0
        self.ended: str | None = None
        """Why the last process ended by itself."""
        self.problems: list[str] = []
        self.graveyard: list[Any] = []
        """Dead processes, kept so that they are not collected: that would run their ``finally`` blocks."""
        self._agenda = agenda
        self._network = network
        self.skew_ms = self.rng.randrange(-2000, 2000)
        self.drift = self.rng.uniform(-0.001, 0.001)

    @property
    def running(self) -> bool:
        return self.loop is not None and not self.loop.dead

    @property
    def is_broker(self) -> bool:
        return "broker" in self.properties["process.roles"]

    @property
    def is_controller(self) -> bool:
        return "controller" in self.properties["process.roles"]

    @property
    def leads_quorum(self) -> bool:
        """Whether this node believes that it leads the metadata quorum."""
        return self.serving and bool(self.node.replica.member.machine.is_leader)  # type: ignore[union-attr]

    def start(self) -> None:
        """Starts a new process; it serves when ``serving``."""
        assert not self.running
        self.starts += 1
        self.serving, self.ended = False, None
        self.node = None  # not the last process's settings, which may have changed
        seed = self.rng.getrandbits(64)
        loop = self.loop = new_loop(self._agenda, f"node {self.node_id}", seed=seed, drift=self.drift)
        self._network.attach(loop, self.host)
        runtime = self.runtime = SimRuntime(loop, seed ^ 1, self.skew_ms)
        loop.create_task(self._live(loop, runtime))

    async def _live(self, loop: SimLoop, runtime: SimRuntime) -> None:
        node: Node | ControllerNode | None = None
        try:
            config = BrokerConfig.from_properties(self.properties)
            node = self.node = (
                Node(config, runtime, self.disk) if config.is_broker else ControllerNode(config, runtime, self.disk)
            )
            await node.start()
            self.serving = True
            await node.failed.wait()
            self.ended = "it reports that it cannot continue"
        except PowerLoss:
            raise
        except Exception as error:
            self.ended = f"{type(error).__name__}: {error}"
        if not loop.dead:
            self.serving = False
            self._end(silent=False)
            self.disk = self.disk.kill()

    def stop(self) -> asyncio.Task[Any] | None:
        """As SIGTERM does; returns the task, which is done when the node has ended. None when it does not serve."""
        loop, node = self.loop, self.node
        if loop is None or loop.dead or node is None or not self.serving:
            return None
        self.serving = False

        async def end() -> None:
            await node.stop()
            self._end(silent=False)
            self.disk = self.disk.kill()

        return loop.create_task(end())

    def kill(self) -> None:
        """kill -9."""
        if self.running:
            self._end(silent=False)
            self.disk = self.disk.kill()

    def lose_power(self) -> None:
        """Loses part of the unsynced data; peers are not notified."""
        if self.running:
            self._end(silent=True)
            self.disk = self.disk.crash(self.rng.getrandbits(32))

    def forget(self) -> None:
        """Drops all processes, once the world has ended."""
        for loop, _ in self.graveyard:
            loop.forget()
        self.graveyard.clear()

    def pause(self) -> None:
        if self.running and self.loop is not None:
            self.loop.pause()

    def resume(self) -> None:
        if self.running and self.loop is not None:
            self.loop.resume()

    def set_clock(self, by_ms: int) -> None:
        """Sets the wall clock, now and for later processes."""
        self.skew_ms = max(-30_000, min(30_000, self.skew_ms + by_ms))
        if self.running and self.runtime is not None:
            self.runtime.skew_ms = self.skew_ms

    def _end(self, *, silent: bool) -> None:
        loop = self.loop
        assert loop is not None
        loop.end()
        self.serving = False
        self.problems += loop.problems
        self._network.gone(loop, silent=silent)
        self.graveyard.append((loop, self.node))
        self.disk.off = True
