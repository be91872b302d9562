from __future__ import annotations

import pytest

from tidelog.controller.leader_election import Candidates, Election, choose_leader
from tidelog.model.ids import NO_BROKER

ANY = frozenset({1, 2, 3})


@pytest.mark.parametrize(
    ("candidates", "election", "alive", "expected"),
    [
        (Candidates(2, [1, 2, 3], [1, 2], [], []), Election.ONLINE, ANY, (2, False)),
        (Candidates(2, [1, 2, 3], [1, 2], [], []), Election.PREFERRED, ANY, (1, False)),
        (Candidates(2, [1, 2, 3], [2, 3], [], []), Election.PREFERRED, ANY, (2, False)),
        (Candidates(2, [1, 2, 3], [2, 3], [], []), Election.ONLINE, {1, 3}, (3, False)),
        (Candidates(2, [1, 2, 3], [2], [], []), Election.ONLINE, {1, 3}, (NO_BROKER, False)),
        (Candidates(2, [1, 2, 3], [2], [], []), Election.UNCLEAN, {1, 3}, (1, True)),
        (Candidates(2, [1, 2, 3], [2], [3], []), Election.ONLINE, {1, 3}, (NO_BROKER, False)),
        (Candidates(NO_BROKER, [1, 2, 3], [], [3], []), Election.UNCLEAN, {1, 3}, (3, False)),
        (Candidates(NO_BROKER, [1, 2, 3], [], [], [2]), Election.ONLINE, {1, 2}, (2, True)),
        (Candidates(NO_BROKER, [1, 2, 3], [], [], [2]), Election.ONLINE, {1}, (NO_BROKER, False)),
        (Candidates(NO_BROKER, [1, 2, 3], [], [], []), Election.UNCLEAN, set(), (NO_BROKER, False)),
    ],
)
def test_the_leader_is_the_first_that_may_lead(
    candidates: Candidates, election: Election, alive: set[int], expected: tuple[int, bool]
) -> None:
    assert choose_leader(candidates, election, lambda replica: replica in alive) == expected
