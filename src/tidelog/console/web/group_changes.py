"""Changes of groups: offsets moved, offsets of a topic removed, a group deleted. Each has a preview."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tidelog.client.admin import groups as group_calls
from tidelog.client.admin import share_groups
from tidelog.client.calls import Partition
from tidelog.console.access.rights import About, Right
from tidelog.console.asking.groups import EMPTY_STATES, SHARE, GroupSnapshot, MemberState
from tidelog.console.asking.overview import Overview
from tidelog.console.asking.plans import Plan, PlanRow
from tidelog.console.asking.resets import EARLIEST, KINDS, LATEST, TIME, Move, Target, moves
from tidelog.console.reading.fetching import bounds, positions_at
from tidelog.console.web.clusters import Cluster
from tidelog.console.web.context import Context
from tidelog.console.web.group_pages import MAX_GROUP_ID, snapshot_of
from tidelog.console.web.problems import Problem
from tidelog.console.web.routing import Route
from tidelog.console.web.values import MAX_LONG, Param, fields, flag, listed, number, one_of, optional, text, topic_name
from tidelog.model.errors import KafkaError

MOST_TOPICS: Final = 1000
SHOWN_MEMBERS: Final = 5
OF_SHARE_GROUPS: Final = (EARLIEST, LATEST, TIME)


async def reset(context: Context) -> dict[str, Any]:
    """Move offsets. A group must have no members; the preview says who is alive."""
    cluster, body = context.cluster, context.body
    for each in body["topics"] or ():
        context.demand(Right.VIEW, About.TOPIC, each["topic"])  # the preview shows where its log begins and ends
    found = await _fresh(context)
    kind = found.group.kind
    target = _target(body["to"], kind)
    there, _ = await cluster.overview()
    before = _chosen(found, body["topics"], there)
    limits = await cluster.run(bounds(before))
    by_time = await cluster.run(positions_at(before, target.value)) if target.kind == TIME else {}
    planned = moves(target, before, limits, by_time)
    wanted = {move.at: move.after for move in planned if move.after is not None}
    if not wanted:
        raise Problem(409, f"no offset of {found.group.group_id} can be moved so" + _first_problem(planned))
    alive = _alive(found.group.members) if found.group.state not in EMPTY_STATES else ()
    failed: tuple[tuple[str, str], ...] = ()
    if not context.dry_run:
        if alive:
            raise Problem(409, f"the group has members, stop them first: {', '.join(alive)}")
        failed = _errors(await _moved(cluster, found, wanted))
    plan = Plan(
        f"Reset offsets of {found.group.group_id}",
        tuple(move.row() for move in planned),
        warnings=tuple(f"{each} is alive: the reset is refused until it stops" for each in alive),
        command=cluster.commands.reset(kind, found.group.group_id, _words(body["topics"]), target.flags()),
        failed=failed,
    )
    return context.result(plan)


async def _moved(cluster: Cluster, found: GroupSnapshot, wanted: Mapping[Partition, int]) -> dict[Partition, KafkaError]:
    if found.group.kind == SHARE:
        return await cluster.run(share_groups.alter_offsets(found.group.group_id, wanted))
    return await cluster.run(group_calls.commit(found.group.group_id, wanted))


def _target(found: Mapping[str, Any], kind: str) -> Target:
    name, value = found["kind"], found["value"]
    if kind == SHARE and name not in OF_SHARE_GROUPS:
        raise Problem(400, f"offsets of share groups go to {', '.join(OF_SHARE_GROUPS)}")
    if name in (EARLIEST, LATEST):
        return Target(name)
    if value is None:
        raise Problem(400, f"to: {name} needs a value")
    if name != "shift" and value < 0:
        raise Problem(400, f"to: {name} cannot be negative")
    return Target(name, value)


def _chosen(found: GroupSnapshot, topics: list[dict[str, Any]] | None, there: Overview) -> dict[Partition, int | None]:
    """The committed offset of each partition that was chosen; without a choice, of all with offsets."""
    committed = {at: each.committed for at, each in found.progress.items()}
    if topics is None:
        before: dict[Partition, int | None] = {at: offset for at, offset in committed.items() if offset is not None}
        if not before:
            raise Problem(409, f"{found.group.group_id} has no offsets: choose topics")
        return before
    chosen: dict[Partition, int | None] = {}
    for each in topics:
        known = [part.index for part in there.topic(each["topic"]).partitions]
        for index in known if each["partitions"] is None else each["partitions"]:
            if index not in known:
                raise Problem(400, f"{each['topic']} has no partition {index}")
            at = (each["topic"], index)
            chosen[at] = committed.get(at)
    return chosen


def _words(topics: list[dict[str, Any]] | None) -> list[str]:
    """As ``--topic`` takes them."""
    return [
        each["topic"] + ("" if each["partitions"] is None else ":" + ",".join(map(str, each["partitions"])))
        for each in topics or ()
    ]


def _first_problem(planned: list[Move]) -> str:
    found = next((move for move in planned if move.problem), None)
    return "" if found is None else f": {found.at[0]}-{found.at[1]}: {found.problem}"


def _alive(members: tuple[MemberState, ...]) -> tuple[str, ...]:
    names = [f"{each.client_id or each.member_id} at {each.host.lstrip('/')}" for each in members]
    return (*names[:SHOWN_MEMBERS], f"{len(names) - SHOWN_MEMBERS} more") if len(names) > SHOWN_MEMBERS else tuple(names)


async def forget(context: Context) -> dict[str, Any]:
    """Remove the offsets of one topic."""
    cluster, topic = context.cluster, context.body["topic"]
    found = await _fresh(context)
    group_id, kind = found.group.group_id, found.group.kind
    rows = {at: each for at, each in found.progress.items() if at[0] == topic and each.committed is not None}
    if not rows:
        raise Problem(409, f"{group_id} has no offsets of {topic}")
    context.confirmed(topic)
    failed: tuple[tuple[str, str], ...] = ()
    decides = "share.auto.offset.reset" if kind == SHARE else "auto.offset.reset"
    if not context.dry_run:
        if kind == SHARE:
            wrong = await cluster.run(share_groups.delete_offsets(group_id, [topic]))
            failed = tuple((name, str(error)) for name, error in wrong.items())
        else:
            failed = _errors(await cluster.run(group_calls.delete_offsets(group_id, list(rows))))
    plan = Plan(
        f"Remove offsets of {topic} from {group_id}",
        tuple(PlanRow(f"{at[0]}-{at[1]}", str(each.committed), None) for at, each in sorted(rows.items())),
        (f"{len(rows)} committed offsets: {decides} decides where the group begins again",),
        command=cluster.commands.forget_offsets(kind, group_id, topic),
        confirm=topic,
        failed=failed,
    )
    return context.result(plan)


async def delete(context: Context) -> dict[str, Any]:
    """Delete a group with its offsets; it must have no members."""
    cluster = context.cluster
    found = await _fresh(context)
    group_id = found.group.group_id
    context.confirmed(group_id)
    alive = _alive(found.group.members) if found.group.state not in EMPTY_STATES else ()
    if not context.dry_run:
        await cluster.run(group_calls.delete(group_id))
    offsets = sum(each.committed is not None for each in found.progress.values())
    plan = Plan(
        f"Delete group {group_id}",
        (PlanRow(group_id, found.group.state, "gone"),),
        (f"{offsets} committed offsets",) if offsets else (),
        tuple(f"{each} is alive: the deletion is refused until it stops" for each in alive),
        cluster.commands.delete_group(found.group.kind, group_id),
        group_id,
    )
    return context.result(plan)


async def _fresh(context: Context) -> GroupSnapshot:
    """The group as it is now, not as it was some seconds ago."""
    context.cluster.shared.forget()
    return (await snapshot_of(context.cluster, context.body["id"]))[0]


def _errors(failed: Mapping[Partition, KafkaError]) -> tuple[tuple[str, str], ...]:
    return tuple((f"{topic}-{index}", str(error)) for (topic, index), error in sorted(failed.items(), key=lambda item: item[0]))


_GROUP: Final = "clusters/{c}/group/"
_BODY: Final = {
    "id": Param(text(MAX_GROUP_ID), required=True),
    "dry_run": Param(flag, required=True),
}
_CONFIRM: Final = {"confirm": Param(optional(text(MAX_GROUP_ID)), None)}
_TOPICS: Final = optional(
    listed(
        fields(
            topic=Param(topic_name, required=True),
            partitions=Param(optional(listed(number(0, 1_000_000), 10_000, least=1)), None),
        ),
        MOST_TOPICS,
        least=1,
    )
)
ROUTES: Final = (
    Route(
        "POST",
        _GROUP + "reset",
        reset,
        Right.CHANGE,
        About.GROUP,
        "id",
        body={
            **_BODY,
            "to": Param(
                fields(kind=Param(one_of(KINDS), required=True), value=Param(optional(number(-MAX_LONG)), None)), required=True
            ),
            "topics": Param(_TOPICS, None),
        },
        largest_body=1 << 20,
    ),
    Route(
        "POST",
        _GROUP + "forget",
        forget,
        Right.CHANGE,
        About.GROUP,
        "id",
        body={**_BODY, **_CONFIRM, "topic": Param(topic_name, required=True)},
    ),
    Route("POST", _GROUP + "delete", delete, Right.CHANGE, About.GROUP, "id", body={**_BODY, **_CONFIRM}),
)
