"""A checker for histories: the requests and answers that clients recorded, compared with Kafka's promises.

In the spirit of Jepsen's queue workload for Kafka: clients record what they do while faults hit the cluster, and afterwards the
history is searched for aborted reads, lost, duplicated and unseen writes, torn transactions, inconsistent offsets, reads that
skip or go back, cycles of dependencies, and consumed records that did not land exactly once.

    from tidelog.testing.checker import check

    verdict = check("run/a.jsonl", "run/b.jsonl")
    assert verdict.valid, verdict.text()

The form of a history, and ``Recorder`` to write one, are in ``tidelog.testing.checker.events``. ``python -m
tidelog.testing.checker FILE...`` does the same for programs in other languages.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tidelog.testing.checker.contents import judge_contents
from tidelog.testing.checker.cycles import judge_cycles
from tidelog.testing.checker.events import Event, HistoryError, Recorder, load, save
from tidelog.testing.checker.groups import judge_groups
from tidelog.testing.checker.ledger import gather
from tidelog.testing.checker.order import judge_order
from tidelog.testing.checker.verdict import Anomaly, Counts, Found, Verdict
from tidelog.testing.checker.wholeness import judge_wholeness

__all__ = ["Anomaly", "Counts", "Event", "Found", "HistoryError", "Recorder", "Verdict", "check", "check_events", "load", "save"]


def check(*paths: str | Path, write_order: bool = False) -> Verdict:
    """Check a history in one or several files. ``write_order``: see ``check_events``."""
    return check_events(load(*paths), write_order=write_order)


def check_events(events: Iterable[Event], *, write_order: bool = False) -> Verdict:
    """Check a history. HistoryError when it is not one.

    ``write_order``: transactions are claimed to be serializable in the order of their records, so that cycles over it count too
    (G0, and those with anti-dependencies). Kafka does not promise that to concurrent transactions.
    """
    verdict = Verdict()
    ledger = gather(events)
    verdict.counts = ledger.counts()
    judge_contents(ledger, verdict)
    passed = judge_order(ledger, verdict)
    judge_wholeness(ledger, passed, verdict)
    judge_groups(ledger, verdict)
    judge_cycles(ledger, verdict, write_order=write_order)
    return verdict
