"""The contract of record machines, in the shape that coordinators have; the controller's and Raft's are in ARCHITECTURE.

A machine takes an event and the time and returns an ``Outcome``. Records first: the machine's driver makes them durable
(replicated to the high watermark), replays them, and only then lets replies and sends leave the process. The machine never
waits. Durable state changes in ``replay``; what a crash may lose (waiting tokens, session timers) may change in handlers, and a
live classic group is ahead of its records. When an append fails, the machine is dropped and loaded again from its log.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NewType

Token = NewType("Token", int)
"""Names one waiting request; given by the runner, returned in a Reply."""


class Reply(NamedTuple):
    """The answer to a waiting request: a response message for the request of ``token``."""

    token: Token
    response: Any


class Send(NamedTuple):
    """A request to another node."""

    node_id: int
    request: Any


class Outcome(NamedTuple):
    """What a machine wants done. Records first: the rest waits until they are safe.

    ``sends`` are a ``Send`` each where the machine knows the node, else a value of its own that the runner's sender understands.
    """

    records: tuple[Any, ...] = ()
    sends: tuple[Any, ...] = ()
    replies: tuple[Reply, ...] = ()


NOTHING = Outcome()
