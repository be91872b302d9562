"""Whether followers' fetches take the compiled lane: where it was compiled, unless ``TIDELOG_PURE=1`` is set.

The lane answers a follower's fetch that continues its session as the Python code beside it does, faster
(docs/internals/replication-cost.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.ports import Node
from tidelog.broker.request import Session
from tidelog.protocol.api_keys import ApiKey
from tidelog.server import native

Handle: TypeAlias = Callable[[Session, memoryview], Any]
MakeLane: TypeAlias = Callable[[Node, Any, Dispatcher], Handle | None]
"""Makes a lane of (the node, the row of Fetch, the dispatcher, which handles all other requests); None where requests have
another handler than the one that the lane stands for."""


def compiled() -> MakeLane | None:
    """The compiled module's function; None without it."""
    return native.compiled("tidelog.server.replication._follower_lane", "follower_lane")


def with_follower_lane(node: Node, dispatcher: Dispatcher) -> Handle:
    """What handles a listener's requests: the lane before the dispatcher, or the dispatcher alone."""
    make, row = compiled(), dispatcher.row(ApiKey.FETCH)
    lane = make(node, row, dispatcher) if make is not None and row is not None else None
    return dispatcher.handle if lane is None else lane
