"""What a client wants of a cluster, without I/O: a call is a generator that yields steps and is given the result of each.

Calls compose with ``yield from``. Routing (``client.routing``) turns their steps into exchanges with addresses, drivers
(``client.net``) carry those out; tests answer the steps themselves. A step that fails raises inside the call.
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
"""Kinds of keys that coordinators are found by."""


@dataclass(frozen=True, slots=True)
class Node:
    """The node with this id."""

    node_id: int


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator of a group or of a transactional id, wherever it is at the time."""

    key: str
    kind: int = GROUP


To = Node | Coordinator | None
"""None: any broker; with ``--bootstrap-controller`` the active controller."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The result is the response. ``code_of``: the error code to look at; asked again while that one passes by itself."""

    request: Message
    to: To = None
    highest: int | None = None
    code_of: Callable[[Any], int] | None = None


@dataclass(frozen=True, slots=True)
class VersionOf:
    """The result is the version at which requests of this API go out. UnsupportedByBroker when there is none."""

    api_key: int
    to: To = None


@dataclass(frozen=True, slots=True)
class Locate:
    """The result is (node id, host, port) of a coordinator."""

    to: Coordinator


@dataclass(frozen=True, slots=True)
class Each:
    """The result is a list of the results of these calls; they may run at the same time. The first failure is raised."""

    calls: Sequence[Generator[Any, Any, Any]]


Step = Ask | VersionOf | Locate | Each
Call = Generator[Step, Any, T]
