"""Quotas on creating and deleting topics and partitions (KIP-599).

The node with the active controller decides and keeps the token buckets. Another broker forwards the request with its client's
principal and client id (``broker.envelope``) and applies the throttle time that the controller returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidelog.broker.mutation_log import log_mutation
from tidelog.broker.ports import Asker, Node
from tidelog.broker.quotas.limits import Client
from tidelog.broker.request import Context
from tidelog.security.principal import ANONYMOUS

if TYPE_CHECKING:
    from tidelog.broker.quotas.tokens import MutationQuota
    from tidelog.controller.quorum_controller import QuorumController
    from tidelog.controller.result import ControllerResult

MutationHandler = Callable[..., "ControllerResult"]
"""An unbound method of the controller: (controller, request, now_ms, quota) -> records and response."""


async def submit_mutation(ctx: Context, handler: MutationHandler, request: Any, strict_from: int) -> Any:
    """The controller's response. From version ``strict_from`` on topics over the quota are refused; before, all are processed
    and the client is throttled."""
    return await submit_for(ctx.node, ctx.asker, handler, request, version=ctx.api_version, strict=ctx.api_version >= strict_from)


async def submit_for(
    node: Node, asker: Asker, handler: MutationHandler, request: Any, *, version: int | None, strict: bool
) -> Any:
    """``submit_mutation`` on behalf of ``asker``. A remote controller gets the client's identity; otherwise it would charge
    the broker."""
    even_ms = node.runtime.even_ms
    quota = node.quotas.mutations(Client(asker.principal.name, asker.client_id or ""), even_ms(), strict=strict)
    response = await node.controller.submit(handler if quota is None else _within(quota, handler), request, version, asker)
    if quota is not None:
        response.throttle_time_ms = max(response.throttle_time_ms, quota.throttle_ms(even_ms()))
    log_mutation(asker.client_id, asker.host, request, response)
    return response


async def submit_own(node: Node, handler: MutationHandler, request: Any) -> Any:
    """What the broker itself creates counts against no client's quota, here or on a remote controller: the asker has no client
    id. With an authorizer the broker asks in its own name, as in Apache Kafka: an anonymous client may create nothing."""
    asker = Asker(ANONYMOUS, None, "127.0.0.1") if node.access is None else None
    return await node.controller.submit(handler, request, None, asker)


def _within(quota: MutationQuota, handler: MutationHandler) -> MutationHandler:
    def decide(controller: QuorumController, request: Any, now_ms: int) -> ControllerResult:
        return handler(controller, request, now_ms, quota)

    return decide
