"""Kerberos tickets for the logins of a client or a node, fetched in threads, because the library waits for a KDC at its own pace.

A thread that waits for a KDC holds up neither the loop nor the end of the program. The caller's wait is bounded, and so is the
number of threads: while one waits for a ticket, no other caller that waits for the same one starts another.
"""

from __future__ import annotations

import threading
import time
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
"""By the name of a cache in memory: the library fills a new cache in several steps, and a second login waits for the first.
Where the caller takes the lock, the thread that it starts releases it."""


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
        """The begin of a login on ``host``, made in a thread of its own, which waits for its turn. Its exception is NoTicket."""
        memory, turn = self._turn(host)

        def made() -> Initiator:
            with turn:
                return self._begin(self._kerberos, host, memory)

        return _in_thread(made)

    def wait(self, host: str, limit_s: float) -> Initiator:
        """The begin of a login on ``host``. NotAuthenticated when there is no ticket for it, NoConnection when no KDC answers.

        A try goes on when its caller gives up; a later caller waits for its end, and only then starts a thread.
        """
        memory, turn = self._turn(host)
        ends_s = time.monotonic() + limit_s

        def made() -> Initiator:
            try:
                return self._begin(self._kerberos, host, memory)
            finally:
                turn.release()

        try:
            if not turn.acquire(timeout=limit_s):
                raise TimeoutError
            try:
                begun = _in_thread(made)
            except RuntimeError:  # no thread can be started
                turn.release()
                raise
            return begun.result(max(0.0, ends_s - time.monotonic()))
        except TimeoutError:
            reason = late(self._kerberos, host, limit_s)
            raise NoConnection(reason) from None
        except NoTicket as problem:
            if problem.unreachable:
                raise NoConnection(str(problem)) from problem
            raise NotAuthenticated(str(problem)) from problem

    def _turn(self, host: str) -> tuple[str, threading.Lock]:
        """The name of the cache for ``host``, and the lock for filling it."""
        memory = f"tidelog {self._kerberos.principal} {self._kerberos.keytab} {host}"
        return memory, _TURNS.setdefault(memory, threading.Lock())


def _in_thread(made: Callable[[], Initiator]) -> Future[Initiator]:
    """What ``made`` returns or raises in a thread of its own; it cannot be cancelled. RuntimeError when none can be started."""
    done: Future[Initiator] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = made()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=run, name="Kerberos", daemon=True).start()
    return done


def late(kerberos: Kerberos, host: str, limit_s: float) -> str:
    """Why a login does not wait any longer."""
    return f"no Kerberos ticket for {kerberos.service}@{host} within {limit_s:.0f} s: no KDC answers"
