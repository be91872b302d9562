"""Requests that the active controller decides, on a broker with an authorizer (KIP-590).

If the active controller is in this process, the handler decides here. Otherwise the broker checks no permission: it sends the
request in an Envelope with its client's principal and address (``broker.envelope``), and the controller decides for the client.
Without an authorizer the handler runs here, and only its change goes to the controller; but for requests about delegation tokens,
whose owner the client is.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, cast

from tidelog.broker.answer_types import Answer, Later
from tidelog.broker.api import Applied, Handler, Route
from tidelog.broker.authorization import require_for_request
from tidelog.broker.deferred import loaded
from tidelog.broker.node import BrokerContext, ControllerSide
from tidelog.broker.ports import ControllerIsHere, NotServedByController
from tidelog.broker.request import Context
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.api_keys import ApiKey


def forwarding(route: Route) -> Handler:
    """The handler of a route that forwards. Where it runs here, the permission on the cluster is checked first."""
    operation, handler, applied = route.needs.on_cluster, loaded(route.handler), route.api.applied

    def decide(ctx: BrokerContext, request: Any) -> Answer | Later:
        if operation is not None:
            require_for_request(ctx, operation, request)
        return handler(ctx, request)

    return lambda ctx, request: pass_on(ctx, request, decide, applied=applied)


def pass_on(
    ctx: BrokerContext, request: Any, decide: Handler, *, always: bool = False, applied: Applied | None = None
) -> Answer | Later:
    """The answer of the active controller, or of ``decide`` when the request is decided here. ``request`` is of the API and
    version of ``ctx``. ``always``: the controller has to know the client even without an authorizer. ``applied``: what this
    broker's image has to have before the answer, see ``Api``.

    ProtocolViolation when the controller does not serve this version: the client connects again and learns the versions.
    KafkaError: REQUEST_TIMED_OUT, UNKNOWN_SERVER_ERROR when the controller refused the envelope.
    """
    if ctx.node.controller.is_here or (ctx.node.access is None and not always):
        return decide(ctx, request)
    return _passed_on(ctx, request, decide, applied)


async def by_controller(ctx: Context, request: Any, decide: Handler, *, always: bool = False) -> Any:
    """``pass_on`` for a client of a broker or of a controller; a controller decides itself."""
    if isinstance(ctx.node, ControllerSide):
        answer = decide(ctx, request)
    else:
        answer = pass_on(cast(BrokerContext, ctx), request, decide, always=always)
    return await answer if isinstance(answer, Coroutine) else answer


async def _passed_on(ctx: BrokerContext, request: Any, decide: Handler, applied: Applied | None) -> Answer:
    try:
        answer: Answer = await ctx.node.controller.pass_on(ctx.api_version, request, ctx.asker)
        if applied is not None:
            await ctx.node.controller.until_applied(lambda image: applied(image, request, answer))
        return answer
    except ControllerIsHere:
        decided = decide(ctx, request)
        return await decided if isinstance(decided, Coroutine) else decided
    except NotServedByController as error:
        what = f"{ApiKey(ctx.api_key).name} version {ctx.api_version}"
        raise ProtocolViolation(f"the active controller does not serve {what}", ctx.client_id) from error
