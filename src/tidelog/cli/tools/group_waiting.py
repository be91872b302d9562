"""Why a consumer's group gets no partitions. librdkafka and Java's consumer wait in silence for a group's coordinator, which a
cluster never has when it cannot create the topic of offsets."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.cli.broker_connection import Session
from tidelog.cli.refusal import CannotConnect, CommandFailed
from tidelog.client.calls import GROUP
from tidelog.client.settings import parse_admin_settings
from tidelog.model.errors import ConfigError, ErrorCode
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest

ASK_MS = 5000
_SEVERAL_FROM = 4
_HINT = (
    "If the cluster has fewer brokers than offsets.topic.replication.factor (3 unless it is set), set it in each broker's file "
    "to the number of brokers (1 for a single node) and restart them."
)


def why_waiting(settings: Mapping[str, str], bootstrap: str, group: str) -> str:
    """What a broker says about the group's missing coordinator, and what to do. Empty when there is a coordinator, and when no
    broker can be asked. ``settings``: those of the consumer, as Java names them."""
    try:
        parsed = parse_admin_settings(
            {**settings, "client.id": "probe", "request.timeout.ms": str(ASK_MS), "default.api.timeout.ms": str(ASK_MS)},
            bootstrap,
        )
        with Session(parsed) as session:
            if session.version_of(ApiKey.FIND_COORDINATOR) >= _SEVERAL_FROM:
                answer = session.ask(FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[group]))
                answer = answer.coordinators[0]
            else:
                answer = session.ask(FindCoordinatorRequest(key=group, key_type=GROUP))
    except (ConfigError, CannotConnect, CommandFailed):
        return ""
    if answer.error_code == ErrorCode.NONE:
        return ""
    reason = answer.error_message or ErrorCode(answer.error_code).text
    hint = f" {_HINT}" if answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE else ""
    return f"group {group} has no coordinator, so nothing is read: {reason}{hint}"
