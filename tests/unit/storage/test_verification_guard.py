"""What proof of a transaction is worth, and for how long (KIP-890)."""

import pytest

from tidelog.storage import verification_guard
from tidelog.storage.verification_guard import NOT_REQUIRED, Verification, Verifications


def begin(
    asked: Verifications, epoch: int = 0, sequence: int = 0, *, starts_at_zero: bool = False, now_ms: int = 0
) -> Verification:
    return asked.begin(7, epoch, sequence, starts_at_zero=starts_at_zero, transactional_id="pay", now_ms=now_ms)


def test_a_proof_holds_until_a_marker_or_a_first_batch_takes_it_away() -> None:
    asked = Verifications()
    proof = begin(asked)
    assert asked.holds(7, proof) and not asked.holds(8, proof) and not asked.holds(7, None)
    assert asked.end(7) is proof
    assert not asked.holds(7, proof)


def test_the_proof_of_the_transaction_before_is_none_for_the_next_one() -> None:
    asked = Verifications()
    before = begin(asked)
    asked.end(7)
    now = begin(asked)
    assert asked.holds(7, now) and not asked.holds(7, before)


def test_of_several_batches_under_way_the_lowest_sequence_is_remembered() -> None:
    asked = Verifications()
    proof = begin(asked, sequence=5)
    assert begin(asked, sequence=3) is proof and begin(asked, sequence=9) is proof
    assert proof.lowest_sequence == 3


def test_a_bumped_epoch_begins_anew_and_an_older_one_changes_nothing() -> None:
    asked = Verifications()
    proof = begin(asked, epoch=1, sequence=0, starts_at_zero=True)
    begin(asked, epoch=2, sequence=4, starts_at_zero=True)
    assert (proof.epoch, proof.lowest_sequence) == (2, 4)
    begin(asked, epoch=1, sequence=0, starts_at_zero=True)
    assert (proof.epoch, proof.lowest_sequence) == (2, 4)


def test_only_the_question_that_failed_is_given_up() -> None:
    asked = Verifications()
    before = begin(asked)
    asked.end(7)
    now = begin(asked)
    before.served()
    asked.abandon(7, before)
    assert asked.holds(7, now)
    now.served()
    asked.abandon(7, now)
    assert len(asked) == 0


def test_what_another_batch_asks_by_is_not_given_up() -> None:
    asked = Verifications()
    proof = begin(asked)
    assert begin(asked) is proof
    proof.served()
    asked.abandon(7, proof)
    assert asked.holds(7, proof)
    proof.served()
    asked.abandon(7, proof)
    assert not asked.holds(7, proof)


def test_questions_that_came_to_nothing_do_not_fill_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification_guard, "MOST_REMEMBERED", 3)
    asked = Verifications()

    def ask(producer_id: int) -> Verification:
        return asked.begin(producer_id, 0, 0, starts_at_zero=False, transactional_id="x", now_ms=0)

    first = ask(0)
    for producer_id in range(1, 10):
        ask(producer_id).served()
    assert len(asked) == 3 and asked.holds(0, first), "the one that is under way stays"
    for producer_id in range(10, 20):
        ask(producer_id)
    assert len(asked) == 11, "as many as there are requests"


def test_a_broker_that_does_not_verify_needs_no_proof() -> None:
    assert Verifications().holds(7, NOT_REQUIRED)


def test_questions_that_nobody_came_back_for_are_forgotten() -> None:
    asked = Verifications()
    old = begin(asked, now_ms=1000)
    asked.begin(8, 0, 0, starts_at_zero=False, transactional_id="x", now_ms=2000)
    asked.remove_begun_before(1500)
    assert len(asked) == 1 and not asked.holds(7, old) and asked.get(8) is not None
    asked.clear()
    assert len(asked) == 0


@pytest.mark.parametrize(
    ("epoch", "bumps", "marker", "kept"),
    [(3, True, 3, True), (3, True, 4, False), (4, True, 3, True), (3, False, 3, False), (3, False, 2, False)],
)
def test_a_marker_leaves_a_question_alone_that_is_surely_about_a_later_transaction(
    epoch: int, bumps: bool, marker: int, kept: bool
) -> None:
    """Where the producer's epoch grows with each transaction, a marker has the one after that of the transaction that it ends."""
    asked = Verifications()
    proof = begin(asked, epoch=epoch, starts_at_zero=bumps)
    asked.marked(8, marker)
    assert asked.holds(7, proof)
    asked.marked(7, marker)
    assert asked.holds(7, proof) is kept
