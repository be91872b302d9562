"""Log lines that name the client that created or deleted topics or added partitions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.create_partitions import CreatePartitionsRequest
from tidelog.protocol.messages.create_topics import CreateTopicsRequest
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest

log = logging.getLogger(__name__)

SHOWN = 10
"""Topics listed in a line."""
_VERBS = {
    CreateTopicsRequest.API_KEY: ("topics", "created"),
    DeleteTopicsRequest.API_KEY: ("responses", "deleted"),
    CreatePartitionsRequest.API_KEY: ("results", "added partitions to"),
}
"""The list of topics in each response, and the verb for the line."""


def log_mutation(client_id: str | None, host: str, request: Any, response: Any) -> None:
    """Log the topics of ``response`` that were changed; nothing for a validate-only request."""
    if getattr(request, "validate_only", False):
        return
    where, verb = _VERBS[request.API_KEY]
    names = [each.name for each in getattr(response, where) if each.error_code == ErrorCode.NONE]
    if names:
        log.info("client %s at %s %s %s", client_id or "without an id", host, verb, _listed(names))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{'topic' if len(names) == 1 else 'topics'} {', '.join(names[:SHOWN])}{more}"
