"""Fences brokers whose process has died, within moments instead of after a session timeout.

A process that dies closes its connections, and its ports refuse new ones. So when the connection that carried a broker's
heartbeats is closed, the active controller tries to connect to the broker's listeners. A new controller, which has had no
heartbeats yet, tries all brokers once, because its predecessor was usually a broker too. When all of a broker's addresses refuse
three times in a row and no heartbeat has arrived meanwhile, its session ends: its leaderships move with the next tick, and its
next process may register immediately.

A firewall may refuse a connection for a host whose broker lives, and the two refusals look the same. So a refusal is evidence
only where connections to the address are known to arrive: on this machine, or because one was accepted since the broker was
unfenced, which every controller tries once. Anything else (an open port, an address that does not answer or was never reached, an
unreachable machine) proves nothing; then the session timeout applies, as in Kafka.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping

from tidelog.broker.node import Lives
from tidelog.controller.quorum_member import QuorumMember
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import BrokerImage, ClusterImage
from tidelog.model.addresses import ip_address, is_address
from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)

KNOCKS = 3
"""Consecutive refusals required, so that a listener that is being reopened does not count as dead."""
PAUSE_S = 0.05
ANSWER_S = 1.0
AT_ONCE = 16
"""Concurrent connection attempts: a new active controller of hundreds of brokers has other work, too."""


class DeadBrokers(Lives):
    def __init__(self, member: QuorumMember, runtime: LoopRuntime) -> None:
        self._member = member
        self._runtime = runtime
        self._asking: set[int] = set()
        self._heard: set[int] = set()
        self._looked_in_epoch = -1
        self._seen: Mapping[int, BrokerImage] = {}
        self._reached: dict[tuple[int, int], set[tuple[str, int]]] = {}
        """By broker id and epoch: the addresses on other machines that have accepted a connection."""
        self._places = asyncio.Semaphore(AT_ONCE)
        self._stopped = False

    def stop(self) -> None:
        """Checks no more brokers."""
        self._stopped = True

    def leader_changed(self) -> None:
        """Checks all brokers once if this process has become the active controller."""
        controller, epoch = self._member.controller, self._member.machine.epoch
        if controller is None or epoch == self._looked_in_epoch:
            return
        self._looked_in_epoch = epoch
        for broker in controller.image.brokers.values():
            self.hung_up(broker.id, broker.epoch)

    def committed(self, old: ClusterImage, new: ClusterImage, delta: ClusterDelta | None) -> None:
        """Tries the addresses of brokers that are unfenced now. A listener of the committed image."""
        del old, delta
        if new.brokers is self._seen or self._stopped:
            return
        self._seen = new.brokers
        serving = {(broker.id, broker.epoch): broker for broker in new.brokers.values() if not broker.fenced}
        self._reached = {key: found for key, found in self._reached.items() if key in serving}
        for key, broker in serving.items():
            if key not in self._reached and broker.id != self._member.config.controller.id:
                self._reached[key] = set()
                self._runtime.spawn(self._reach(broker), f"checking that the addresses of broker {broker.id} can be reached")

    def heard(self, broker_id: int) -> None:
        if broker_id in self._asking:
            self._heard.add(broker_id)

    def hung_up(self, broker_id: int, epoch: int) -> None:
        own_id = self._member.config.controller.id
        if self._stopped or self._registered(broker_id, epoch) is None or broker_id in self._asking or broker_id == own_id:
            return
        self._asking.add(broker_id)
        self._runtime.spawn(self._ask_after(broker_id, epoch), f"looking whether broker {broker_id} lives")

    def _registered(self, broker_id: int, epoch: int) -> BrokerImage | None:
        """The broker's registration, while this is the active controller and the broker is unfenced."""
        controller = self._member.controller
        broker = controller.image.brokers.get(broker_id) if controller is not None else None
        return broker if broker is not None and broker.epoch == epoch and not broker.fenced else None

    async def _ask_after(self, broker_id: int, epoch: int) -> None:
        self._heard.discard(broker_id)
        try:
            for _ in range(KNOCKS):
                await asyncio.sleep(PAUSE_S)
                broker = self._registered(broker_id, epoch)
                if self._stopped or broker is None or not await self._refused(broker) or broker_id in self._heard:
                    return
        finally:
            self._asking.discard(broker_id)
        controller = self._member.controller
        if controller is not None and self._registered(broker_id, epoch) is not None:
            log.info("broker %d is dead: its connection is closed and its addresses refuse connections", broker_id)
            controller.heartbeats.gone(broker_id, epoch)

    async def _refused(self, broker: BrokerImage) -> bool:
        """Whether all of its addresses refuse connections, one at least where that is evidence."""
        reached = self._reached.get((broker.id, broker.epoch), set())
        if not any(self._is_here(each.host) or (each.host, each.port) in reached for each in broker.endpoints.values()):
            return False
        for endpoint in broker.endpoints.values():
            try:
                async with self._places, asyncio.timeout(ANSWER_S):
                    await self._knock(endpoint.host, endpoint.port)
            except ConnectionRefusedError:
                continue
            except (OSError, TimeoutError):
                return False
            return False
        return True

    async def _reach(self, broker: BrokerImage) -> None:
        for endpoint in broker.endpoints.values():
            if self._is_here(endpoint.host):
                continue
            try:
                async with self._places, asyncio.timeout(ANSWER_S):
                    await self._knock(endpoint.host, endpoint.port)
            except (OSError, TimeoutError):
                continue
            self._reached.get((broker.id, broker.epoch), set()).add((endpoint.host, endpoint.port))

    def _is_here(self, host: str) -> bool:
        """Whether the address is one of this machine, as far as the settings tell."""
        if host == "localhost" or (is_address(host) and ip_address(host).is_loopback):
            return True
        return any(host == own.host for own in self._member.config.controller.endpoints.values())

    async def _knock(self, host: str, port: int) -> None:
        if not is_address(host):
            found = await self._runtime.run_blocking(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            host = str(min(found, key=lambda each: each[0] != socket.AF_INET)[4][0])
        transport, _ = await self._runtime.loop.create_connection(asyncio.Protocol, host, port)
        transport.abort()
