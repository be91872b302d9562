"""Requests of features that tidelog does not have."""

from __future__ import annotations

from typing import Any

from tidelog.broker.node import BrokerContext
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.structure import Message


def switched_off(ctx: BrokerContext, request: Any) -> Message:
    """Sent by clients that ignore ApiVersions. UNSUPPORTED_VERSION."""
    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "This version of tidelog has no streams groups.")
