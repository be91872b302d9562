"""A fetcher's fetches while nothing unusual happens, which under load is nearly always.

An answer is read where it lies in the receive buffer, its batches are appended, and the next request leaves at once, all within
the callback of the socket: no message classes, future, timer or coroutine for each fetch. Whatever is unusual goes back to
``replica_fetcher``: an answer that is not plain, before anything has changed; a next request that is not plain, and syncs that
it has to wait for, after the answer was applied.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol

from tidelog.client.net.async_connection import Line, Over
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.fastpath.follower_fetch import FIRST_PLAIN, LAST_PLAIN, PlainRequests, read_plain_answer
from tidelog.replication.fetcher import Append, FetcherSettings, ReplicaFetcher
from tidelog.replication.partition import Partition

log = logging.getLogger(__name__)

LARGEST_BYTES = 1 << 20
"""Larger answers are appended in turns of the loop."""


class Applied(NamedTuple):
    """An answer was applied, and no plain request follows. ``unflushed``: logs that have to be flushed up to an offset first."""

    unflushed: list[tuple[Partition, int]]


class Fetching(Protocol):
    """The fetcher."""

    @property
    def machine(self) -> ReplicaFetcher: ...

    def append(self, task: Append, unflushed: list[tuple[Partition, int]]) -> None:
        """Applies the task; adds logs to flush to ``unflushed``."""
        ...


class PlainFetches:
    """Called by the connection with each answer."""

    def __init__(
        self,
        fetcher: Fetching,
        broker_id: int,
        settings: FetcherSettings,
        broker_epoch: Callable[[], int],
        steady_ms: Callable[[], int],
        time_s: Callable[[], float],
    ) -> None:
        """``time_s``: the loop's clock."""
        self._fetcher = fetcher
        self._broker_id = broker_id
        self._settings = settings
        self._broker_epoch = broker_epoch
        self._steady_ms = steady_ms
        self._time_s = time_s
        self._line: Line | None = None
        self._requests: PlainRequests | None = None

    def on_frame(self, line: Line, frame: memoryview) -> bytes | Over | None:
        """``async_connection.OnFrame``."""
        connection = line.machine
        correlation_id, version = connection.oldest()
        if not FIRST_PLAIN <= version <= LAST_PLAIN or len(frame) > LARGEST_BYTES:
            return None
        answer = read_plain_answer(frame, correlation_id)
        if answer is None:
            return None
        machine = self._fetcher.machine
        tasks = machine.answered_plainly(answer)
        if tasks is None:
            return None
        connection.taken()
        try:
            unflushed: list[tuple[Partition, int]] = []
            for task in tasks:
                # An append that failed may have taken the log dirs of the next ones offline.
                if len(tasks) == 1 or task.followed.is_current:
                    self._append(task, unflushed)
            request = None
            if not (unflushed or line.paused or line.session_ends(self._time_s())):
                request = machine.plain_request(self._steady_ms())
            if request is None:
                return Over(Applied(unflushed))
            requests = self._requests
            if requests is None or line is not self._line:
                requests = self._for(line, version)
            sent = requests.frame(connection.next_correlation_id, *request[:3], self._broker_epoch(), request.wanted)
            connection.sent(ApiKey.FETCH, version)
            return sent
        except Exception as error:  # the fetcher logs it, and starts again
            return Over(error)

    def _append(self, task: Append, unflushed: list[tuple[Partition, int]]) -> None:
        try:
            self._fetcher.append(task, unflushed)
        except Exception:  # a fault in one partition must not hold up the others
            log.exception("%s failed on %s", self._fetcher, task.followed.partition.topic_partition)
            self._fetcher.machine.refuse(task.followed, self._steady_ms())

    def _for(self, line: Line, version: int) -> PlainRequests:
        settings = self._settings
        self._line = line
        self._requests = PlainRequests(
            version,
            line.machine.client_id,
            self._broker_id,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            partition_max_bytes=settings.partition_max_bytes,
        )
        return self._requests
