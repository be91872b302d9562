from __future__ import annotations

from tidelog.coordinator.group.streams.streams_state import StreamsGroupState


def test_names_are_those_of_kafkas_tools() -> None:
    assert [state.value for state in StreamsGroupState] == ["Empty", "NotReady", "Assigning", "Reconciling", "Stable"]
