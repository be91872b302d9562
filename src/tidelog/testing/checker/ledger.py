"""The contents of a history, gathered in one pass: writes, transactions, polls, committed offsets of groups, and readers'
progress.

This module decides unknown outcomes. A transaction whose commit was requested without a clear answer is unknown: it may be
committed or not. If a read_committed reader saw any of it, or a group has its offsets, it was committed, and then all of it must
be there. Without the request it never was: a coordinator only ever aborts by itself. The other modules of this package do the
judging.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

from tidelog.testing.checker.events import Event, HistoryError
from tidelog.testing.checker.verdict import Counts

COMMITTED_ONLY = "read_committed"


class Outcome(Enum):
    """The outcome of a send, a transaction or a commit of offsets."""

    ASKED = 0
    """Unknown: it may have happened."""
    DONE = 1
    REFUSED = 2
    """It has certainly not happened."""


class Transaction:
    """``outcome`` DONE is committed; REFUSED is aborted or never requested to commit."""

    __slots__ = ("asked_at", "begun_at", "ended_at", "name", "offsets", "outcome", "polls", "process", "seen", "writes")

    def __init__(self, name: str, process: str, begun_at: int) -> None:
        self.name = name
        self.process = process
        self.begun_at = begun_at
        """The number of the event in the history, as for all ``_at``."""
        self.asked_at: int | None = None
        """When its commit was first requested."""
        self.ended_at: int | None = None
        self.outcome = Outcome.REFUSED
        self.seen = False
        """A read_committed reader got some of it, or a group has its offsets: it is committed, whatever the answer was."""
        self.writes: list[Write] = []
        self.polls: list[Poll] = []
        self.offsets: list[OffsetCommit] = []

    @property
    def committed(self) -> bool:
        """Whether it is certainly committed."""
        return self.outcome is Outcome.DONE or (self.outcome is Outcome.ASKED and self.seen)


class Write:
    """One send."""

    __slots__ = (
        "asked_at", "offset", "ordered", "outcome", "partition", "process", "read_at", "seen", "source", "transaction", "value"
    )  # fmt: skip

    def __init__(self, event: Event, transaction: Transaction | None, asked_at: int) -> None:
        self.value: str = event["value"]
        self.partition: str = event["partition"]
        self.process: str = event["process"]
        self.transaction = transaction
        self.source: str | None = event.get("source")
        self.ordered: bool = event.get("ordered", True)
        self.asked_at = asked_at
        self.outcome = Outcome.ASKED
        self.offset: int | None = None
        """The acknowledged offset."""
        self.read_at: int | None = None
        """The offset at which it was first read."""
        self.seen = False
        """Whether a read_committed reader got it."""

    @property
    def place(self) -> int | None:
        """Its offset, as far as known."""
        return self.offset if self.offset is not None else self.read_at

    @property
    def promised(self) -> bool:
        """Whether a reader of committed records that passes it must get it."""
        if self.outcome is Outcome.REFUSED:
            return False
        if self.transaction is not None:
            return self.transaction.committed
        return self.outcome is Outcome.DONE or self.seen


class Poll:
    """The records of one poll."""

    __slots__ = ("asked_at", "at", "committed_only", "process", "records", "transaction")

    def __init__(self, event: Event, transaction: Transaction | None, asked_at: int, at: int) -> None:
        self.process: str = event["process"]
        self.transaction = transaction
        self.asked_at = asked_at
        self.at = at
        self.committed_only = event.get("isolation", COMMITTED_ONLY) == COMMITTED_ONLY
        self.records: list[tuple[str, int, str]] = []


class Run:
    """What one process read of one partition from one position on, until it was moved."""

    __slots__ = ("committed_only", "end", "offsets", "partition", "polls", "process", "start")

    def __init__(self, process: str, partition: str, start: int | None) -> None:
        self.process = process
        self.partition = partition
        self.start = start
        self.end: int | None = None
        """Its last position, if known."""
        self.committed_only = True
        self.offsets: list[int] = []
        self.polls: list[int] = []
        """The number of the poll that returned the record, for each of the offsets."""


class OffsetCommit:
    """Offsets that were added to a transaction, or committed directly."""

    __slots__ = ("asked_at", "done_at", "group", "offsets", "outcome", "transaction")

    def __init__(self, event: Event, transaction: Transaction | None, asked_at: int) -> None:
        self.group: str = event["group"]
        self.offsets: dict[str, int] = event["offsets"]
        self.transaction = transaction
        self.asked_at = asked_at
        self.done_at: int | None = None
        self.outcome = Outcome.ASKED


class Fetch:
    """The committed offsets of a group, as it was answered."""

    __slots__ = ("asked_at", "at", "group", "offsets")

    def __init__(self, event: Event, asked_at: int, at: int) -> None:
        self.group: str = event["group"]
        self.offsets: dict[str, int] = event["offsets"]
        self.asked_at = asked_at
        self.at = at


class Ledger:
    """Filled by ``gather``."""

    def __init__(self) -> None:
        self.writes: dict[str, Write] = {}
        self.transactions: dict[str, Transaction] = {}
        self.polls: list[Poll] = []
        self.runs: list[Run] = []
        self.offset_commits: list[OffsetCommit] = []
        self.fetches: list[Fetch] = []
        self.drained: dict[str, int] = {}
        """Up to which offset each partition was read at the end."""
        self.events = 0
        self._reading: dict[str, dict[str, Run]] = {}
        self._names: dict[str, str] = {}
        self._asked: dict[tuple[str, str], int] = {}
        self._offsets_asked: dict[str, OffsetCommit] = {}

    def counts(self) -> Counts:
        """The size of the history."""
        outcomes = [transaction.outcome for transaction in self.transactions.values()]
        return Counts(
            events=self.events,
            processes=len(self._reading),
            sends=len(self.writes),
            polls=len(self.polls),
            records_read=sum(len(poll.records) for poll in self.polls),
            commits=outcomes.count(Outcome.DONE),
            aborts=outcomes.count(Outcome.REFUSED),
            unknown=outcomes.count(Outcome.ASKED),
        )

    def take(self, event: Event) -> None:
        """Takes the next event. HistoryError when it makes no sense here."""
        self.events += 1
        process: str = event["process"]
        if process not in self._reading:
            self._reading[process] = {}
        take = _TAKERS.get(event["op"])
        if take is None:
            raise HistoryError(f"Event {self.events} has the op {event['op']!r}; known are {', '.join(_TAKERS)}")
        try:
            take(self, event, process, self.events)
        except KeyError as error:
            raise HistoryError(f"Event {self.events}, {event['op']} {event['type']}, lacks or does not know {error}") from error

    def _transaction_of(self, event: Event) -> Transaction | None:
        name = event.get("txn")
        return None if name is None else self.transactions[name]

    def _begin(self, event: Event, process: str, at: int) -> None:
        if event["type"] == "ok" and event["txn"] not in self.transactions:
            self.transactions[event["txn"]] = Transaction(event["txn"], process, at)

    def _send(self, event: Event, process: str, at: int) -> None:
        kind = event["type"]
        if kind == "invoke":
            if event["value"] in self.writes:
                raise HistoryError(f"Event {at} sends {event['value']!r} again; every value must be sent once")
            write = Write(event, self._transaction_of(event), at)
            self.writes[write.value] = write
            if write.transaction is not None:
                write.transaction.writes.append(write)
            return
        write = self.writes[event["value"]]
        if kind == "ok":
            write.outcome = Outcome.DONE
            write.offset = event.get("offset")
        elif kind == "fail":
            write.outcome = Outcome.REFUSED

    def _poll(self, event: Event, process: str, at: int) -> None:
        if event["type"] != "ok":
            self._asked[process, "poll"] = at
            return
        number = len(self.polls)
        poll = Poll(event, self._transaction_of(event), self._asked.pop((process, "poll"), at), at)
        poll.records = self._shared(event["records"])
        self.polls.append(poll)
        if poll.transaction is not None:
            poll.transaction.polls.append(poll)
        reading = self._reading[process]
        for partition, offset, _ in poll.records:
            run = reading.get(partition)
            if run is None:
                run = self._new_run(process, partition, None)
            if not run.offsets:
                run.committed_only = poll.committed_only
            run.offsets.append(offset)
            run.polls.append(number)
        for partition, position in (event.get("positions") or {}).items():
            if partition in reading:
                reading[partition].end = position
                reading[partition].committed_only = poll.committed_only

    def _shared(self, records: list[list[Any]]) -> list[tuple[str, int, str]]:
        """The records with one string per partition and value, because a long history has millions."""
        names, writes = self._names, self.writes
        shared = []
        for partition, offset, value in records:
            write = writes.get(value)
            name = names.setdefault(partition, partition)
            shared.append((name, offset, value if write is None else write.value))
        return shared

    def _new_run(self, process: str, partition: str, start: int | None) -> Run:
        run = Run(process, partition, start)
        self._reading[process][partition] = run
        self.runs.append(run)
        return run

    def _position(self, event: Event, process: str, at: int) -> None:
        for partition, start in event["positions"].items():
            self._new_run(process, partition, start)

    def _revoke(self, event: Event, process: str, at: int) -> None:
        for partition in event["partitions"]:
            self._reading[process].pop(partition, None)

    def _offsets(self, event: Event, process: str, at: int) -> None:
        if event["type"] == "invoke":
            commit = OffsetCommit(event, self._transaction_of(event), at)
            self._offsets_asked[process] = commit
            self.offset_commits.append(commit)
            if commit.transaction is not None:
                commit.transaction.offsets.append(commit)
            return
        commit = self._offsets_asked[process]
        commit.done_at = at
        commit.outcome = {"ok": Outcome.DONE, "fail": Outcome.REFUSED}.get(event["type"], Outcome.ASKED)

    def _commit(self, event: Event, process: str, at: int) -> None:
        transaction = self.transactions[event["txn"]]
        kind = event["type"]
        if kind == "invoke":
            again = transaction.asked_at is not None
            if not again:
                transaction.asked_at = at
                transaction.outcome = Outcome.ASKED
            return
        transaction.ended_at = at
        if kind == "ok":
            transaction.outcome = Outcome.DONE
        elif kind == "fail" and transaction.outcome is Outcome.ASKED and not self._doubted(transaction):
            transaction.outcome = Outcome.REFUSED
        elif kind == "info":
            self._asked[transaction.name, "doubt"] = at

    def _doubted(self, transaction: Transaction) -> bool:
        """Whether an earlier answer was unclear: a refusal of the second request says nothing about the first."""
        return (transaction.name, "doubt") in self._asked

    def _abort(self, event: Event, process: str, at: int) -> None:
        transaction = self.transactions[event["txn"]]
        if event["type"] != "invoke":
            transaction.ended_at = at

    def _fetch(self, event: Event, process: str, at: int) -> None:
        if event["type"] == "invoke":
            self._asked[process, "fetch"] = at
        elif event["type"] == "ok":
            self.fetches.append(Fetch(event, self._asked.pop((process, "fetch"), at), at))

    def _drain(self, event: Event, process: str, at: int) -> None:
        for partition, position in event["positions"].items():
            self.drained[partition] = max(position, self.drained.get(partition, 0))
            run = self._reading[process].get(partition)
            if run is None:
                run = self._new_run(process, partition, None)
            run.end = position

    def settle(self) -> None:
        """After the last event: decides which values were seen, and which unknown transactions are therefore committed."""
        for poll in self.polls:
            for _, offset, value in poll.records:
                write = self.writes.get(value)
                if write is None:
                    continue
                if write.read_at is None:
                    write.read_at = offset
                if poll.committed_only and not write.seen:
                    write.seen = True
                    if write.transaction is not None:
                        write.transaction.seen = True
        for transaction in self._betrayed_by_offsets():
            transaction.seen = True

    def _betrayed_by_offsets(self) -> Iterator[Transaction]:
        """The unknown transactions that are the only source of an offset that their group has."""
        senders: dict[tuple[str, str, int], list[Transaction | None]] = {}
        for commit in self.offset_commits:
            for partition, offset in commit.offsets.items():
                senders.setdefault((commit.group, partition, offset), []).append(commit.transaction)
        for fetch in self.fetches:
            for partition, offset in fetch.offsets.items():
                found = senders.get((fetch.group, partition, offset), [])
                possible = [each for each in found if each is None or each.outcome is not Outcome.REFUSED]
                if len(possible) == 1 and possible[0] is not None:
                    yield possible[0]


_TAKERS: dict[str, Any] = {
    "begin": Ledger._begin,
    "send": Ledger._send,
    "poll": Ledger._poll,
    "position": Ledger._position,
    "revoke": Ledger._revoke,
    "offsets": Ledger._offsets,
    "commit": Ledger._commit,
    "abort": Ledger._abort,
    "fetch": Ledger._fetch,
    "drain": Ledger._drain,
}


def gather(events: Iterable[Event]) -> Ledger:
    """The ledger of a whole history. HistoryError for events that make no sense."""
    ledger = Ledger()
    for event in events:
        ledger.take(event)
    ledger.settle()
    return ledger
