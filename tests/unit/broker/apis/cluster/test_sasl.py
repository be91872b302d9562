"""SaslHandshake and SaslAuthenticate without SASL. The exchange itself: ``tests/unit/broker/test_authentication.py``."""

from __future__ import annotations

from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.apis.cluster.sasl import sasl_authenticate, sasl_handshake
from tidelog.broker.request import RequestContext
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tidelog.protocol.messages.sasl_handshake import SaslHandshakeRequest


def test_a_listener_without_sasl_says_so() -> None:
    world = NodeWorld()
    shaken = sasl_handshake(RequestContext(world.broker, world.session(), 17, 1), SaslHandshakeRequest(mechanism="PLAIN"))
    assert (shaken.error_code, shaken.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    answer = sasl_authenticate(RequestContext(world.broker, world.session(), 36, 2), SaslAuthenticateRequest(auth_bytes=b"x"))
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert answer.error_message == "This listener does not authenticate by SASL."
