"""Operations whose outcome was never reported."""

from __future__ import annotations

import pytest

from tests.unit.testing.checker.told import Told
from tidelog.testing.checker import HistoryError
from tidelog.testing.checker.ledger import Ledger, Outcome, gather


def outcome(ledger: Ledger, name: str = "t") -> tuple[Outcome, bool]:
    transaction = ledger.transactions[name]
    return transaction.outcome, transaction.committed


def test_without_asking_for_a_commit_nothing_is_ever_committed() -> None:
    assert outcome(gather(Told().begin("p", "t").send("p", "a", 0, txn="t").events)) == (Outcome.REFUSED, False)
    assert outcome(gather(Told().begin("p", "t").abort("p", "t", "info").events)) == (Outcome.REFUSED, False)


def test_a_commit_without_an_answer_is_unknown_until_somebody_has_seen_it() -> None:
    told = Told().begin("p", "t").send("p", "a", 0, txn="t").commit("p", "t", kind="")
    assert outcome(gather(told.events)) == (Outcome.ASKED, False)
    told.poll("dirty", (0, "a"), isolation="read_uncommitted")
    assert outcome(gather(told.events)) == (Outcome.ASKED, False)
    assert outcome(gather(told.poll("r", (0, "a")).events)) == (Outcome.ASKED, True)


def test_a_group_that_has_the_offsets_of_an_unknown_transaction_gives_it_away() -> None:
    told = Told().begin("p", "t").offsets("p", "g", txn="t", in_0=5).commit("p", "t", "info")
    assert outcome(gather(told.fetch("q", "g", in_0=4).events)) == (Outcome.ASKED, False)
    assert outcome(gather(told.fetch("q", "g", in_0=5).events)) == (Outcome.ASKED, True)
    again = Told().begin("p", "t").offsets("p", "g", txn="t", in_0=5).commit("p", "t", "info")
    again.begin("q", "u").offsets("q", "g", txn="u", in_0=5).commit("q", "u").fetch("q", "g", in_0=5)
    assert outcome(gather(again.events)) == (Outcome.ASKED, False), "another one has sent the same offset"


def test_a_refusal_counts_unless_an_earlier_question_is_still_open() -> None:
    assert outcome(gather(Told().begin("p", "t").commit("p", "t", "fail").events)) == (Outcome.REFUSED, False)
    told = Told().begin("p", "t").commit("p", "t", "info").commit("p", "t", "fail")
    assert outcome(gather(told.events)) == (Outcome.ASKED, False)
    assert outcome(gather(told.commit("p", "t").events)) == (Outcome.DONE, True)


def test_counts_say_what_there_is() -> None:
    told = Told().begin("p", "t").send("p", "a", 0, txn="t").commit("p", "t").begin("p", "u").abort("p", "u")
    told.begin("p", "v").commit("p", "v", "info").poll("r", (0, "a"))
    counts = gather(told.events).counts()
    assert (counts.sends, counts.commits, counts.aborts, counts.unknown, counts.polls, counts.records_read) == (1, 1, 1, 1, 1, 1)
    assert counts.processes == 2


def test_events_that_make_no_sense_are_refused() -> None:
    with pytest.raises(HistoryError, match="has the op 'jump'"):
        gather(Told().note("p", "ok", "jump").events)
    with pytest.raises(HistoryError, match="sent once"):
        gather(Told().send("p", "a", 0).send("p", "a", 1).events)
    with pytest.raises(HistoryError, match="lacks or does not know 't'"):
        gather(Told().commit("p", "t").events)
