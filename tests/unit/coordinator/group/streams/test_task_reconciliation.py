"""The table of a member's states: what each step makes of current tasks, target, reported tasks and what others hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from tidelog.coordinator.group.streams.owned_tasks import NOTHING_OWNED, OwnedTasks
from tidelog.coordinator.group.streams.streams_group import MemberState, StreamsMember
from tidelog.coordinator.group.streams.task_holders import TaskHolders
from tidelog.coordinator.group.streams.task_reconciliation import Target, reconcile
from tidelog.coordinator.group.streams.tasks import NO_TASKS, Tasks
from tidelog.model.errors import ErrorCode, KafkaError

STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED_TASKS, MemberState.UNRELEASED_TASKS
Role = Mapping[str, list[int]]
NONE: Role = {}
NO_EPOCHS: Mapping[str, Mapping[int, int]] = {}


def tasks(active: Role = NONE, standby: Role = NONE, warmup: Role = NONE) -> Tasks:
    return Tasks(*({key: frozenset(found) for key, found in role.items()} for role in (active, standby, warmup)))


def owned(epochs: Mapping[str, Mapping[int, int]] = NO_EPOCHS, standby: Role = NONE, warmup: Role = NONE) -> OwnedTasks:
    plain = tasks({}, standby, warmup)
    return OwnedTasks({key: dict(found) for key, found in epochs.items()}, plain.standby, plain.warmup)


def member(epoch: int, state: MemberState, assigned: OwnedTasks, revoking: OwnedTasks = NOTHING_OWNED) -> StreamsMember:
    return StreamsMember(
        "m", process_id="p", epoch=epoch, previous_epoch=epoch, state=state, assigned=assigned, revoking=revoking
    )


def held(*others: tuple[str, str, Tasks], own: StreamsMember | None = None) -> TaskHolders:
    holders = TaskHolders()
    for name, process, theirs in others:
        holders.add(name, process, theirs)
    if own is not None:
        holders.add(own.member_id, own.process_id, own.assigned.plain(), own.revoking.plain())
    return holders


class Case(NamedTuple):
    what: str
    before: StreamsMember
    target: Tasks
    after: StreamsMember
    reported: Tasks | None = None
    epoch: int = 2
    others: tuple[tuple[str, str, Tasks], ...] = ()


def to(
    before: StreamsMember, epoch: int, state: MemberState, assigned: OwnedTasks, revoking: OwnedTasks = NOTHING_OWNED
) -> StreamsMember:
    return StreamsMember(
        "m", process_id="p", epoch=epoch, previous_epoch=before.epoch, state=state, assigned=assigned, revoking=revoking
    )


NEW = member(0, STABLE, owned())
TWO = member(1, STABLE, owned({"0": {0: 1, 1: 1}}))
REVOKING = member(1, UNREVOKED, owned({"0": {0: 1}}), owned({"0": {1: 1}}))
WAITING = member(2, UNRELEASED, owned({"0": {0: 1}}))
STANDBY = member(1, STABLE, owned(standby={"0": [0]}))

TABLE = (
    Case("a new member takes free tasks of all roles", NEW, tasks({"0": [0]}, {"0": [1]}, {"0": [2]}),
         to(NEW, 2, STABLE, owned({"0": {0: 2}}, {"0": [1]}, {"0": [2]}))),
    Case("a member at the target stays as it is", TWO, tasks({"0": [0]}), TWO, epoch=1),
    Case("kept tasks keep their epochs", TWO, tasks({"0": [0, 1, 2]}), to(TWO, 2, STABLE, owned({"0": {0: 1, 1: 1, 2: 2}}))),
    Case("tasks to give up keep the epoch", TWO, tasks({"0": [0]}),
         to(TWO, 1, UNREVOKED, owned({"0": {0: 1}}), owned({"0": {1: 1}}))),
    Case("what is reported gone is gone at once", TWO, tasks({"0": [0]}), to(TWO, 2, STABLE, owned({"0": {0: 1}})),
         reported=tasks({"0": [0]})),
    Case("without a report the member still has them", REVOKING, tasks({"0": [0]}), REVOKING),
    Case("while it reports them it has them", REVOKING, tasks({"0": [0]}), REVOKING, reported=tasks({"0": [0, 1]})),
    Case("a report without them moves to the target", REVOKING, tasks({"0": [0, 2]}),
         to(REVOKING, 5, STABLE, owned({"0": {0: 1, 2: 5}})), reported=tasks({"0": [0]}), epoch=5),
    Case("another target revokes again, one epoch later", REVOKING, tasks(),
         to(REVOKING, 2, UNREVOKED, owned(), owned({"0": {0: 1}})), reported=tasks({"0": [0]}), epoch=5),
    Case("an active task that any member has is waited for", NEW, tasks({"0": [0, 1]}),
         to(NEW, 2, UNRELEASED, owned({"0": {0: 2}})), others=(("o", "other", tasks({"0": [1]})),)),
    Case("a standby elsewhere does not keep the active task", NEW, tasks({"0": [0]}), to(NEW, 2, STABLE, owned({"0": {0: 2}})),
         others=(("o", "other", tasks({}, {"0": [0]})),)),
    Case("a standby in the same process does", NEW, tasks({"0": [0]}), to(NEW, 2, UNRELEASED, owned()),
         others=(("o", "p", tasks({}, {"0": [0]})),)),
    Case("a warm-up in the same process does", NEW, tasks({"0": [0]}), to(NEW, 2, UNRELEASED, owned()),
         others=(("o", "p", tasks({}, {}, {"0": [0]})),)),
    Case("a standby does not wait for an active task elsewhere", NEW, tasks({}, {"0": [0]}),
         to(NEW, 2, STABLE, owned(standby={"0": [0]})), others=(("o", "other", tasks({"0": [0]})),)),
    Case("a standby waits for its own process", NEW, tasks({}, {"0": [0]}), to(NEW, 2, UNRELEASED, owned()),
         others=(("o", "p", tasks({"0": [0]})),)),
    Case("a warm-up waits for its own process", NEW, tasks({}, {}, {"0": [0]}), to(NEW, 2, UNRELEASED, owned()),
         others=(("o", "p", tasks({}, {"0": [0]})),)),
    Case("a waiting member gets what became free", WAITING, tasks({"0": [0, 1]}),
         to(WAITING, 2, STABLE, owned({"0": {0: 1, 1: 2}}))),
    Case("a waiting member follows a newer target", WAITING, tasks({"0": [2]}),
         to(WAITING, 2, UNREVOKED, owned(), owned({"0": {0: 1}})), epoch=3),
    Case("a standby that becomes active is given up first", STANDBY, tasks({"0": [0]}),
         to(STANDBY, 1, UNREVOKED, owned(), owned(standby={"0": [0]}))),
    Case("what the member gave up itself is free with its next heartbeat", STANDBY, tasks({"0": [0]}),
         to(STANDBY, 2, UNRELEASED, owned()), reported=tasks()),
)  # fmt: skip


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.what)
def test_a_step(case: Case) -> None:
    holders = held(*case.others, own=case.before)
    assert reconcile(case.before, Target(case.epoch, case.target, holders), case.reported) == case.after


def test_a_member_in_an_unknown_state_joins_again() -> None:
    strange = member(3, MemberState.read(9), owned({"0": {0: 1}}))
    for reported in (None, tasks({"0": [0]})):
        with pytest.raises(KafkaError) as refused:
            reconcile(strange, Target(4, tasks({"0": [0]}), held()), reported)
        assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert reconcile(strange, Target(4, tasks({"0": [0]}), held()), NO_TASKS).state is STABLE
