from __future__ import annotations

from tidelog.coordinator.transaction.state import AT_REST, BY_NAME, ENDING, MOVES, NAMES, TransactionState


def test_every_state_has_its_name_and_a_place_in_the_table_of_moves() -> None:
    assert set(NAMES) == set(TransactionState) == set(MOVES)
    assert [BY_NAME[NAMES[state]] for state in TransactionState] == list(TransactionState)


def test_what_is_decided_can_only_be_completed_as_it_was_decided() -> None:
    assert MOVES[TransactionState.PREPARE_COMMIT] == (TransactionState.COMPLETE_COMMIT,)
    assert MOVES[TransactionState.PREPARE_ABORT] == (TransactionState.COMPLETE_ABORT,)


def test_a_commit_is_decided_only_while_a_transaction_is_open() -> None:
    assert [state for state in TransactionState if TransactionState.PREPARE_COMMIT in MOVES[state]] == [TransactionState.ONGOING]


def test_no_id_is_forgotten_while_a_transaction_is_under_way() -> None:
    assert [state for state in TransactionState if TransactionState.DEAD in MOVES[state]] == list(AT_REST)
    assert not set(ENDING) & set(AT_REST)
