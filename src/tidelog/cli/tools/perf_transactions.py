"""Transactions of ``producer-perf-test``: each is committed when it is as old as ``--transaction-duration-ms``."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from tidelog.cli.refusal import CommandFailed
from tidelog.model.ids import random_uuid, uuid_to_text

ID: Final = "transactional.id"
ID_PREFIX: Final = "performance-producer-"
DEFAULT_DURATION_MS: Final = 3000
TIMEOUT_S: Final = 60.0
ATTEMPTS: Final = 3


def settings(java: dict[str, str], transactional_id: str | None, duration_ms: int | None) -> int | None:
    """How long a transaction lasts, in ms; None without transactions. The id, of the flag, of the settings or a new one, is put
    into the producer's settings."""
    if transactional_id is None and duration_ms is None and ID not in java:
        return None
    if transactional_id is not None:
        java[ID] = transactional_id
    java.setdefault(ID, ID_PREFIX + uuid_to_text(random_uuid(random.SystemRandom())))
    return DEFAULT_DURATION_MS if duration_ms is None else duration_ms


class Transactions:
    """The transactions of one producer. Each method raises CommandFailed when librdkafka or the coordinator refuses."""

    def __init__(self, producer: Any, duration_ms: int) -> None:
        """Fences an earlier producer with the same id."""
        self._producer = producer
        self._duration_s = duration_ms / 1000
        self._began: float | None = None
        self._do("init_transactions", lambda: producer.init_transactions(TIMEOUT_S))

    def before_send(self, now: float) -> None:
        """Begins a transaction unless one is open. ``now``: seconds."""
        if self._began is None:
            self._do("begin_transaction", self._producer.begin_transaction)
            self._began = now

    def after_send(self, now: float) -> None:
        """Commits a transaction that is old enough."""
        if self._began is not None and now - self._began >= self._duration_s:
            self.commit()

    def commit(self) -> None:
        """Commits the open transaction, if there is one, after all of its records are acknowledged."""
        if self._began is None:
            return
        self._producer.flush()
        self._do("commit_transaction", lambda: self._producer.commit_transaction(TIMEOUT_S))
        self._began = None

    def _do(self, what: str, step: Callable[[], object]) -> None:
        from confluent_kafka import KafkaException

        for attempt in range(1, ATTEMPTS + 1):
            try:
                step()
                return
            except KafkaException as error:
                if attempt == ATTEMPTS or not error.args[0].retriable():
                    raise CommandFailed(f"{what} failed: {error.args[0].str()}") from error
