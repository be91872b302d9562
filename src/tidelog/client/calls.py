"""Client operations without I/O: a call is a generator that yields steps and receives the result of each.

Calls compose with ``yield from``. Routing (``client.routing``) turns their steps into exchanges with addresses, drivers
(``client.net``) carry those out; tests answer the steps directly. A failed step raises inside the call.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tidelog.protocol.structure import Message

T = TypeVar("T")
Partition = tuple[str, int]
"""Topic and partition."""
GROUP, TRANSACTION = 0, 1
"""Key types of FindCoordinator."""


@dataclass(frozen=True, slots=True)
class Node:
    """The node with this id."""

    node_id: int


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The current coordinator of a group or of a transactional id."""

    key: str
    kind: int = GROUP


To = Node | Coordinator | None
"""None: any broker; with ``--bootstrap-controller`` the active controller."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Returns the response. ``code_of`` extracts the error code; the request is retried while that error is transient."""

    request: Message
    to: To = None
    highest: int | None = None
    code_of: Callable[[Any], int] | None = None


@dataclass(frozen=True, slots=True)
class VersionOf:
    """Returns the version in which requests of this API are sent. UnsupportedByBroker if there is no common one."""

    api_key: int
    to: To = None


@dataclass(frozen=True, slots=True)
class Locate:
    """Returns (node id, host, port) of a coordinator."""

    to: Coordinator


@dataclass(frozen=True, slots=True)
class Each:
    """Returns a list of the results of these calls, which may run concurrently. The first failure is raised."""

    calls: Sequence[Generator[Any, Any, Any]]


Step = Ask | VersionOf | Locate | Each
Call = Generator[Step, Any, T]
