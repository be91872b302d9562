"""Sessions that answer from a table: what commands ask of a cluster, and what they were told."""

from __future__ import annotations

from typing import Any

from tidelog.cli.admin_session import AdminSession
from tidelog.protocol.messages.metadata import MetadataResponseBroker
from tidelog.protocol.structure import Message


class StandIn(AdminSession):
    """An admin session without a connection: ``answers`` by the type of the request, what was asked in ``asked``."""

    def __init__(self, answers: dict[type, Any], brokers: tuple[int, ...] = (0, 1, 2)) -> None:
        self.answers = answers
        self.asked: list[tuple[int | None, Message]] = []
        self.timeout_ms = 1000
        self.at: int | None = None
        self._brokers = {each: MetadataResponseBroker(node_id=each, host="h", port=each, rack=f"r{each}") for each in brokers}

    def __exit__(self, *error: object) -> None:
        pass

    def ask(self, request: Message) -> Any:
        self.asked.append((self.at, request))
        answer = self.answers[type(request)]
        return answer(request) if callable(answer) else answer

    def connection(self, broker_id: int) -> Any:
        other = StandIn(self.answers, tuple(self._brokers))
        other.asked, other.at = self.asked, broker_id
        return other

    def requests(self, kind: type) -> list[tuple[int | None, Any]]:
        """Where requests of a kind went (None: any broker), and the requests."""
        return [(at, request) for at, request in self.asked if isinstance(request, kind)]
