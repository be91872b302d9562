"""Kerberos tickets for the logins of this node at others, fetched off the loop with the keytab of a listener's settings.

The library keeps the tickets that are still good in memory and asks a KDC for the rest. The threads are not the node's: while no
KDC answers, all of those could wait for one, and then no file would be synced.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future
from contextlib import suppress

from tidelog.client.failures import NotAuthenticated
from tidelog.client.kerberos import Kerberos, NoTicket
from tidelog.client.net.tickets import Begin, Tickets, late
from tidelog.client.sasl import Initiator

log = logging.getLogger(__name__)

TICKET_S = 8.0
"""How long a login waits for a ticket; less than the least time for opening a connection, or the log would not name the KDC."""


class NodeTickets:
    """The tickets of one keytab. Used on one event loop."""

    def __init__(self, kerberos: Kerberos, begin: Begin | None = None, limit_s: float = TICKET_S) -> None:
        """ConfigError without the library, or without a key of the principal in the keytab. ``begin``: see ``Tickets``."""
        self._kerberos, self._limit_s = kerberos, limit_s
        self._tickets = Tickets(kerberos, begin)
        self._turns: dict[str, asyncio.Lock] = {}
        if begin is None:
            from tidelog.client.net.kerberos_library import keytab_credentials

            assert kerberos.keytab is not None
            keytab_credentials(kerberos.principal, kerberos.keytab)

    async def ticket(self, host: str) -> Initiator:
        """The begin of a login on ``host``. NotAuthenticated says why there is none.

        One thread at a time fetches for a host, also when the logins that wait for it give up one after the other.
        """
        try:
            async with asyncio.timeout(self._limit_s):
                turn = self._turns.setdefault(host, asyncio.Lock())
                await turn.acquire()
                return await self._fetched(host, turn)
        except NoTicket as problem:
            raise NotAuthenticated(str(problem)) from problem
        except TimeoutError:
            raise NotAuthenticated(late(self._kerberos, host, self._limit_s)) from None

    def _fetched(self, host: str, turn: asyncio.Lock) -> asyncio.Future[Initiator]:
        loop = asyncio.get_running_loop()
        try:
            fetched = self._tickets.fetch(host)
        except RuntimeError as error:  # no thread can be started
            turn.release()
            raise NotAuthenticated(f"no Kerberos ticket for {self._kerberos.service}@{host}: {error}") from error
        waiting = asyncio.wrap_future(fetched)

        def ended() -> None:
            turn.release()
            if waiting.cancelled() and (problem := fetched.exception()) is not None:
                log.error("a login of this node that was given up has a reason now: %s", problem)

        def done(_: Future[Initiator]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(ended)

        fetched.add_done_callback(done)
        return waiting
