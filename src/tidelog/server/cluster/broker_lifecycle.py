"""A broker's session with the controller, from registration to controlled shutdown (KIP-631).

    register      retried until it succeeds, also while the controller cannot be reached or still has a session of this broker's
                  previous process; the answer is the broker epoch
    heartbeats    every broker.heartbeat.interval.ms, and immediately when there is news or a new controller; the broker is fenced
                  until this node is ready and has caught up, and again whenever the controller heard nothing for too long
    shut down     leaderships move away; the process may end when the controller agrees, or has been silent for too long

A broker that the controller does not know registers again. Every heartbeat names the failed log dirs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from tidelog.broker.ports import ControllerHandler
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.supported_features import CORDONED_DIRS_MV
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from tidelog.server.cluster.controller_link import ControllerLink
from tidelog.server.cluster.metadata_replica import MetadataReplica
from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)

PURPOSE = "broker life"
"""A separate connection: no slow request may delay a heartbeat."""
SOON_MS = 10
"""Time to the next heartbeat while the controller waits for this node to catch up; doubled each time."""
RETRY_MS = 100
"""Back-off after an unanswered attempt; a change of the leader ends it."""
REFUSED_MS = 500
"""Back-off after a refused registration, usually because the controller still has a session of this broker's previous process."""
SHUT_DOWN_MS = 20
"""Heartbeat interval during a controlled shutdown; each one moves a few hundred leaderships."""
FIRST_PROGRESS_MS = 3000
PROGRESS_MS = 5000
ALONE_MS = 500
"""How long a stopping broker waits for a controller when no other broker is left to take over its leaderships."""
LONGEST_SHUT_DOWN_MS = 300_000
"""Kafka's limit on handing over leaderships."""
_HOPELESS = (ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_UNKNOWN = (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED)


class BrokerLife:
    def __init__(
        self,
        config: BrokerConfig,
        link: ControllerLink,
        replica: MetadataReplica,
        runtime: LoopRuntime,
        cordoned: Callable[[], list[bytes]],
    ) -> None:
        """``cordoned`` returns the log dirs that take no new replicas (KIP-1066); it is called for each heartbeat."""
        self._config = config
        self._link = link
        self._replica = replica
        self._runtime = runtime
        self._request: BrokerRegistrationRequest | None = None
        self.epoch = -1
        """The broker epoch; -1 before the first registration."""
        self.fenced = True
        """As of the last heartbeat."""
        self._ready = False
        self._leaving = False
        self._may_stop = False
        self._unreachable = False
        """Whether the last attempt got no answer, or only that another controller leads."""
        self._soon_ms = SOON_MS
        self._offline: tuple[Uuid, ...] = ()
        self._cordoned = cordoned
        self._heard_ms = 0
        self._standing_ms = 0
        """Send time of the last answered heartbeat, or the time of the registration; the session counts from here."""
        self._poked: asyncio.Future[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._registering = False
        self._changed: Callable[[], None] | None = None
        replica.on_leader.append(self.poke)

    @property
    def in_touch(self) -> bool:
        """Whether a heartbeat was answered so recently that this broker's session cannot have expired."""
        return self._runtime.real_ms() - self._standing_ms < self._config.broker_session_timeout_ms

    def why_not_ready(self) -> str | None:
        """Why this broker does not serve clients; None when it does."""
        if self._leaving or self._replica.stopped:
            return "the broker stops"
        return "the broker is fenced by the active controller" if self.fenced else None

    # Called by the node

    async def register(self, request: BrokerRegistrationRequest) -> None:
        """Registers and starts heartbeats; returns when this node's image contains the registration.

        KafkaError when the controller refuses for good, or did not register the broker within
        initial.broker.registration.timeout.ms.
        """
        self._request = request
        self._heard_ms = self._runtime.real_ms()
        await self._register(self._config.initial_broker_registration_timeout_ms)
        self._beating = self._runtime.spawn(self._beat(), "heartbeats")
        await self._replica.until(lambda: self._caught_up or self._replica.stopped)

    async def serve(self) -> None:
        """Called when the node is ready; returns when it is unfenced or stopping."""
        self._ready = True
        self.poke()
        told_ms = self._runtime.real_ms()
        while self.fenced and not self._leaving and not self._replica.stopped:
            await self._next_change(PROGRESS_MS / 1000)
            if self.fenced and self._runtime.real_ms() - told_ms >= PROGRESS_MS:
                told_ms = self._runtime.real_ms()
                log.info("waiting to be unfenced by the active controller (%s)", self._leader())

    def report_offline(self, directories: Sequence[Uuid]) -> None:
        """Adds failed log dirs to those reported before."""
        self._offline = tuple(dict.fromkeys((*self._offline, *directories)))
        self.poke()

    def unregistered(self) -> None:
        """Called when the image no longer contains this broker: registers again."""
        if not self._leaving and not self._replica.stopped and not self._registering:
            log.warning("this broker was unregistered while it runs: it registers again")
            self._registering = True
            self.poke()

    async def shut_down(self) -> None:
        """Controlled shutdown: returns when this broker leads nothing, or when no controller or other broker is there to hand
        over to."""
        if self._beating is None:
            return
        self._leaving = True
        began = told = self._runtime.real_ms()
        self._heard_ms = began
        self.poke()
        while not self._may_stop and not self._replica.stopped and not self._beating.done():
            await self._next_change(SHUT_DOWN_MS / 1000)
            now = self._runtime.real_ms()
            if now - self._heard_ms >= ALONE_MS and self._alone:
                log.info("no controller answers, and no other broker is left to take leaderships over: stopping without consent")
                return
            if now - self._heard_ms >= self._patience_ms:
                log.warning("stopping without the controller's consent: it has not answered for %d ms", now - self._heard_ms)
                return
            if now - began >= LONGEST_SHUT_DOWN_MS:
                log.warning("stopping without the controller's consent: leaderships were not taken over in %d ms", now - began)
                return
            if now - told >= PROGRESS_MS:
                told = now
                log.info("waiting for leaderships to move to other brokers, for %.0f s", (now - began) / 1000)

    @property
    def _alone(self) -> bool:
        """Whether all other brokers are fenced, as far as this node has read."""
        return all(each.fenced for each in self._replica.image.brokers.values() if each.id != self._config.node_id)

    @property
    def _patience_ms(self) -> int:
        """How long a reached controller may be silent; without a leader, how long an election may take."""
        config = self._config
        if self._replica.runner.leader_id >= 0 and not self._unreachable:
            return config.broker_session_timeout_ms
        election_ms = config.controller_quorum_fetch_timeout_ms + config.controller_quorum_election_timeout_ms
        return min(config.broker_session_timeout_ms, election_ms)

    def stop(self) -> None:
        """Stops the heartbeats."""
        if self._beating is not None:
            self._beating.cancel()

    def poke(self) -> None:
        """Sends the next heartbeat now: there is news to report, or a new leader."""
        poked, self._poked = self._poked, None
        if poked is not None and not poked.done():
            poked.set_result(None)

    # Registration

    async def _register(self, timeout_ms: int) -> None:
        assert self._request is not None
        began = self._runtime.real_ms()
        told = began - PROGRESS_MS + FIRST_PROGRESS_MS
        while not self._replica.stopped:
            poked = self._poke()
            try:
                response = await self._attempt(QuorumController.register_broker, self._request)
                self._registered(response)
            except KafkaError as error:
                if error.code in _HOPELESS:
                    raise KafkaError(error.code, f"the controller refuses this broker's registration: {error.detail}") from error
                why = "" if error.code is ErrorCode.NOT_CONTROLLER else f": {error}"
                pause_ms = RETRY_MS if error.code is ErrorCode.NOT_CONTROLLER else REFUSED_MS
            else:
                return
            now = self._runtime.real_ms()
            if now - began >= timeout_ms:
                limit = f"within {timeout_ms} ms (initial.broker.registration.timeout.ms)"
                text = f"this broker was not registered {limit}{why}; {self._leader()}"
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, text)
            if now - told >= PROGRESS_MS:
                told = now
                log.info("not registered after %.0f s%s; %s", (now - began) / 1000, why, self._leader())
            await asyncio.wait([poked], timeout=pause_ms / 1000)

    def _registered(self, response: BrokerRegistrationResponse) -> None:
        if response.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode(response.error_code), "the controller does not register this broker")
        self.epoch = response.broker_epoch
        self.fenced = True
        self._heard_ms = self._standing_ms = self._runtime.real_ms()
        log.info("registered as broker %d with epoch %d", self._config.node_id, self.epoch)

    @property
    def _caught_up(self) -> bool:
        """Whether this node has read its own registration."""
        mine = self._replica.image.brokers.get(self._config.node_id)
        return mine is not None and mine.epoch == self.epoch

    def _leader(self) -> str:
        runner = self._replica.runner
        place = runner.leader_endpoint
        if runner.leader_id < 0:
            asked = ", ".join(self._config.controller_quorum_bootstrap_servers) or "the voters"
            return f"no leader of the metadata quorum is known, {asked} are asked"
        return f"node {runner.leader_id} leads" + (f" at {place[0]}:{place[1]}" if place is not None else "")

    # Heartbeats

    async def _beat(self) -> None:
        while True:
            poked = self._poke()
            wait_ms = await self._step()
            if wait_ms > 0:
                await asyncio.wait([poked], timeout=wait_ms / 1000)

    async def _step(self) -> int:
        """Sends one heartbeat, or registers; returns the time until the next in ms."""
        if self._registering:
            assert self._request is not None
            self._request.previous_broker_epoch = self.epoch
            await self._register(1 << 40)
            self._registering = False
        request = BrokerHeartbeatRequest(
            broker_id=self._config.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._replica.image.offset,
            want_fence=not self._ready and not self._leaving,
            want_shut_down=self._leaving,
            offline_log_dirs=list(self._offline),
            cordoned_log_dirs=self._cordoned() if self._says_cordoned else None,
        )
        sent_ms = self._runtime.real_ms()
        try:
            response: BrokerHeartbeatResponse = await self._attempt(QuorumController.broker_heartbeat, request)
        except KafkaError as error:
            return self._not_taken(error.code, str(error))
        if response.error_code != ErrorCode.NONE:
            return self._not_taken(ErrorCode(response.error_code), "")
        self._standing_ms = sent_ms
        return self._taken(response)

    @property
    def _says_cordoned(self) -> bool:
        return self._caught_up and self._replica.image.metadata_version >= CORDONED_DIRS_MV

    def _taken(self, response: BrokerHeartbeatResponse) -> int:
        self._heard_ms = self._runtime.real_ms()
        self._unreachable = False
        changed = self.fenced != response.is_fenced
        self.fenced, self._may_stop = response.is_fenced, self._leaving and response.should_shut_down
        if changed and self.fenced and not self._leaving:
            log.info("broker %d is fenced by the active controller", self._config.node_id)
        if (changed or self._may_stop) and self._changed is not None:
            self._changed()
        interval_ms = max(1, self._config.broker_heartbeat_interval_ms)
        if self._leaving:
            return interval_ms if self._may_stop else SHUT_DOWN_MS
        if not self.fenced or (response.is_caught_up and not self._ready):
            self._soon_ms = SOON_MS
            return interval_ms
        wait_ms, self._soon_ms = self._soon_ms, min(self._soon_ms * 2, interval_ms)
        return wait_ms

    def _not_taken(self, code: ErrorCode, why: str) -> int:
        self._unreachable = code is ErrorCode.NOT_CONTROLLER
        if code in _UNKNOWN and not self._leaving:
            self._registering = True
            log.warning("the controller does not know this broker with epoch %d (%s): it registers again", self.epoch, code.name)
            return 0
        if code in _UNKNOWN:
            self._may_stop = True
        elif code is not ErrorCode.NOT_CONTROLLER:
            log.warning("a heartbeat was refused: %s %s", code.name, why)
        return RETRY_MS

    async def _attempt(self, handler: ControllerHandler, request: Any) -> Any:
        """One attempt. KafkaError NOT_CONTROLLER when there was no answer, or the leader changed meanwhile."""
        if self._link.is_here:
            return await self._replica.runner.controller.submit(handler, request)
        place = self._replica.runner.leader_endpoint
        asking = self._runtime.loop.create_task(
            self._link.attempt(request, self._config.broker_session_timeout_ms, PURPOSE), name="a sign of life"
        )
        try:
            while not asking.done():
                await asyncio.wait([asking, self._poke()], return_when=asyncio.FIRST_COMPLETED)
                if not asking.done() and self._replica.runner.leader_endpoint != place:
                    raise KafkaError(ErrorCode.NOT_CONTROLLER, "the leader changed")
            return asking.result()
        finally:
            if asking.cancel():
                # The result is dropped; retrieve the exception so that asyncio does not log it.
                asking.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _poke(self) -> asyncio.Future[None]:
        if self._poked is None:
            self._poked = self._runtime.loop.create_future()
        return self._poked

    async def _next_change(self, timeout_s: float) -> None:
        changed: asyncio.Future[None] = self._runtime.loop.create_future()

        def tell() -> None:
            if not changed.done():
                changed.set_result(None)

        self._changed = tell
        await asyncio.wait([changed], timeout=timeout_s)
