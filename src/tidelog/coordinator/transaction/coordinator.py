"""The coordinator of the transactional ids on one partition of ``__transaction_state``.

A record machine (``model.machine``): a transactional id changes only in ``replay``. Markers leave with the records that decide
them, so never before those are safe; the record that completes a transaction follows the last marker. Waiting requests and
missing markers are soft state: after a restart a decided transaction sends all of its markers again.

Elsewhere: ``transitions`` (what a request may do), ``metadata`` (how an id changes), ``missing_markers`` (which partitions to ask
again), ``waiting`` (requests that wait for a completion), ``describing`` (what administrators see).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tidelog.coordinator.transaction import transitions
from tidelog.coordinator.transaction.metadata import TV2, TransactionMetadata, new_transactional_id
from tidelog.coordinator.transaction.missing_markers import UNANSWERED_MS, MarkerAnswer, MissingMarkers, write_markers
from tidelog.coordinator.transaction.records import (
    FLEXIBLE_RECORDS_FROM,
    TransactionRecord,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    fits,
)
from tidelog.coordinator.transaction.settings import TransactionSettings
from tidelog.coordinator.transaction.state import MOVES, TransactionState
from tidelog.coordinator.transaction.transitions import NewId, Producer
from tidelog.coordinator.transaction.waiting import PartitionsRequest, WaitingRequests
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from tidelog.model.machine import NOTHING, Outcome, Reply, Token
from tidelog.records.builder import RecordData
from tidelog.records.record import Record

log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """The answer to InitProducerId and EndTxn: the producer's id and epoch from now on, -1 with an error or when they do not
    change."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class _Effects:
    """The effects of one call."""

    __slots__ = ("records", "replies", "sends")

    def __init__(self) -> None:
        self.records: list[TransactionRecord] = []
        self.replies: list[Reply] = []
        self.sends: list[Any] = []

    def outcome(self) -> Outcome:
        if not self.records and not self.replies and not self.sends:
            return NOTHING
        return Outcome(tuple(self.records), tuple(self.sends), tuple(self.replies))


