"""A group's own decisions: moves, votes, leaders."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.driver import Driver
from tidelog.coordinator.group.classic.classic_group import MOVES, ClassicGroup, GroupState, Member
from tidelog.model.errors import ErrorCode


def test_the_protocol_with_most_votes_among_those_that_all_support_is_used() -> None:
    driver = Driver()
    wishes = [("a", "b", "c"), ("b", "a"), ("b", "a")]
    tokens = [driver.join_twice("g", protocols=tuple((name, b"") for name in names))[1] for names in wishes]
    driver.advance(60_000)
    assert {driver.answers[token].protocol_name for token in tokens} == {"b"}


def group_of(*names: str) -> ClassicGroup:
    group = ClassicGroup("g", 0)
    for name in names:
        group.add(
            Member(
                name,
                instance_id=f"i-{name}",
                client_id="c",
                client_host="/h",
                rebalance_timeout_ms=1_000,
                session_timeout_ms=1_000,
                protocols=(("range", b""),),
            )
        )
    return group


def test_however_many_protocols_two_members_name_their_common_one_is_found() -> None:
    driver = Driver()
    first = tuple((f"a{n}", b"") for n in range(50_000))
    driver.join("g", version=3, protocols=(*first, ("both", b"")))
    second = tuple((f"b{n}", b"") for n in range(50_000))
    token = driver.join("g", version=3, protocols=(*second, ("both", b"")))
    driver.advance(9_000)
    assert driver.answers[token].protocol_name == "both"
    assert driver.answers[driver.join("g", version=3, protocols=second)].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_what_all_members_support_follows_who_comes_changes_and_goes() -> None:
    both, one, other = (("x", b""), ("y", b"")), (("x", b""),), (("y", b""),)
    driver = Driver()
    first, _ = driver.join_twice("g", protocols=both)
    second, _ = driver.join_twice("g", protocols=both)
    driver.advance(9_000)

    def may_join(protocols: tuple[tuple[str, bytes], ...]) -> bool:
        return bool(driver.answers[driver.join("g", protocols=protocols)].error_code == ErrorCode.MEMBER_ID_REQUIRED)

    assert may_join(one) and may_join(other)
    driver.join("g", second, protocols=other)
    assert not may_join(one) and may_join(other)
    driver.leave("g", (second, None))
    assert may_join(one) and may_join(other)
    driver.join("g", first, protocols=one)
    assert may_join(one) and not may_join(other)


def test_a_move_that_is_not_in_the_table_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        ClassicGroup("g", 0).move(GroupState.STABLE, 0, "no")


def test_every_state_has_its_moves_and_death_is_final() -> None:
    assert MOVES.keys() == set(GroupState)
    assert MOVES[GroupState.DEAD] == frozenset()
    assert all(GroupState.DEAD in moves for state, moves in MOVES.items() if state is not GroupState.DEAD)


def test_the_first_member_leads_and_the_next_one_follows_when_it_goes() -> None:
    group = group_of("a", "b")
    assert group.leader == "a"
    group.remove("a")
    assert (group.leader, group.static) == ("b", {"i-b": "b"})
    group.remove("b")
    assert group.leader is None
    group.check()


def test_a_replaced_static_member_keeps_its_place_and_its_lead() -> None:
    group = group_of("a", "b")
    group.pending_sync = {"a": None}
    group.replace_static("i-a", "a2")
    assert (list(group.members), group.leader, group.pending_sync) == (["a2", "b"], "a2", {"a2": None})
    assert group.static == {"i-a": "a2", "i-b": "b"}


def test_generations_begin_again_at_one_after_the_largest() -> None:
    group = group_of()
    group.generation = 2_147_483_647
    group.move(GroupState.PREPARING_REBALANCE, 0, "test")
    group.next_generation(0)
    assert group.generation == 1
