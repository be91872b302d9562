"""How a member walks to its target: every state, and what it says that it reads."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer_driver import owned, topic_id
from tidelog.coordinator.group.consumer.consumer_group import ConsumerMember, MemberState
from tidelog.coordinator.group.consumer.reconciliation import Target, reconcile
from tidelog.model.errors import ErrorCode, KafkaError

T = topic_id("t")
STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS


def target(epoch: int, partitions: list[int], *, taken: dict[int, str] | None = None, changed: bool = False,
           subscribed: bool = True) -> Target:  # fmt: skip
    """A target of partitions of ``t``, with those that have an owner."""
    others = taken or {}
    return Target(epoch, owned(t=partitions), frozenset({T}) if subscribed else frozenset(), changed, lambda _, p: others.get(p))


def member(
    state: MemberState = STABLE, epoch: int = 2, assigned: tuple[int, ...] = (), revoking: tuple[int, ...] = ()
) -> ConsumerMember:
    return ConsumerMember(
        "m", epoch=epoch, previous_epoch=1, state=state, topics=("t",),
        assigned={T: dict.fromkeys(assigned, 2)} if assigned else {},
        revoking={T: dict.fromkeys(revoking, 2)} if revoking else {},
    )  # fmt: skip


def parts(found: ConsumerMember) -> tuple[MemberState, int, list[int], list[int]]:
    return found.state, found.epoch, sorted(found.assigned.get(T, {})), sorted(found.revoking.get(T, {}))


def test_a_member_at_its_target_stays_the_same_object() -> None:
    there = member(assigned=(0,))
    assert reconcile(there, target(2, [0]), None) is there


def test_what_is_free_is_taken_at_once_with_the_targets_epoch() -> None:
    found = reconcile(member(assigned=(0,)), target(3, [0, 1]), None)
    assert parts(found) == (STABLE, 3, [0, 1], [])
    assert (found.assigned[T], found.previous_epoch) == ({0: 2, 1: 3}, 2), "what was kept keeps its epoch"


def test_what_has_to_go_goes_first_and_the_epoch_stays() -> None:
    found = reconcile(member(assigned=(0, 1)), target(3, [0, 2]), None)
    assert parts(found) == (UNREVOKED, 2, [0], [1])


def test_a_member_that_does_not_read_it_any_more_goes_on_at_once() -> None:
    found = reconcile(member(assigned=(0, 1)), target(3, [0]), owned(t=[0]))
    assert parts(found) == (STABLE, 3, [0], [])


@pytest.mark.parametrize("reported", [None, owned(t=[1]), owned(t=[0, 1])])
def test_it_waits_until_it_says_that_it_gave_up(reported: dict[bytes, frozenset[int]] | None) -> None:
    waiting = member(UNREVOKED, assigned=(0,), revoking=(1,))
    assert reconcile(waiting, target(3, [0]), reported) is waiting


def test_once_it_gave_up_it_takes_what_is_free_and_waits_for_the_rest() -> None:
    waiting = member(UNREVOKED, assigned=(0,), revoking=(1,))
    found = reconcile(waiting, target(3, [0, 2, 3], taken={2: "other"}), owned(t=[0]))
    assert parts(found) == (UNRELEASED, 3, [0, 3], [])


def test_what_it_was_giving_up_itself_is_free_for_it() -> None:
    waiting = member(UNREVOKED, assigned=(0,), revoking=(1,))
    found = reconcile(waiting, target(4, [0, 1], taken={1: "m"}), owned(t=[0]))
    assert parts(found) == (STABLE, 4, [0, 1], [])


def test_unreleased_partitions_come_when_the_other_has_given_them_up() -> None:
    waiting = member(UNRELEASED, epoch=3, assigned=(0,))
    assert parts(reconcile(waiting, target(3, [0, 1], taken={1: "o"}), None)) == (UNRELEASED, 3, [0], [])
    assert parts(reconcile(waiting, target(3, [0, 1]), None)) == (STABLE, 3, [0, 1], [])


def test_a_topic_that_is_not_subscribed_any_more_goes_before_there_is_a_new_target() -> None:
    found = reconcile(member(assigned=(0, 1)), target(2, [0, 1], changed=True, subscribed=False), None)
    assert parts(found) == (UNREVOKED, 2, [], [0, 1])
    there = reconcile(member(assigned=(0, 1)), target(2, [0, 1], changed=True, subscribed=False), {})
    assert parts(there) == (STABLE, 2, [], []), "it does not read them any more"


def test_a_target_of_a_topic_that_is_not_subscribed_counts_as_none() -> None:
    assert parts(reconcile(member(), target(3, [0], subscribed=False), None)) == (STABLE, 3, [], [])


def test_more_is_given_up_while_something_is_being_given_up() -> None:
    waiting = member(UNREVOKED, assigned=(0,), revoking=(1,))
    found = reconcile(waiting, target(3, [0], changed=True, subscribed=False), None)
    assert parts(found) == (UNREVOKED, 2, [], [0, 1])


def test_a_state_of_a_later_version_makes_the_member_begin_anew() -> None:
    odd = member(MemberState.UNKNOWN, assigned=(0,))
    with pytest.raises(KafkaError, match="newer release") as caught:
        reconcile(odd, target(3, [0]), None)
    assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert parts(reconcile(odd, target(3, [0]), {})) == (STABLE, 3, [0], [])
