"""One batch into topics, once: the transaction in which the driver appends the tasks' batches and commits the batch's number.

Why this is exactly once, and what happens between each pair of steps: docs/adr/0014-topics-exactly-once-from-spark.md. The number
is the committed offset of a group named like the transactional id; its metadata is the caller's text about the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection
from tidelog.client.fetching import error_of
from tidelog.client.net.blocking import BrokerSocket
from tidelog.client.producer_settings import ProducerSettings
from tidelog.client.producing import Transaction, Verdict, joins_by_writing, judge
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tidelog.protocol.structure import Message
from tidelog.spark.appending import Appender, Batch, WriteFailed, refused, rounds
from tidelog.spark.cluster import Cluster

GROUP, TRANSACTION = 0, 1
MAX_METADATA, MAX_PIECES = 4000, 8
"""Brokers take 4096 bytes beside an offset; the pieces are at the offsets of partitions 0 to 7 of the topic."""
_FIRST_PAUSE_MS = 10
"""The previous batch's transaction is often still completing: that takes milliseconds."""
_OFFSET_FETCH = 9  # Version 10 names topics by id.
STEPS = ("begin", "begun", "read", "appended", "numbered", "decided")
"""The points at which ``reached`` is called: before InitProducerId, and after each of the ADR's steps."""
_EXPIRED = (
    "Batch {number} of {name} is to be written, and the group {name} has no offset that would tell whether it was before. "
    "Kafka deletes such offsets after offsets.retention.minutes without a batch; or this checkpoint wrote elsewhere until now. "
    "Check whether the rows are there; to write it set firstBatch={number}, to skip it firstBatch={next}."
)


@dataclass(frozen=True, slots=True)
class Numbered:
    """A batch's number, the text stored with it (in pieces of ``MAX_METADATA``, one per partition of the topic with the
    number), and the lowest number that is looked up (see the end of the ADR)."""

    number: int
    metadata: str = ""
    first: int = 0