class TransactionCoordinator:
    """All transactional ids of one partition. Tokens name waiting requests; the runner makes them and answers by them.

    ``new_id`` supplies producer ids, ``server_version`` is the cluster's current transaction.version.
    """

    __slots__ = (
        "_loading",
        "_missing",
        "_new_id",
        "_next_abort_check_ms",
        "_next_expiry_check_ms",
        "_server_version",
        "_settings",
        "_unreadable",
        "_waiting",
        "transactions",
    )

    def __init__(self, settings: TransactionSettings, new_id: NewId, server_version: Callable[[], int], now_ms: int) -> None:
        self._settings = settings
        self._new_id = new_id
        self._server_version = server_version
        self._next_abort_check_ms = now_ms + settings.abort_check_interval_ms
        self._next_expiry_check_ms = now_ms + settings.id_expiration_check_interval_ms
        self._missing = MissingMarkers()
        self._waiting = WaitingRequests()
        self._loading = True
        self._unreadable: set[str] = set()
        self.transactions: dict[str, TransactionMetadata] = {}

    @property
    def missing_markers(self) -> int:
        """Partitions that have not confirmed the marker of a decided transaction."""
        return self._missing.count

    def refusal(self, transactional_id: str) -> ErrorCode | None:
        """The error for an id that is empty or whose newest record cannot be read. Its state is not guessed, because an open
        transaction could be aborted that was committed. Other ids are not affected."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if transactional_id in self._unreadable else None

    # -- requests ------------------------------------------------------------------------------------------------------------

    def init(self, token: Token, transactional_id: str, timeout_ms: int, expected: Producer | None, now_ms: int) -> Outcome:
        """InitProducerId with a transactional id; replies an Answer."""
        effects = _Effects()
        known = self.transactions.get(transactional_id)
        refusal = self.refusal(transactional_id)
        if refusal is not None:
            decided: transitions.Decision = refusal
        elif not 0 < timeout_ms <= self._settings.max_timeout_ms:
            decided = ErrorCode.INVALID_TRANSACTION_TIMEOUT
        else:
            if known is None:
                fresh = self._new_id()
                if fresh is not None:
                    known = new_transactional_id(transactional_id, fresh, timeout_ms, now_ms)
            if known is None:
                decided = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            else:
                decided = transitions.init(
                    known, expected, timeout_ms, new_id=self._new_id, server_version=self._server_version(), now_ms=now_ms
                )
        if not isinstance(decided, ErrorCode) and not fits(decided, self._settings.max_record_bytes):
            decided = ErrorCode.UNKNOWN_SERVER_ERROR
        if isinstance(decided, ErrorCode):
            effects.replies.append(Reply(token, Answer(decided)))
        elif decided.ending:
            self._decide(decided, effects, now_ms)
            effects.replies.append(Reply(token, Answer(ErrorCode.CONCURRENT_TRANSACTIONS)))
        else:
            effects.records.append(TransactionRecord(transactional_id, decided))
            effects.replies.append(Reply(token, Answer(ErrorCode.NONE, decided.producer_id, decided.producer_epoch)))
        return effects.outcome()

    def add_partitions(
        self,
        token: Token,
        transactional_id: str,
        producer: Producer,
        partitions: Sequence[TopicPartition],
        *,
        client_version: int,
        now_ms: int,
        patience_ms: int = 0,
    ) -> Outcome:
        """AddPartitionsToTxn and AddOffsetsToTxn; replies an ErrorCode. While the previous transaction is being completed it
        waits for ``patience_ms``, then the answer is CONCURRENT_TRANSACTIONS."""
        effects = _Effects()
        asked = PartitionsRequest(token, producer, partitions, client_version, now_ms + patience_ms)
        known = self.transactions.get(transactional_id)
        refusal = self.refusal(transactional_id)
        if refusal is not None:
            effects.replies.append(Reply(token, refusal))
        elif patience_ms > 0 and known is not None and known.ending:
            self._waiting.add(transactional_id, asked)
        else:
            self._add(known, asked, effects, now_ms)
        return effects.outcome()

    def _add(
        self, known: TransactionMetadata | None, asked: PartitionsRequest, effects: _Effects, now_ms: int
    ) -> TransactionMetadata | None:
        """Decides one request and returns the resulting id."""
        decided = transitions.add_partitions(
            known, asked.producer, asked.partitions, client_version=asked.client_version, now_ms=now_ms
        )
        if not isinstance(decided, ErrorCode) and self._cannot_record(asked.client_version):
            decided = ErrorCode.UNSUPPORTED_VERSION
        if not isinstance(decided, ErrorCode) and not fits(decided, self._settings.max_record_bytes):
            count = len(decided.partitions)
            log.error("%s: a transaction over %d partitions is too much for one record", decided.transactional_id, count)
            decided = ErrorCode.UNKNOWN_SERVER_ERROR
        if isinstance(decided, ErrorCode):
            effects.replies.append(Reply(asked.token, decided))
            return known
        effects.records.append(TransactionRecord(decided.transactional_id, decided))
        effects.replies.append(Reply(asked.token, ErrorCode.NONE))
        return decided

    def verify_partitions(
        self, token: Token, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition]
    ) -> Outcome:
        """AddPartitionsToTxn that only verifies; replies the error of each partition."""
        refusal = self.refusal(transactional_id)
        if refusal is not None:
            answer = dict.fromkeys(partitions, refusal)
        else:
            answer = transitions.verify_partitions(self.transactions.get(transactional_id), producer, partitions)
        return Outcome(replies=(Reply(token, answer),))

    def end(
        self, token: Token, transactional_id: str, producer: Producer, *, commit: bool, client_version: int, now_ms: int
    ) -> Outcome:
        """EndTxn; replies an Answer once the decision is safe."""
        effects = _Effects()
        known = self.transactions.get(transactional_id)
        refusal = self.refusal(transactional_id)
        if refusal is not None:
            decided: transitions.Decision = refusal
        else:
            decided = transitions.end(
                known, producer, commit=commit, client_version=client_version, new_id=self._new_id, now_ms=now_ms
            )
        if not isinstance(decided, ErrorCode) and self._cannot_record(client_version):
            decided = ErrorCode.UNSUPPORTED_VERSION
        if isinstance(decided, ErrorCode):
            if decided is ErrorCode.NONE and known is not None:
                effects.replies.append(Reply(token, Answer(decided, known.producer_id, known.producer_epoch)))
            else:
                effects.replies.append(Reply(token, Answer(decided)))
        else:
            self._decide(decided, effects, now_ms)
            done = decided.completed(now_ms)
            effects.replies.append(Reply(token, Answer(ErrorCode.NONE, done.producer_id, done.producer_epoch)))
        return effects.outcome()

    def _cannot_record(self, client_version: int) -> bool:
        """Clients of transaction.version 2 in a cluster whose records cannot hold it: their retries would not be recognized."""
        return client_version >= TV2 and self._server_version() < FLEXIBLE_RECORDS_FROM

    def _decide(self, decided: TransactionMetadata, effects: _Effects, now_ms: int) -> None:
        """Records the decision; its markers leave with it. Without partitions the transaction is complete at once."""
        round_ = self._missing.new_round()
        effects.records.append(TransactionRecord(decided.transactional_id, decided, round_))
        if decided.partitions:
            effects.sends.append(write_markers(decided, round_, decided.partitions))
        else:
            effects.records.append(TransactionRecord(decided.transactional_id, decided.completed(now_ms)))

    # -- markers -------------------------------------------------------------------------------------------------------------

    def marker_answered(self, answer: MarkerAnswer, now_ms: int) -> Outcome:
        """A partition has written its marker, or reports an error. After the last marker the transaction is complete, and
        requests that wait for the next one continue."""
        if not self._missing.answered(answer, now_ms):
            return NOTHING
        effects = _Effects()
        self._complete(answer.transactional_id, effects, now_ms)
        return effects.outcome()

    def _complete(self, transactional_id: str, effects: _Effects, now_ms: int) -> None:
        known: TransactionMetadata | None = self.transactions[transactional_id].completed(now_ms)
        effects.records.append(TransactionRecord(transactional_id, known))
        for asked in self._waiting.take(transactional_id):
            known = self._add(known, asked, effects, now_ms)

    # -- time ----------------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int:
        """When ``expire`` may have work, or earlier."""
        checks_ms = min(self._next_abort_check_ms, self._next_expiry_check_ms)
        return min(checks_ms, self._missing.next_ms, self._waiting.next_deadline())

    def expire(self, now_ms: int) -> Outcome:
        """Asks again for missing markers, aborts transactions that timed out, expires unused ids."""
        effects = _Effects()
        for asked in self._waiting.take_late(now_ms):
            effects.replies.append(Reply(asked.token, ErrorCode.CONCURRENT_TRANSACTIONS))
        if now_ms >= self._missing.next_ms:
            self._ask_again(effects, now_ms)
        if now_ms >= self._next_abort_check_ms:
            self._next_abort_check_ms = now_ms + self._settings.abort_check_interval_ms
            self._abort_timed_out(effects, now_ms)
        if now_ms >= self._next_expiry_check_ms:
            self._next_expiry_check_ms = now_ms + self._settings.id_expiration_check_interval_ms
            self._forget_unused(effects, now_ms)
        return effects.outcome()

    def _ask_again(self, effects: _Effects, now_ms: int) -> None:
        for transactional_id, round_, partitions in self._missing.take_due(now_ms):
            if partitions:
                effects.sends.append(write_markers(self.transactions[transactional_id], round_, partitions))
            else:
                self._complete(transactional_id, effects, now_ms)

    def _abort_timed_out(self, effects: _Effects, now_ms: int) -> None:
        """The epoch is bumped with the abort, which fences the slow producer (KIP-890)."""
        for known in self.transactions.values():
            if known.timed_out(now_ms):
                self._decide(known.fenced(server_version=self._server_version(), now_ms=now_ms), effects, now_ms)

    def _forget_unused(self, effects: _Effects, now_ms: int) -> None:
        oldest_ms = now_ms - self._settings.id_expiration_ms
        for known in self.transactions.values():
            if known.at_rest and known.last_update_ms <= oldest_ms:
                effects.records.append(TransactionRecord(known.transactional_id, None))

    # -- the log -------------------------------------------------------------------------------------------------------------

    def replay(self, record: TransactionRecord, now_ms: int) -> None:
        """Applies a record of the log, at load and after each append."""
        known = self.transactions.get(record.transactional_id)
        metadata = record.metadata
        if not self._loading and known is not None:
            state = TransactionState.DEAD if metadata is None else metadata.state
            assert state in MOVES[known.state], f"{known} cannot become {metadata}"
        self._missing.forget(record.transactional_id)
        if metadata is None:
            self.transactions.pop(record.transactional_id, None)
            return
        self.transactions[record.transactional_id] = metadata
        if metadata.ending and metadata.partitions:
            self._missing.expect(record.transactional_id, record.round, metadata.partitions, now_ms + UNANSWERED_MS)

    def replay_stored(self, record: Record, now_ms: int) -> None:
        """Applies a record in its stored form; other kinds of keys are skipped, and so are records that cannot be read."""
        try:
            transactional_id = None if record.key is None else decode_key(bytes(record.key))
        except (ProtocolViolation, ValueError) as problem:
            log.error("offset %d: a key that cannot be read is passed over: %s", record.offset, problem)
            return
        if transactional_id is None:
            return
        try:
            metadata = None if record.value is None else decode_value(transactional_id, bytes(record.value))
        except (ProtocolViolation, ValueError) as problem:
            log.error(
                "offset %d: transactional id %r is not served before a later record (a tombstone forgets it): %s",
                record.offset,
                transactional_id,
                problem,
            )
            self._unreadable.add(transactional_id)
            metadata = None
        else:
            self._unreadable.discard(transactional_id)
        if metadata is not None and metadata.state is TransactionState.DEAD:
            metadata = None
        if metadata is not None and metadata.start_ms > now_ms:
            # The previous coordinator's clock was ahead of ours; the transaction must not stay open for the difference as well.
            metadata = replace(metadata, start_ms=now_ms)
        self.replay(TransactionRecord(transactional_id, metadata), now_ms)

    def to_record(self, record: TransactionRecord, now_ms: int) -> RecordData:
        """The stored form of a record of an Outcome."""
        value = None if record.metadata is None else encode_value(record.metadata, self._server_version())
        return RecordData(encode_key(record.transactional_id), value, now_ms)

    def loaded(self, now_ms: int) -> None:
        """The log has been read to its end: decided transactions are completed."""
        self._loading = False
        self._missing.clear()
        for known in self.transactions.values():
            if known.ending:
                self._missing.expect(known.transactional_id, self._missing.new_round(), known.partitions, now_ms)

    def check(self) -> None:
        """Asserts the invariants."""
        for transactional_id, known in self.transactions.items():
            assert known.transactional_id == transactional_id
            missing = self._missing.partitions(transactional_id)
            assert (missing is not None) == known.ending, f"{known}: {missing}"
            assert missing is None or all(partition in known.partitions for partition in missing)
        assert self._missing.transactional_ids <= self.transactions.keys()
