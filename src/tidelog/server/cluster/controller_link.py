"""Reaches the active controller: in this process when it is here, otherwise over a connection.

A request is retried until an active controller answers or its timeout expires; a controller that is no longer active, one that
cannot be reached, and a quorum without a leader are waited out. So a request may reach two controllers in turn; the second one
knows what the first one committed. The response arrives when the change is committed; this node's image may not contain it yet
(``until_applied`` waits for that).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from tidelog.broker.envelope import sealed_request, unsealed
from tidelog.broker.ports import Asker, ControllerHandler, ControllerIsHere
from tidelog.broker.refusals import first_error
from tidelog.broker.table import CONTROLLER_APIS, RAFT_APIS
from tidelog.metadata.image import ClusterImage
from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation
from tidelog.protocol.structure import Message
from tidelog.raft.description import QuorumDescription
from tidelog.server.cluster.channels import ChannelError, Channels, Failure
from tidelog.server.cluster.metadata_replica import MetadataReplica
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.violations import LogLimit

PAUSE_MS = 50
"""Between two attempts; a change of the leader ends the wait."""
GRACE_MS = 500
"""How long the asked controller may still answer after another one became the leader. It may hang."""
APPLIED_S = 1.0
"""The longest wait for this node's image; far longer than it takes to read a record that is committed."""
PURPOSE = "controller"

log = logging.getLogger(__name__)


