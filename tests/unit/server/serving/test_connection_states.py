from __future__ import annotations

import pytest

from tests.unit.server.serving.test_connection_machine import Talk
from tidelog.server.serving.connection_states import TRANSITIONS, Event, State


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("event", list(Event))
def test_an_event_leads_where_the_table_says_and_nowhere_else(state: State, event: Event) -> None:
    machine = Talk(state).machine
    wanted = TRANSITIONS.get((state, event))
    assert machine.on(event) is (wanted is not None)
    assert machine.state is (wanted or state)


def test_nothing_leads_out_of_closed_and_everything_else_can_drain_and_close() -> None:
    assert not [state for state, _ in TRANSITIONS if state is State.CLOSED]
    for state in set(State) - {State.CLOSED}:
        assert TRANSITIONS[state, Event.DRAIN] is State.DRAINING
        assert TRANSITIONS[state, Event.CLOSE] is State.CLOSED


def test_a_connection_is_authenticated_then_open() -> None:
    machine = Talk(State.AUTHENTICATING).machine
    machine.on(Event.AUTHENTICATED)
    assert machine.state is State.OPEN