class Committer:
    """Commits batches under one transactional id. ``topic``: the topic whose offset in the group is the number."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ProducerSettings,
        name: str,
        topic: str,
        request_timeout_ms: int,
        reached: Callable[[str], None] = lambda step: None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._name = name
        self._topic = topic
        self._request_timeout_ms = request_timeout_ms
        self._reached = reached
        self._coordinators: dict[int, tuple[str, int]] = {}

    def last(self) -> tuple[int, str] | None:
        """The newest committed batch, (number, metadata); None when the group has none."""
        response = self._exchanged(GROUP, "ask for the last batch", self._offset_question, _offset_error)
        parts = {p.partition_index: p for topic in _offset_topics(response) for p in topic.partitions}
        if 0 not in parts:
            raise WriteFailed(f"the coordinator of {self._name} answers an OffsetFetch without the partition that was asked for")
        number = parts[0].committed_offset
        # A shorter text leaves later partitions with an older number.
        pieces = [part.metadata or "" for _, part in sorted(parts.items()) if part.committed_offset == number]
        return None if number < 0 else (number, "".join(pieces))

    def commit(self, numbered: Numbered | None, batches: Callable[[], Iterable[Batch]]) -> bool:
        """Append all batches and the number in one transaction. False, and nothing was done, when the number is there already.

        ``batches`` is called only when they are needed. WriteFailed: nothing is visible, or that is unknown (the text says so)
        and the same call again will find out.
        """
        self._reached("begin")
        transaction = self._begun()
        try:
            self._reached("begun")
            if numbered is not None and self._is_there(numbered):
                return False
            self._reached("read")
            wrote = self._append(transaction, batches())
            self._reached("appended")
            if numbered is not None:
                self._number(transaction, numbered)
            self._reached("numbered")
            if wrote or numbered is not None:
                self._end(transaction, commit=True)
            self._reached("decided")
        except Exception:
            self._give_up(transaction)
            raise
        return True

    def _begun(self) -> Transaction:
        transaction: Transaction | None = None

        def request(connection: BrokerSocket) -> tuple[Message, int]:
            nonlocal transaction
            implicit = joins_by_writing(connection.features)
            transaction = Transaction(self._name, self._settings.transaction_timeout_ms, implicit=implicit)
            asked = transaction.begin_request()
            return asked, transaction.highest(asked.API_KEY)

        def answered(response: Any) -> ErrorCode:
            assert transaction is not None
            return transaction.began(response)

        self._exchanged(TRANSACTION, f"begin a transaction of {self._name}", request, answered)
        assert transaction is not None
        return transaction

    def _is_there(self, numbered: Numbered) -> bool:
        last = self.last()
        if last is None:
            if numbered.number > numbered.first:
                raise WriteFailed(_EXPIRED.format(number=numbered.number, name=self._name, next=numbered.number + 1))
            return numbered.number < numbered.first
        return last[0] >= numbered.number

    def _append(self, transaction: Transaction, batches: Iterable[Batch]) -> bool:
        appender = Appender(self._cluster, self._settings.delivery_timeout_ms, self._request_timeout_ms, transaction)
        wrote = False
        for group in rounds(batches, self._settings.max_request_size):
            joining = transaction.joining_request(group)
            if joining is not None:
                highest = transaction.highest(joining.API_KEY)
                self._asked(TRANSACTION, "add partitions to the transaction", joining, highest, transaction.joined)
            appender.append({at: transaction.stamped(at, batch) for at, batch in group.items()})
            if not wrote:
                self._reached("first append")
            wrote = True
        return wrote

    def _number(self, transaction: Transaction, numbered: Numbered) -> None:
        joining = transaction.group_joining_request(self._name)
        if joining is not None:
            highest = transaction.highest(joining.API_KEY)
            self._asked(TRANSACTION, "add the group to the transaction", joining, highest, lambda r: error_of(r.error_code))
        text = numbered.metadata
        pieces = [text[start : start + MAX_METADATA] for start in range(0, max(1, len(text)), MAX_METADATA)]
        request = transaction.offset_request(self._name, self._topic, numbered.number, pieces)
        highest = transaction.highest(request.API_KEY)
        self._asked(GROUP, f"write the number of batch {numbered.number}", request, highest, transaction.offset_taken)

    def _end(self, transaction: Transaction, commit: bool) -> None:
        request = transaction.end_request(commit)
        what = "commit the transaction" if commit else "abort the transaction"
        self._asked(TRANSACTION, what, request, transaction.highest(request.API_KEY), transaction.ended)

    def _give_up(self, transaction: Transaction) -> None:
        """Best effort, so that readers need not wait for the timeout: the next transaction aborts it in any case."""
        transaction.failed()
        address = self._coordinators.get(TRANSACTION)
        if address is None or transaction.over:
            return
        request = transaction.end_request(False)
        try:
            connection = self._cluster.socket_at(address)
            try:
                connection.ask(request, transaction.highest(request.API_KEY))
            except (NoConnection, ProtocolViolation):
                self._cluster.forget(connection)
        except NoConnection:
            self._coordinators.clear()

    def _offset_question(self, connection: BrokerSocket) -> tuple[Message, int]:
        topic, partitions = self._topic, list(range(MAX_PIECES))
        if connection.version_of(ApiKey.OFFSET_FETCH, _OFFSET_FETCH) < 8:
            wanted = [OffsetFetchRequestTopic(name=topic, partition_indexes=partitions)]
            return OffsetFetchRequest(group_id=self._name, topics=wanted, require_stable=True), _OFFSET_FETCH
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=partitions)]
        group = OffsetFetchRequestGroup(group_id=self._name, topics=topics)
        return OffsetFetchRequest(groups=[group], require_stable=True), _OFFSET_FETCH

    def _asked(self, kind: int, what: str, request: Message, highest: int, answered: Callable[[Any], ErrorCode]) -> Any:
        return self._exchanged(kind, what, lambda connection: (request, highest), answered)

    def _exchanged(
        self,
        kind: int,
        what: str,
        request: Callable[[BrokerSocket], tuple[Message, int]],
        answered: Callable[[Any], ErrorCode],
    ) -> Any:
        """Ask a coordinator until it succeeds. Every request here may be repeated."""
        problem = ""
        for _ in self._cluster.pauses(self._settings.delivery_timeout_ms, _FIRST_PAUSE_MS):
            try:
                connection = self._cluster.socket_at(self._coordinator(kind))
                response = self._cluster.ask(connection, *request(connection))
                error = answered(response)
            except NoConnection as lost:
                problem = str(lost)
                self._coordinators.pop(kind, None)
                continue
            except (ProtocolViolation, UnsupportedByBroker) as wrong:
                raise WriteFailed(f"The cluster cannot {what}: {wrong}.") from wrong
            verdict = judge(error)
            if verdict is Verdict.DONE:
                return response
            if verdict is Verdict.REFRESH:
                self._coordinators.pop(kind, None)
            elif verdict is not Verdict.RETRY:
                raise refused(f"the request to {what}", error)
            problem = error.name
        raise WriteFailed(
            f"Could not {what} within {self._settings.delivery_timeout_ms} ms (kafka.delivery.timeout.ms). Last problem: "
            f"{problem}. Whether it was committed is seen when the batch is run again."
        )

    def _coordinator(self, kind: int) -> tuple[str, int]:
        found = self._coordinators.get(kind)
        if found is None:
            connection = self._cluster.any_socket()
            if connection.version_of(ApiKey.FIND_COORDINATOR) < 4:
                request = FindCoordinatorRequest(key=self._name, key_type=kind)
            else:
                request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[self._name])
            response = self._cluster.ask(connection, request)
            said = response.coordinators[0] if response.coordinators else response
            error = error_of(said.error_code)
            if error != ErrorCode.NONE:
                if judge(error) in (Verdict.RETRY, Verdict.REFRESH):
                    raise NoConnection(f"the coordinator of {self._name}: {error.name}")
                raise refused(f"the question for the coordinator of {self._name}", error, said.error_message)
            found = self._coordinators[kind] = (said.host, said.port)
        return found


def _offset_topics(response: Any) -> Any:
    return response.groups[0].topics if response.groups else response.topics


def _offset_error(response: Any) -> ErrorCode:
    codes = [response.error_code, *(group.error_code for group in response.groups)]
    codes += [part.error_code for topic in _offset_topics(response) for part in topic.partitions]
    return next((error_of(code) for code in codes if code), ErrorCode.NONE)
