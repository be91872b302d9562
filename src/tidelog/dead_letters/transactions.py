"""Writes replays and their journal in transactions of librdkafka's producer: what is written is in both, or in neither."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from tidelog.dead_letters.journal import Replayed
from tidelog.dead_letters.planning import Replay

TIMEOUT_S: Final = 60.0
ATTEMPTS: Final = 3
LARGEST: Final = 1_000_000_000
"""Bytes of a request, for librdkafka: the brokers' limits are those that count."""
_OF_RECORDS: Final = frozenset(
    {"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_MSG", "INVALID_TIMESTAMP"}
)
"""Errors that another try does not change, and other records need not have."""
_FENCED: Final = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})


class ReplayFailed(Exception):
    """The replay cannot go on. What it has written stays; the text says why, and what to do."""


class Refused(Exception):
    """The brokers refuse a record of the batch; nothing of the batch is written. The text says why."""


class Aborted(Exception):
    """The transaction was aborted; another one may succeed. The text says why."""


class Writer(Protocol):
    """Writes batches, each wholly or not at all."""

    def write(self, batch: Sequence[Replay]) -> list[Replayed]:
        """Where each record is now. Refused, Aborted; ReplayFailed when the run cannot go on."""
        ...


class Transactions:
    """One producer. ``close`` aborts what is open."""

    def __init__(self, producer: Any, journal_topic: str, now_ms: Callable[[], int]) -> None:
        """Ends the open transaction of an earlier run, and fences that. ``now_ms``: ms since 1970."""
        self._producer = producer
        self._journal_topic = journal_topic
        self._now_ms = now_ms
        self._open = False
        self._do("begin", lambda: producer.init_transactions(TIMEOUT_S))

    def write(self, batch: Sequence[Replay]) -> list[Replayed]:
        """See ``Writer``."""
        self._do("begin a transaction", self._producer.begin_transaction)
        self._open = True
        try:
            places = self._send([(each.source.topic, each.partition, each.key, each.value, each.headers) for each in batch])
            now_ms = self._now_ms()
            done = [
                Replayed(each.source, each.topic_id, each.replays, partition, offset, now_ms)
                for each, (partition, offset) in zip(batch, places, strict=True)
            ]
            self._send([(self._journal_topic, None, each.key(), each.value(), ()) for each in done])
            self._do("commit", lambda: self._producer.commit_transaction(TIMEOUT_S))
        except (Refused, Aborted):
            self._do("abort", lambda: self._producer.abort_transaction(TIMEOUT_S))
            self._open = False
            raise
        self._open = False
        return done

    def close(self) -> None:
        """Aborts the open transaction, if the run ends in the middle of one; without an answer it times out."""
        from confluent_kafka import KafkaException

        if self._open:
            with suppress(KafkaException):  # a run that was fenced has nothing to abort
                self._producer.abort_transaction(5)
            self._open = False

    def _send(self, records: Iterable[tuple[str, int | None, bytes | None, bytes | None, Any]]) -> list[tuple[int, int]]:
        """Partition and offset of each record, in order."""
        from confluent_kafka import KafkaException

        found: dict[int, tuple[int, int]] = {}
        errors: list[Any] = []

        def delivered(index: int) -> Callable[[Any, Any], None]:
            def report(error: Any, message: Any) -> None:
                if error is None:
                    found[index] = message.partition(), message.offset()
                else:
                    errors.append(error)

            return report

        count = 0
        for topic, partition, key, value, headers in records:
            where = {} if partition is None else {"partition": partition}
            try:
                self._queue(topic, value, key=key, headers=list(headers), on_delivery=delivered(count), **where)
            except KafkaException as error:
                errors.append(error.args[0])
                break
            count += 1
        left = self._producer.flush(TIMEOUT_S)
        if errors:
            raise _not_delivered(next((error for error in errors if error.name() in _OF_RECORDS), errors[0]))
        if left:
            raise Aborted(f"{left} records were not acknowledged within {TIMEOUT_S:.0f} s")
        return [found[index] for index in range(count)]

    def _queue(self, *args: Any, **named: Any) -> None:
        while True:
            try:
                self._producer.produce(*args, **named)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _do(self, what: str, step: Callable[[], object]) -> None:
        from confluent_kafka import KafkaException

        for attempt in range(1, ATTEMPTS + 1):
            try:
                step()
                return
            except KafkaException as error:
                if attempt == ATTEMPTS or not error.args[0].retriable():
                    raise _failure(error.args[0], what) from error


def _not_delivered(error: Any) -> Exception:
    """The exception for a record that was not written."""
    if error.name() in _OF_RECORDS:
        return Refused(error.str())
    if error.fatal() or error.name() in _FENCED or error.name().endswith("AUTHORIZATION_FAILED"):
        return _failure(error, "write")
    return Aborted(error.str())


def _failure(error: Any, what: str) -> Exception:
    """The exception for an error of librdkafka that concerns the producer."""
    if error.name() in _FENCED:
        return ReplayFailed(
            "Another replay of this topic has begun, and takes over. What this one has written stays, and is not written twice."
        )
    if error.txn_requires_abort():
        return Aborted(error.str())
    return ReplayFailed(f"The replay cannot {what}: {error.name()}: {error.str()}")


def producer_settings(own: dict[str, str], bootstrap: str, transactional_id: str) -> dict[str, str]:
    """The settings of the producer under Java's names; ``own``: those of the user's file. ReplayFailed for a transactional id
    among them: two runs that do not fence each other would replay records twice."""
    if own.get("transactional.id", transactional_id) != transactional_id:
        raise ReplayFailed(f"transactional.id is {transactional_id} here, so that two replays do not run at once: leave it out.")
    names = {"acks", "enable.idempotence", "group.id", "auto.offset.reset", "isolation.level", "enable.auto.commit"}
    kept = {name: value for name, value in own.items() if name not in names}
    limits = {"transaction.timeout.ms": "60000", "max.request.size": str(LARGEST)}
    return (
        {"client.id": "tidelog-replay"} | limits | kept | {"bootstrap.servers": bootstrap, "transactional.id": transactional_id}
    )
