"""A broker in memory whose clients may do what a test says, and the errors in its answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.unit.broker.allowing import Allowing, Permission
from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.transactional import find
from tidelog.broker.node import Broker as Node
from tidelog.protocol.structure import Structure
from tidelog.testing import Broker

CODES = ("error_code", "partition_error_code")


def errors(answer: Structure) -> list[int]:
    """All error codes of an answer that are not 0, in its order."""
    found = [code for name in CODES if (code := getattr(answer, name, 0))]
    for name in answer.__slots__:
        value = getattr(answer, name)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Structure):
                found += errors(each)
    return found


class Guarded:
    """The broker, one connection to it, and what the connection's client may do."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.talk = Talk(broker.port)
        self.access = Allowing()

    @property
    def node(self) -> Node:
        """The broker's own state."""
        return self.broker._host.thread.running().broker  # type: ignore[union-attr]

    def ask(self, request: Any, version: int, *permissions: Permission) -> Any:
        """The answer to a client that has these permissions and no others."""
        with self.only(*permissions):
            return self.talk.ask(request, version)

    @contextmanager
    def only(self, *permissions: Permission) -> Iterator[None]:
        """A client has these permissions and no others, which is a change of the ACLs; later everything is allowed again."""
        self.access.loud.clear()
        self.access.change(*permissions)
        self.node.access = self.access
        try:
            yield
        finally:
            self.node.access = None

    def freely(self, request: Any, version: int) -> Any:
        """The answer to a client that may do everything."""
        return self.talk.ask(request, version)


@contextmanager
def guarded() -> Iterator[Guarded]:
    """With coordinators that are loaded."""
    with Broker() as broker:
        running = Guarded(broker)
        running.talk.find("any")
        find(running.talk, "any")
        yield running
        running.talk.close()
