"""The states of a connection, and the events that lead from one to the next."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class State(Enum):
    """What a connection is at."""

    AUTHENTICATING = "only requests that authenticate are served"
    OPEN = "requests are handled"
    THROTTLED = "answers leave, no request is handled until the client has waited"
    DRAINING = "no request is handled any more; the end comes when nothing is in flight"
    CLOSED = "the socket is given back"


class Event(Enum):
    """What changes a connection's state."""

    AUTHENTICATED = 1
    THROTTLE = 2
    THROTTLE_OVER = 3
    DRAIN = 4
    CLOSE = 5


_ENDS: dict[tuple[State, Event], State] = {
    (state, event): end
    for state in State
    if state is not State.CLOSED
    for event, end in ((Event.DRAIN, State.DRAINING), (Event.CLOSE, State.CLOSED))
}
TRANSITIONS: Mapping[tuple[State, Event], State] = {
    (State.AUTHENTICATING, Event.AUTHENTICATED): State.OPEN,
    (State.OPEN, Event.THROTTLE): State.THROTTLED,
    (State.THROTTLED, Event.THROTTLE_OVER): State.OPEN,
    **_ENDS,
}
"""An event that is not listed for a state does not change it."""
HANDLES = frozenset({State.AUTHENTICATING, State.OPEN})
"""The states in which a request may be handled."""