class ControllerLink:
    """Implements ``broker.ports.Controller``."""

    def __init__(self, replica: MetadataReplica, channels: Channels, runtime: LoopRuntime, timeout_ms: int) -> None:
        """``timeout_ms``: for requests without a timeout."""
        self._replica = replica
        self._channels = channels
        self._runtime = runtime
        self._timeout_ms = timeout_ms
        self._changed: asyncio.Future[None] | None = None
        self._refusals = LogLimit()
        replica.on_leader.append(self._leader_changed)

    @property
    def is_here(self) -> bool:
        """Whether this process is the active controller."""
        return self._replica.member.controller is not None

    def submit(
        self, handler: ControllerHandler, request: Any, version: int | None = None, asker: Asker | None = None
    ) -> asyncio.Future[Any]:
        """Continues even if the future is not awaited."""
        local: asyncio.Future[Any] | None = None
        if self.is_here or self._replica.stopped:
            local = self._replica.runner.controller.submit(handler, request)
            if local.done() and (self._replica.stopped or not _lost(local.exception())):
                return local
        future = self._runtime.promise()
        if local is None or local.done():
            self._deliver(handler, request, version, asker, future)
        else:
            local.add_done_callback(lambda done: self._decided(done, handler, request, version, asker, future))
        return future

    def _decided(
        self,
        local: asyncio.Future[Any],
        handler: ControllerHandler,
        request: Any,
        version: int | None,
        asker: Asker | None,
        future: asyncio.Future[Any],
    ) -> None:
        """Completes a request decided here, or asks again when the leadership ended before the commit."""
        if local.cancelled():
            future.cancel()
        elif _lost(local.exception()) and not self._replica.stopped:
            self._deliver(handler, request, version, asker, future)
        elif future.done():
            return
        elif (error := local.exception()) is not None:
            future.set_exception(error)
        else:
            future.set_result(local.result())

    def _deliver(
        self, handler: ControllerHandler, request: Any, version: int | None, asker: Asker | None, future: asyncio.Future[Any]
    ) -> None:
        def here() -> Awaitable[Any]:
            return self._replica.runner.controller.submit(handler, request)

        async def deliver() -> None:
            try:
                response = await self._until_answered(request, version, here, asker)
            except KafkaError as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(response)
            finally:
                future.cancel()

        self._runtime.spawn(deliver(), f"asking the controller: {type(request).__name__}")

    def describe_quorum(self) -> QuorumDescription | None:
        """Leader and voters; None when another node leads."""
        return self._replica.runner.controller.describe_quorum()

    @property
    def kraft_version(self) -> int:
        """The kraft.version of the metadata quorum, as far as this node has read."""
        return self._replica.runner.controller.kraft_version

    async def pass_on(self, version: int, request: Any, asker: Asker) -> Any:
        """See ``broker.ports.ActiveController``."""

        async def here() -> Any:
            raise ControllerIsHere

        return await self._until_answered(request, version, here, asker)

    async def until_applied(self, what: Callable[[ClusterImage], bool]) -> None:
        """See ``broker.ports.ActiveController``."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._replica.until(lambda: what(self._replica.image)), APPLIED_S)

    async def forward(self, api_key: int, version: int, request: Any, asker: Asker | None = None) -> Any:
        """The leader's answer to a request for its Raft machine, such as AddRaftVoter, or to DescribeQuorum while another node
        leads.

        KafkaError NOT_LEADER_OR_FOLLOWER for DescribeQuorum when this node has become the leader: the caller can answer it here.
        """

        async def here() -> Any:
            if api_key not in RAFT_APIS:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node has begun to lead the metadata quorum; ask again")
            return await self._replica.runner.requests.ask(api_key, version, "", request)

        return await self._until_answered(request, version, here, asker)

    async def _until_answered(
        self, request: Any, version: int | None, here: Callable[[], Awaitable[Any]], asker: Asker | None = None
    ) -> Any:
        timeout_ms = getattr(request, "timeout_ms", 0)
        deadline_ms = self._runtime.real_ms() + (timeout_ms if timeout_ms > 0 else self._timeout_ms)
        why = "there is no active controller"
        while not self._replica.stopped:
            changed = self._when_leader_changes()
            try:
                left_ms = deadline_ms - self._runtime.real_ms()
                response = await (here() if self.is_here else self._ask(request, left_ms, version, asker))
            except KafkaError as error:
                if not _lost(error):
                    raise
                why = error.detail or why
            else:
                if not _not_active(request.API_KEY, response):
                    return response
                why = "the controller that was asked is not active any more"
            left_ms = deadline_ms - self._runtime.real_ms()
            if left_ms <= 0:
                break
            await asyncio.wait([changed], timeout=min(PAUSE_MS, left_ms) / 1000)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"The controller did not answer in time: {why}.")

    async def _ask(self, request: Any, timeout_ms: int, version: int | None, asker: Asker | None) -> Any:
        """``attempt``, but gives up when another controller leads and the asked one does not answer."""
        place = self._replica.runner.leader_endpoint
        attempt = (
            self.attempt(request, timeout_ms, version=version)
            if asker is None
            else self._pass_on(request, timeout_ms, version, asker)
        )
        asked = self._runtime.loop.create_task(attempt)
        try:
            while not asked.done():
                changed = self._when_leader_changes()
                await asyncio.wait([asked, changed], return_when=asyncio.FIRST_COMPLETED)
                if asked.done():
                    break
                await asyncio.wait([asked], timeout=GRACE_MS / 1000)
                if not asked.done() and self._replica.runner.leader_endpoint not in (None, place):
                    raise KafkaError(ErrorCode.NOT_CONTROLLER, "another controller leads by now")
            return await asked
        finally:
            asked.cancel()

    async def attempt(self, request: Any, timeout_ms: int, purpose: str = PURPOSE, version: int | None = None) -> Any:
        """Asks the active controller at its listener, once. KafkaError NOT_CONTROLLER when it was not reached."""
        place = self._replica.runner.leader_endpoint
        if place is None or self._replica.runner.leader_id == self._replica.config.node_id:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the leader of the metadata quorum is unknown")
        try:
            return await self._channels.to(*place, purpose).ask(request, timeout_ms=timeout_ms, version=version)
        except ChannelError as error:
            if error.kind is Failure.UNSUPPORTED:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"The active controller cannot be asked: {error}") from error
            raise KafkaError(ErrorCode.NOT_CONTROLLER, str(error)) from error

    async def _pass_on(self, request: Any, timeout_ms: int, version: int | None, asker: Asker) -> Any:
        """``attempt`` in an envelope that names the client."""
        try:
            response = await self.attempt(sealed_request(asker, version, request), timeout_ms)
        except KafkaError as error:
            if error.code is ErrorCode.UNSUPPORTED_VERSION:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The active controller takes no envelopes.") from error
            raise
        self._tell_refusal(response.error_code)
        try:
            return unsealed(response, version, request)
        except ProtocolViolation as error:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The active controller's answer cannot be read: {error}") from error

    def _tell_refusal(self, code: int) -> None:
        """Logs why the controller takes no envelopes from this broker; the client learns only that something failed."""
        if code in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER, ErrorCode.UNSUPPORTED_VERSION):
            return
        if untold := self._refusals.untold(self._runtime.now_ms()):
            log.warning("%d more requests of clients were not taken by the active controller", untold)
        if self._refusals.takes():
            log.warning("the active controller does not take a client's request from this broker: %s", ErrorCode(code).name)

    def _when_leader_changes(self) -> asyncio.Future[None]:
        if self._changed is None:
            self._changed = self._runtime.loop.create_future()
        return self._changed

    def _leader_changed(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set_result(None)


def _lost(error: BaseException | None) -> bool:
    return isinstance(error, KafkaError) and error.code is ErrorCode.NOT_CONTROLLER


def _not_active(api_key: int, response: Message) -> bool:
    """Whether the response, or its first item, says that its sender is not the active controller."""
    row = CONTROLLER_APIS.get(api_key)
    refusal = ErrorCode.NOT_CONTROLLER if row is None else row.api.not_active
    return first_error(response) in (refusal, ErrorCode.NOT_CONTROLLER)
