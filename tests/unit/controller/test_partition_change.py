from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidelog.controller.leader_election import Election
from tidelog.controller.partition_change import ChangeRules, Wanted, change_partition
from tidelog.metadata.image import PartitionImage
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord

TOPIC = Uuid(b"t" * 16)
DIR = Uuid(b"d" * 16)
NEW_DIR = Uuid(b"n" * 16)
FIELDS = (
    "leader", "isr", "replicas", "adding_replicas", "removing_replicas", "leader_recovery_state", "directories",
    "eligible_leader_replicas", "last_known_elr",
)  # fmt: skip


def partition(**changes: Any) -> PartitionImage:
    state = replace(PartitionImage((1, 2, 3), (1, 2), 1), **changes)
    return replace(state, directories=(DIR,) * len(state.replicas))


def change(
    state: PartitionImage, up: set[int], *, elr: bool = False, min_isr: int = 1, level: int = 30, **wanted: Any
) -> dict[str, Any]:
    """What the record changes."""
    rules = ChangeRules(level, elr, min_isr, lambda broker: NEW_DIR)
    record = change_partition(TOPIC, 4, state, Wanted(**wanted), rules, up.__contains__)
    if record is None:
        return {}
    assert (record.partition_id, record.topic_id) == (4, TOPIC)
    empty = PartitionChangeRecord()
    return {name: getattr(record, name) for name in FIELDS if getattr(record, name) != getattr(empty, name)}


def test_no_record_is_written_when_nothing_changes() -> None:
    assert change(partition(), {1, 2, 3}) == {}
    assert change(partition(), {1, 2, 3}, isr=[1, 2], election=Election.UNCLEAN) == {}


def test_a_shrunk_isr_needs_a_new_leader_epoch_only_before_metadata_version_3_6() -> None:
    assert change(partition(), {1}, isr=[1]) == {"isr": [1]}
    assert change(partition(), {1}, isr=[1], level=11) == {"isr": [1], "leader": 1}
    assert change(partition(), {1, 2, 3}, isr=[1, 2, 3], level=11) == {"isr": [1, 2, 3]}


def test_a_leader_that_leaves_the_isr_is_followed_by_the_first_replica_in_sync() -> None:
    assert change(partition(), {2, 3}, isr=[2]) == {"isr": [2], "leader": 2}
    assert change(partition(leader=2), {1, 2}) == {}, "a leader that may stay stays"


def test_without_elr_the_last_in_sync_replica_stays_in_the_isr_without_leading() -> None:
    assert change(partition(isr=(1,)), {2, 3}, isr=[]) == {"leader": -1}
    assert change(partition(isr=(1,), leader=-1), {1}) == {"leader": 1}


def test_an_unclean_leader_is_the_whole_isr_and_has_to_recover() -> None:
    state = partition(leader=-1)
    assert change(state, {3}) == {}
    assert change(state, {3}, election=Election.UNCLEAN) == {"leader": 3, "isr": [3], "leader_recovery_state": 1}
    assert change(state, set(), election=Election.UNCLEAN) == {}
    recovering = partition(leader=-1, leader_recovery_state=1)
    assert change(recovering, {3}, election=Election.UNCLEAN) == {"leader": 3, "isr": [3]}


def test_the_preferred_leader_leads_again_when_it_is_in_sync() -> None:
    assert change(partition(leader=2), {1, 2}, election=Election.PREFERRED) == {"leader": 1}
    assert change(partition(leader=2, isr=(2, 3)), {1, 2, 3}, election=Election.PREFERRED) == {}
    assert change(partition(leader=2), {2}, election=Election.PREFERRED) == {}


def test_who_leaves_an_isr_below_the_minimum_is_eligible_until_the_minimum_is_reached() -> None:
    assert change(partition(), {1}, isr=[1], elr=True, min_isr=2) == {"isr": [1], "eligible_leader_replicas": [2]}
    assert change(partition(isr=(1, 2, 3)), {1}, isr=[1, 2], elr=True, min_isr=2) == {"isr": [1, 2]}
    low = partition(isr=(1,), elr=(2,))
    assert change(low, {1, 3}, isr=[1, 3], elr=True, min_isr=2) == {"isr": [1, 3], "eligible_leader_replicas": []}


def test_with_elr_an_isr_may_be_empty_and_the_last_leader_is_remembered() -> None:
    low = partition(isr=(1,), elr=(2,))
    gone = {"leader": -1, "isr": [], "eligible_leader_replicas": [1, 2], "last_known_elr": [1]}
    assert change(low, {3}, isr=[], elr=True, min_isr=2) == gone


