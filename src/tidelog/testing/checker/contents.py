"""Records that readers got: should this record exist, at this offset, for this reader, at this time?

Aborted, intermediate and phantom reads; offsets with two values, values at two offsets.
"""

from __future__ import annotations

from tidelog.testing.checker.ledger import Ledger, Outcome, Poll, Write
from tidelog.testing.checker.verdict import Anomaly, Verdict


def judge_contents(ledger: Ledger, verdict: Verdict) -> None:
    """Adds the findings about single records. Each offset and each value is reported once."""
    logs: dict[str, dict[int, str]] = {}
    for write in ledger.writes.values():
        if write.offset is not None:
            _place(logs, write.partition, write.offset, write.value, "was acknowledged there", verdict)
    moved: set[str] = set()
    bad: set[tuple[str, str]] = set()
    for poll in ledger.polls:
        for partition, offset, value in poll.records:
            known = logs.get(partition)
            if known is None or known.get(offset) != value:
                _place(logs, partition, offset, value, f"was read by {poll.process}", verdict)
            sent = ledger.writes.get(value)
            if sent is None:
                sentence = f"{poll.process} read {value} at {partition}@{offset}; no client sent it"
                _once(bad, (value, "phantom"), verdict, Anomaly.PHANTOM_READ, sentence)
                continue
            if (offset != sent.place or partition != sent.partition) and sent.ordered:
                moved.add(value)
            if poll.committed_only:
                _judge_visibility(sent, poll, offset, bad, verdict)
    if moved:
        _judge_moved(ledger, moved, verdict)


def _place(logs: dict[str, dict[int, str]], partition: str, offset: int, value: str, how: str, verdict: Verdict) -> None:
    log = logs.setdefault(partition, {})
    before = log.setdefault(offset, value)
    if before != value:
        log[offset] = value  # so that each of its readers does not report it again
        verdict.add(Anomaly.INCONSISTENT_OFFSET, f"{partition}@{offset}: {value} {how}, and {before} is known to be there")


def _judge_moved(ledger: Ledger, moved: set[str], verdict: Verdict) -> None:
    """Values read at another offset than acknowledged: either they are there twice, or the acknowledgement was wrong."""
    places: dict[str, dict[tuple[str, int], str]] = {}
    for poll in ledger.polls:
        for partition, offset, value in poll.records:
            if value in moved:
                places.setdefault(value, {}).setdefault((partition, offset), poll.process)
    for value, found in places.items():
        write = ledger.writes[value]
        read = " and ".join(f"{partition}@{offset} (by {process})" for (partition, offset), process in found.items())
        if len(found) > 1:
            verdict.add(Anomaly.DUPLICATE_WRITE, f"{value}, sent once to {write.partition}, was read at {read}")
        else:
            verdict.add(
                Anomaly.INCONSISTENT_OFFSET, f"{value} was read at {read}, and acknowledged at {write.partition}@{write.offset}"
            )


def _judge_visibility(write: Write, poll: Poll, offset: int, bad: set[tuple[str, str]], verdict: Verdict) -> None:
    transaction = write.transaction
    here = f"{poll.process} read {write.value} at {write.partition}@{offset}"
    if write.outcome is Outcome.REFUSED or (transaction is not None and transaction.outcome is Outcome.REFUSED):
        why = "its send was refused" if transaction is None else f"its transaction {transaction.name} was aborted"
        _once(bad, (write.value, "aborted"), verdict, Anomaly.ABORTED_READ, f"{here}; {why}")
    elif transaction is not None and transaction.asked_at is not None and poll.at < transaction.asked_at:
        asked = f"the commit of {transaction.name} was asked for later (event {transaction.asked_at})"
        _once(bad, (write.value, "early"), verdict, Anomaly.INTERMEDIATE_READ, f"{here} (event {poll.at}); {asked}")


def _once(told: set[tuple[str, str]], what: tuple[str, str], verdict: Verdict, anomaly: Anomaly, sentence: str) -> None:
    if what not in told:
        told.add(what)
        verdict.add(anomaly, sentence)
