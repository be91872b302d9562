"""Whether promised records are there in the end, and whether transactions are whole.

A record of a committed transaction is missing when a reader of committed records has passed its place, or when the log was read
to its end, and no reader has seen it. When only a part of the transaction was seen, it is torn.
"""

from __future__ import annotations

from tidelog.testing.checker.ledger import Ledger, Transaction, Write
from tidelog.testing.checker.verdict import Anomaly, Verdict


def judge_wholeness(ledger: Ledger, passed: set[str], verdict: Verdict) -> None:
    """Adds unseen writes and torn transactions. ``passed``: the values that readers of committed records have left out."""
    transactional = any(poll.committed_only for poll in ledger.polls)
    missing: dict[str, list[Write]] = {}
    for write in ledger.writes.values():
        if not write.promised or _seen(write, transactional):
            continue
        end = ledger.drained.get(write.partition)
        beyond = end is not None and (write.place is None or write.place >= end)
        if beyond:
            at = "at an unknown offset" if write.place is None else f"at {write.place}"
            verdict.add(
                Anomaly.UNSEEN_WRITE,
                f"{write.value} was written to {write.partition} {at}{_of(write)}; read to its end, {end}, it is not there",
            )
        if write.transaction is not None and (beyond or write.value in passed):
            missing.setdefault(write.transaction.name, []).append(write)
    for name, writes in missing.items():
        transaction = ledger.transactions[name]
        if transaction.seen:
            _tell(transaction, writes, verdict)


def _seen(write: Write, transactional: bool) -> bool:
    """Without readers of committed records, any reader counts."""
    if write.transaction is None or not transactional:
        return write.read_at is not None
    return write.seen


def _of(write: Write) -> str:
    return "" if write.transaction is None else f" by the committed transaction {write.transaction.name}"


def _tell(transaction: Transaction, missing: list[Write], verdict: Verdict) -> None:
    there = [f"{write.value} ({write.partition}@{write.place})" for write in transaction.writes if write.seen]
    gone = [f"{write.value} ({write.partition}@{write.place})" for write in missing]
    found = ", ".join(there[:3]) or "its group's offsets"
    verdict.add(Anomaly.TORN_TRANSACTION, f"{transaction.name}: readers saw {found}, but not {', '.join(gone[:3])}")
