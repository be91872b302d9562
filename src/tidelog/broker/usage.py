"""What clients ask of a listener, and which share of the event loop's time each client and each API takes.

Counting is cheap because each connection counts for itself, in fields of its ``Session``: a request adds one to ``requests``,
what is read and sent adds to ``bytes_in`` and ``bytes_out``, and each piece of work of the loop (a read of the socket, a wait
that is over, an answer that is sent on) adds its time to ``loop_ns``, by two timestamps. ``Usage`` adds these up by client when
a reader wants to know it and when a connection ends, in a sketch of fixed size (``metrics.heavy_hitters``).

A piece of work is charged to the last request of its connection. Requests that arrive together are of one kind almost always:
producers and consumers have a connection for each.

The dispatcher does this once for a request, for one that a lane answered as well::

    if key != session.api_key or client_id != session.client_id:
        usage.switch(session, key, client_id)
    session.requests += 1
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from tidelog.metrics.heavy_hitters import HeavyHitters
from tidelog.protocol.api_keys import API_FACTS
from tidelog.security.principal import KafkaPrincipal

ENTRIES: Final = 512
"""Clients in a sketch: each one with more than 1/512 of the time that the loop spent on clients has an entry."""
LONGEST_NAME: Final = 128
"""Characters of a client id or a principal that are kept."""
NO_API: Final = max(API_FACTS) + 1
"""In place of an API key: logins, and requests that nothing serves."""


class Session(Protocol):
    """What ``broker.request.Session`` counts."""

    client_id: str | None
    api_key: int
    requests: int
    bytes_in: int
    bytes_out: int
    loop_ns: int
    charged_ns: int

    @property
    def principal(self) -> KafkaPrincipal: ...
    @property
    def peer_host(self) -> str: ...


class Client(NamedTuple):
    """Whom requests are counted for."""

    client_id: str
    principal: str
    host: str
    """The address, without a port."""


class Amounts(NamedTuple):
    """What is counted of a client besides its time in ns, which is its weight in the sketch."""

    requests: int
    bytes_in: int
    bytes_out: int


Clients = HeavyHitters[Client]


class Usage:
    """The accounts of one listener."""

    __slots__ = ("_loop_ns", "before", "now")

    def __init__(self) -> None:
        self._loop_ns = [0] * (NO_API + 1)
        self.now: Clients = HeavyHitters(ENTRIES, len(Amounts._fields))
        """The clients of this window."""
        self.before: Clients = HeavyHitters(ENTRIES, len(Amounts._fields))
        """Those of the window before."""

    def switch(self, session: Session, api_key: int, client_id: str | None) -> None:
        """The next request is of another API or client id than the last one of its connection."""
        if client_id != session.client_id:
            self.add(session)
            session.client_id = client_id
        else:
            self._charge(session)
        session.api_key = api_key

    def add(self, session: Session) -> None:
        """Adds a connection's numbers to those of its client and its API, and sets them to 0."""
        self._charge(session)
        if session.requests or (session.loop_ns and session.api_key != NO_API):
            client = Client((session.client_id or "")[:LONGEST_NAME], str(session.principal)[:LONGEST_NAME], session.peer_host)
            self.now.add(client, session.loop_ns, (session.requests, session.bytes_in, session.bytes_out))
            session.requests = session.bytes_in = session.bytes_out = session.loop_ns = session.charged_ns = 0

    def turn(self) -> None:
        """Begins a new window."""
        self.before, self.now = self.now, HeavyHitters(ENTRIES, len(Amounts._fields))

    def loop_ns(self) -> dict[int, int]:
        """Nanoseconds of the loop by API key, since the start; ``NO_API`` for what is of none. Open connections count as far as
        they were added."""
        return {key: loop_ns for key, loop_ns in enumerate(self._loop_ns) if loop_ns}

    def _charge(self, session: Session) -> None:
        """Charges the time since the last call to the API of the last request."""
        self._loop_ns[session.api_key] += session.loop_ns - session.charged_ns
        session.charged_ns = session.loop_ns