def test_an_eligible_replica_leads_as_the_whole_isr_and_loses_nothing() -> None:
    empty = partition(isr=(), elr=(1, 2), leader=-1, last_known_elr=(1,))
    expected = {"leader": 2, "isr": [2], "eligible_leader_replicas": [1], "last_known_elr": []}
    assert change(empty, {2, 3}, elr=True, min_isr=2) == expected


def test_who_was_eligible_beside_a_leader_that_may_acknowledge_alone_is_so_no_more() -> None:
    empty = partition(isr=(), elr=(1, 2), leader=-1, last_known_elr=(1,))
    expected = {"leader": 2, "isr": [2], "eligible_leader_replicas": [], "last_known_elr": []}
    assert change(empty, {2, 3}, elr=True, min_isr=1) == expected


def test_a_last_known_leader_that_is_no_replica_any_more_does_not_lead() -> None:
    left = partition(replicas=(3,), isr=(), leader=-1, last_known_elr=(2,))
    assert change(left, {2}, elr=True) == {"last_known_elr": [3]}
    assert change(replace(left, last_known_elr=(3,)), {2, 3}, elr=True)["leader"] == 3


def test_who_ended_without_order_is_not_eligible() -> None:
    low = partition(isr=(1,), elr=(2,))
    unclean = {"isr": [], "unclean_shutdown": 1}
    assert change(low, {3}, elr=True, min_isr=2, **unclean) == {"leader": -1, "isr": [], "last_known_elr": [1]}
    assert change(low, {2, 3}, elr=True, min_isr=2, **unclean) == {"leader": 2, "isr": [2], "eligible_leader_replicas": []}


def test_the_last_known_leader_leads_uncleanly_when_nobody_else_is_left() -> None:
    nobody = partition(isr=(), leader=-1, last_known_elr=(2,))
    assert change(nobody, {3}, elr=True) == {}
    expected = {"leader": 2, "isr": [2], "leader_recovery_state": 1, "last_known_elr": []}
    assert change(nobody, {2, 3}, elr=True) == expected


def test_elr_that_is_switched_off_is_cleared() -> None:
    assert change(partition(isr=(1,), elr=(2,)), {1}) == {"eligible_leader_replicas": []}


def test_new_replicas_join_with_their_directories_and_the_old_ones_go_when_they_are_in_sync() -> None:
    moved = change(partition(), {1, 2, 3, 4}, replicas=[4, 2, 1, 3], adding=[4], removing=[1, 3])
    assert moved == {
        "replicas": [4, 2, 1, 3], "adding_replicas": [4], "removing_replicas": [1, 3], "directories": [NEW_DIR, DIR, DIR, DIR],
    }  # fmt: skip
    begun = partition(replicas=(4, 2, 1, 3), adding_replicas=(4,), removing_replicas=(1, 3))
    assert change(begun, {1, 2, 3, 4}, isr=[1, 2, 3]) == {"isr": [1, 2, 3]}
    assert change(begun, {1, 2, 3, 4}, isr=[1, 2, 4]) == {
        "leader": 4, "isr": [2, 4], "replicas": [4, 2], "adding_replicas": [], "removing_replicas": [], "directories": [DIR, DIR],
    }  # fmt: skip


def test_a_shrinking_assignment_waits_for_all_that_stay() -> None:
    begun = partition(replicas=(2, 3, 1), isr=(1, 2), removing_replicas=(1,))
    assert change(begun, {1, 2, 3}, isr=[1, 2]) == {}
    assert change(begun, {1, 2, 3}, isr=[1, 2, 3])["replicas"] == [2, 3]


def test_losing_a_replica_is_a_new_leader_epoch_even_under_the_same_leader() -> None:
    assert change(partition(), {1, 2, 3}, replicas=[1, 2]) == {"leader": 1, "replicas": [1, 2], "directories": [DIR, DIR]}
    assert change(partition(), {1, 2, 3}, replicas=[2, 1, 3]) == {"replicas": [2, 1, 3]}


@pytest.mark.parametrize(("level", "directories"), [(16, None), (17, [NEW_DIR, DIR, DIR])])
def test_directories_are_written_from_the_level_on_that_knows_them(level: int, directories: list[Uuid] | None) -> None:
    changed = change(partition(), {1, 2, 3}, level=level, directories={1: NEW_DIR})
    assert changed.get("directories") == directories


def test_recovery_ends_when_the_leader_says_so() -> None:
    recovering = partition(leader_recovery_state=1)
    assert change(recovering, {1, 2, 3}, isr=[1, 2], leader_recovery_state=0) == {"leader_recovery_state": 0}
