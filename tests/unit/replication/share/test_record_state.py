"""Record states: their numbers are in Kafka's records, and which of them end a record's life."""

from __future__ import annotations

from tidelog.replication.share.record_state import STATE_AFTER, AckType, RecordState


def test_the_numbers_are_those_of_the_records() -> None:
    assert {state.name: state.value for state in RecordState} == {
        "AVAILABLE": 0,
        "ACQUIRED": 1,
        "ACKNOWLEDGED": 2,
        "ARCHIVING": 3,
        "ARCHIVED": 4,
    }
    assert [kind.name for kind in AckType] == ["GAP", "ACCEPT", "RELEASE", "REJECT", "RENEW"]


def test_only_a_released_record_is_delivered_again() -> None:
    assert {kind for kind, state in STATE_AFTER.items() if not state.is_terminal} == {AckType.RELEASE}
    assert [state for state in RecordState if state.is_terminal] == [RecordState.ACKNOWLEDGED, RecordState.ARCHIVED]
