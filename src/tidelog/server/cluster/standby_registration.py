"""Registers a standby controller with the active one until the committed image contains the registration."""

from __future__ import annotations

import logging
from typing import Any

from tidelog.metadata.supported_features import CONTROLLER_REGISTRATION_MV
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener
from tidelog.raft.effects import Node
from tidelog.server.cluster.node_login import PLAIN_TEXT, NodeLogin
from tidelog.server.cluster.raft_channels import Peers
from tidelog.server.cluster.raft_runner import RaftRunner
from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)


class Registration:
    """The registration of one controller process."""

    def __init__(self, runner: RaftRunner, runtime: LoopRuntime, login: NodeLogin = PLAIN_TEXT) -> None:
        self._runner = runner
        self._me = runner.member.config.controller
        self._peers = Peers(runtime, self, f"quorum-controller-{self._me.id}-registration-", login)
        self._asking = False
        self._requests = 0

    def step(self) -> None:
        """Called periodically: registers if there is a leader and a need to."""
        member = self._runner.member
        quorum = member.machine.quorum
        known = member.image.controllers.get(self._me.id)
        at = self._runner.leader_endpoint
        if self._asking or quorum.leader_id in (-1, self._me.id) or at is None:
            return
        if member.image.metadata_version < CONTROLLER_REGISTRATION_MV:
            return
        if known is not None and known.incarnation_id == self._me.incarnation_id:
            return
        self._asking = True
        self._requests += 1
        self._peers.send(self._requests, Node(quorum.leader_id, *at), self._request())

    def _request(self) -> ControllerRegistrationRequest:
        me = self._me
        return ControllerRegistrationRequest(
            controller_id=me.id,
            incarnation_id=me.incarnation_id,
            listeners=[Listener(each.name, each.host, each.port, each.security_protocol) for each in me.endpoints.values()],
            features=[Feature(name, low, high) for name, (low, high) in me.features.items()],
        )

    def answered(self, request_id: int, message: Any) -> None:
        self._asking = False
        if message.error_code not in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER):
            log.error("the active controller does not register this one: %s %s", message.error_code, message.error_message)

    def failed(self, request_id: int, *, refused: bool, unsupported: bool) -> None:
        self._asking = False

    def close(self) -> None:
        self._peers.close()
