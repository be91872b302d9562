"""AddPartitionsToTxn requests that wait until the previous transaction is complete."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from tidelog.coordinator.transaction.settings import NEVER_MS
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.ids import TopicPartition
from tidelog.model.machine import Token


class PartitionsRequest(NamedTuple):
    """AddPartitionsToTxn of one transactional id; ``until_ms`` is how long it waits at most."""

    token: Token
    producer: Producer
    partitions: Sequence[TopicPartition]
    client_version: int
    until_ms: int


class WaitingRequests:
    """Requests by transactional id, in order of arrival, and the times at which their patience ends."""

    __slots__ = ("_deadlines", "_requests")

    def __init__(self) -> None:
        self._requests: dict[str, list[PartitionsRequest]] = {}
        self._deadlines: list[tuple[int, str]] = []

    def add(self, transactional_id: str, request: PartitionsRequest) -> None:
        self._requests.setdefault(transactional_id, []).append(request)
        heappush(self._deadlines, (request.until_ms, transactional_id))

    def take(self, transactional_id: str) -> list[PartitionsRequest]:
        """The requests of an id, which wait no longer."""
        return self._requests.pop(transactional_id, [])

    def next_deadline(self) -> int:
        """When ``take_late`` may return a request, or earlier: the deadlines of requests that were taken are kept."""
        return self._deadlines[0][0] if self._deadlines else NEVER_MS

    def take_late(self, now_ms: int) -> list[PartitionsRequest]:
        """The requests that have waited long enough."""
        late: list[PartitionsRequest] = []
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            _, transactional_id = heappop(self._deadlines)
            requests = self._requests.pop(transactional_id, [])
            late += (each for each in requests if each.until_ms <= now_ms)
            left = [each for each in requests if each.until_ms > now_ms]
            if left:
                self._requests[transactional_id] = left
        return late
