"""Consumer groups under churn, seeded: members of both protocols join, pause, lose answers, die and come back, groups change
from one protocol to the other, topics change, the coordinator crashes and loads, time jumps.

Promises held at every step: no partition is read by two members at once; epochs never go back; a stale member never sets a
committed offset back; the log says what the machine holds. And once the trouble ends: all members are stable, and every
subscribed partition is read by one member.
"""

from __future__ import annotations

import os

import pytest

from tests.property.group_churn import World

SEEDS = 6_000 if os.environ.get("TIDELOG_LONG") else 100


@pytest.mark.parametrize("block", range(10))
def test_groups_of_both_protocols_keep_their_promises_under_churn(block: int) -> None:
    for seed in range(block, SEEDS, 10):
        world = World(seed)
        try:
            world.run(200)
            world.settle()
            world.verdict()
        except AssertionError as broken:
            raise AssertionError(f"seed {seed}: {broken}") from broken
