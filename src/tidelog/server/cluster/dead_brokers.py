"""Fences brokers whose process has died, within moments instead of after a session timeout.

A process that dies closes its connections, and its ports refuse new ones. So when the connection that carried a broker's
heartbeats is closed, the active controller tries to connect to the broker's listeners. A new controller, which has had no
heartbeats yet, tries all brokers once, because its predecessor was usually a broker too. When all of a broker's addresses refuse
three times in a row and no heartbeat has arrived meanwhile, its session ends: its leaderships move with the next tick, and its
next process may register immediately. Anything else (an open port, an address that does not answer, an unreachable machine)
proves nothing; then the session timeout applies, as in Kafka.
"""

from __future__ import annotations

import asyncio
import logging
import socket

from tidelog.broker.node import Lives
from tidelog.controller.quorum_member import QuorumMember
from tidelog.metadata.image import BrokerImage
from tidelog.server.cluster.channels import is_address
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
        self._places = asyncio.Semaphore(AT_ONCE)
        self.stopped = False

    def leader_changed(self) -> None:
        """Checks all brokers once if this process has become the active controller."""
        controller, epoch = self._member.controller, self._member.machine.epoch
        if controller is None or epoch == self._looked_in_epoch:
            return
        self._looked_in_epoch = epoch
        for broker in controller.image.brokers.values():
            self.hung_up(broker.id, broker.epoch)

    def heard(self, broker_id: int) -> None:
        if broker_id in self._asking:
            self._heard.add(broker_id)

    def hung_up(self, broker_id: int, epoch: int) -> None:
        own_id = self._member.config.controller.id
        if self.stopped or self._registered(broker_id, epoch) is None or broker_id in self._asking or broker_id == own_id:
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
                if self.stopped or broker is None or not await self._refused(broker) or broker_id in self._heard:
                    return
        finally:
            self._asking.discard(broker_id)
        controller = self._member.controller
        if controller is not None and self._registered(broker_id, epoch) is not None:
            log.info("broker %d has hung up and nobody listens at its address: its session is over", broker_id)
            controller.heartbeats.gone(broker_id, epoch)

    async def _refused(self, broker: BrokerImage) -> bool:
        """Whether all of its addresses refuse connections."""
        for endpoint in broker.endpoints.values():
            try:
                async with self._places, asyncio.timeout(ANSWER_S):
                    await self._knock(endpoint.host, endpoint.port)
            except ConnectionRefusedError:
                continue
            except (OSError, TimeoutError):
                return False
            return False
        return bool(broker.endpoints)

    async def _knock(self, host: str, port: int) -> None:
        if not is_address(host):
            found = await self._runtime.run_blocking(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            host = str(min(found, key=lambda each: each[0] != socket.AF_INET)[4][0])
        transport, _ = await self._runtime.loop.create_connection(asyncio.Protocol, host, port)
        transport.abort()
