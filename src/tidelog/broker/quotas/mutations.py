"""Topics and partitions that clients make and delete, within their quota (KIP-599).

Decided is where the records are made: on the node whose controller is active, which keeps the token buckets. A broker elsewhere
passes the request on with its client's name (``broker.envelope``), and makes the client wait as the controller says.
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
"""A method of the controller, unbound: (controller, request, now_ms, quota) -> records and response."""


async def submit_mutation(ctx: Context, handler: MutationHandler, request: Any, strict_from: int) -> Any:
    """The controller's response. From version ``strict_from`` on topics beyond the quota are refused; before, all is done and the
    client waits."""
    asker = Asker(ctx.principal, ctx.client_id, ctx.peer_host)
    return await submit_for(ctx.node, asker, handler, request, version=ctx.api_version, strict=ctx.api_version >= strict_from)


async def submit_for(
    node: Node, asker: Asker, handler: MutationHandler, request: Any, *, version: int | None, strict: bool
) -> Any:
    """The same on behalf of ``asker``. A controller elsewhere is told the client: it would take the broker for the client."""
    even_ms = node.runtime.even_ms
    quota = node.quotas.mutations(Client(asker.principal.name, asker.client_id or ""), even_ms(), strict=strict)
    response = await node.controller.submit(handler if quota is None else _within(quota, handler), request, version, asker)
    if quota is not None:
        response.throttle_time_ms = max(response.throttle_time_ms, quota.throttle_ms(even_ms()))
    log_mutation(asker.client_id, asker.host, request, response)
    return response


async def submit_own(node: Node, handler: MutationHandler, request: Any) -> Any:
    """What this broker itself creates counts for no client, here and at a controller elsewhere: the asker has no client id."""
    return await node.controller.submit(handler, request, None, Asker(ANONYMOUS, None, "127.0.0.1"))


def _within(quota: MutationQuota, handler: MutationHandler) -> MutationHandler:
    def decide(controller: QuorumController, request: Any, now_ms: int) -> ControllerResult:
        return handler(controller, request, now_ms, quota)

    return decide
