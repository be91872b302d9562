"""Kerberos tickets for the logins of a client or a node, fetched in threads, because the library waits for a KDC at its own pace.

A thread that waits for a KDC holds up neither the loop nor the end of the program. The caller's wait is bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.client.kerberos import Kerberos, NoTicket
from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    from tidelog.client.sasl import Initiator

Begin = Callable[[Kerberos, str, str], "Initiator"]
MISSING = (
    "GSSAPI needs the extra kerberos: pip install 'tidelog[kerberos]'. It is compiled with the Kerberos library of the system, "
    "on Debian: apt-get install libkrb5-dev gcc python3-dev"
)
_TURNS: dict[str, threading.Lock] = {}
"""By the name of a cache in memory: the library fills a new cache in several steps, and a second login waits for the first."""


class Tickets:
    """The tickets of one principal; may be used from several threads."""

    def __init__(self, kerberos: Kerberos, begin: Begin | None = None) -> None:
        """ConfigError without the library. ``begin``: makes the first token for a host with a cache of this name; blocks."""
        if begin is None:
            try:
                from tidelog.client.net.kerberos import ticket_context
            except ImportError as error:
                raise ConfigError(f"{MISSING} ({error}).") from error
            begin = ticket_context
        self._kerberos, self._begin = kerberos, begin

    def fetch(self, host: str) -> Future[Initiator]:
        """The begin of a login on ``host``, made in a thread of its own. Its exception is NoTicket."""
        done: Future[Initiator] = Future()
        done.set_running_or_notify_cancel()  # the thread cannot be cancelled
        threading.Thread(target=self._fetch, args=(host, done), name="Kerberos", daemon=True).start()
        return done

    def wait(self, host: str, limit_s: float) -> Initiator:
        """The begin of a login on ``host``. NotAuthenticated when there is no ticket for it, NoConnection when no KDC answers."""
        try:
            return self.fetch(host).result(limit_s)
        except TimeoutError:
            reason = late(self._kerberos, host, limit_s)
            raise NoConnection(reason) from None
        except NoTicket as problem:
            if problem.unreachable:
                raise NoConnection(str(problem)) from problem
            raise NotAuthenticated(str(problem)) from problem

    def _fetch(self, host: str, done: Future[Initiator]) -> None:
        memory = f"tidelog {self._kerberos.principal} {self._kerberos.keytab} {host}"
        try:
            with _TURNS.setdefault(memory, threading.Lock()):
                made = self._begin(self._kerberos, host, memory)
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(made)


def late(kerberos: Kerberos, host: str, limit_s: float) -> str:
    """Why a login does not wait any longer."""
    return f"no Kerberos ticket for {kerberos.service}@{host} within {limit_s:.0f} s: no KDC answers"
