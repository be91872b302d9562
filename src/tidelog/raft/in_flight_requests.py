"""Requests in flight to other replicas: one per node, with a timeout, and a back-off after a failure.

After a failed request its node is not asked for ``BACKOFF_MS``, doubled with each failure in a row, with random jitter, so that
replicas that fail together do not retry together.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.model.ports import Rng

LONGEST_BACKOFF_MS = 1000


@dataclass(slots=True)
class _Peer:
    request_id: int | None = None
    sent_ms: int = 0
    ready_ms: int = 0
    failures: int = 0


class Connections:
    """Times in ms."""

    def __init__(self, answer_timeout_ms: int, backoff_ms: int, rng: Rng) -> None:
        self._request_timeout_ms = answer_timeout_ms
        self._backoff_ms = backoff_ms
        self._rng = rng
        self._peers: dict[int, _Peer] = {}
        self._owners: dict[int, int] = {}
        self._next_id = 1

    def ready(self, node_id: int, now_ms: int) -> bool:
        """Whether a request may be sent to this node now."""
        peer = self._peers.get(node_id)
        return peer is None or (now_ms >= peer.ready_ms and (peer.request_id is None or self._overdue(peer, now_ms)))

    def _overdue(self, peer: _Peer, now_ms: int) -> bool:
        return now_ms >= peer.sent_ms + self._request_timeout_ms

    def ready_at(self, node_id: int) -> int:
        """When a request may be sent at the latest."""
        peer = self._peers.get(node_id)
        if peer is None:
            return 0
        return peer.ready_ms if peer.request_id is None else peer.sent_ms + self._request_timeout_ms

    def any_waiting(self, now_ms: int) -> bool:
        """Whether any request is in flight."""
        return any(p.request_id is not None and not self._overdue(p, now_ms) for p in self._peers.values())

    def sent(self, node_id: int, now_ms: int) -> int:
        """Records a request and returns its id. An earlier request to that node is no longer waited for."""
        peer = self._peers.setdefault(node_id, _Peer())
        if peer.request_id is not None:
            del self._owners[peer.request_id]
        peer.request_id, peer.sent_ms = self._next_id, now_ms
        self._owners[peer.request_id] = node_id
        self._next_id += 1
        return peer.request_id

    def answered(self, request_id: int) -> int | None:
        """The node that answered; None for an answer that is no longer waited for."""
        node_id = self._owners.pop(request_id, None)
        if node_id is not None:
            peer = self._peers[node_id]
            peer.request_id, peer.failures, peer.ready_ms = None, 0, 0
        return node_id

    def failed(self, node_id: int, now_ms: int) -> None:
        """The request failed, or its answer was useless: back off."""
        peer = self._peers.setdefault(node_id, _Peer())
        peer.failures += 1
        longest = min(self._backoff_ms << min(peer.failures - 1, 10), LONGEST_BACKOFF_MS)
        peer.ready_ms = now_ms + longest // 2 + self._rng.randrange(0, longest // 2 + 1)

    def reset(self) -> None:
        """The role changed: earlier requests are no longer waited for, and no node is backed off."""
        self._peers.clear()
        self._owners.clear()
