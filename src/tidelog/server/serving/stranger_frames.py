"""The frames of a client on a SASL listener: small ones and no read-ahead until it has authenticated.

A listener holds thousands of connections of clients that it does not know (``newcomers``), each for half a minute. What each of
them makes the node keep in memory is bounded by the largest frame that its login can need: a few KiB before it has chosen a
mechanism, then what the messages of that mechanism need.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.protocol.framing import FrameReader


class StrangerFrames(FrameReader):
    """Splits a byte stream into frames, with limits that depend on how far the login is."""

    __slots__ = ("_largest", "_max_request_bytes")

    def __init__(self, largest: Callable[[str], tuple[int, str]], max_request_bytes: int, max_plain_bytes: int) -> None:
        """``largest``: the most bytes in a frame during a login by a mechanism, and why; see ``SaslListener.largest_frame``.
        ``max_request_bytes``, ``max_plain_bytes``: the limits of a client that has authenticated."""
        super().__init__(max_request_bytes, max_plain_bytes=max_plain_bytes)
        self._largest = largest
        self._max_request_bytes = max_request_bytes
        self.limit("")

    def limit(self, mechanism: str) -> None:
        """The client logs in by this mechanism; empty: it has not chosen one."""
        most, why = self._largest(mechanism)
        if most < self._max_request_bytes:
            self.allow(most, why)
        else:
            self.allow(self._max_request_bytes)

    def authenticated(self, read_ahead: int) -> None:
        """The client has authenticated: from the next frame on the limits are those of requests. ``read_ahead``: see
        ``FrameReader``."""
        self.allow(self._max_request_bytes)
        self._read_ahead = read_ahead
