"""Groups of all protocols: the list, lag of the rows that are visible, one group with its rates, and why it is stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tidelog.client.admin import share_groups
from tidelog.client.admin.group_results import StreamsMember
from tidelog.client.calls import Partition
from tidelog.console.access.rights import About, Right
from tidelog.console.asking.groups import (
    SHARE,
    STREAMS,
    GroupSnapshot,
    GroupState,
    MemberState,
    Progress,
    by_topic,
    committed,
    snapshot,
)
from tidelog.console.asking.groups import described as group_described
from tidelog.console.asking.many_groups import committed_of, members_of
from tidelog.console.asking.rates import History, Sample
from tidelog.console.causes import diagnose
from tidelog.console.collecting import sample
from tidelog.console.group_facts import GroupFacts
from tidelog.console.group_facts import Sample as GroupSample
from tidelog.console.reading.fetching import Bounds, bounds
from tidelog.console.web.answers import Answer
from tidelog.console.web.clusters import Cluster
from tidelog.console.web.context import Context
from tidelog.console.web.problems import Problem, error_text
from tidelog.console.web.routing import Route
from tidelog.console.web.topic_pages import AT_ONCE, MOST_FACTS, MOST_ROWS, paged
from tidelog.console.web.values import Param, number, text
from tidelog.model.errors import ErrorCode

MAX_GROUP_ID: Final = 32_767
SNAPSHOT_MS: Final = 2_000
LONGEST_WATCH_S: Final = 30

_Facts = tuple[int, Mapping[Partition, int | None], int | None]
"""How many members a group has, its committed offsets, and its lag where the broker counts it (share groups)."""


async def groups(context: Context) -> Answer:
    """The groups that the user may see, by id."""
    answer = await context.cluster.groups()
    wanted = context.query["filter"].casefold()
    rows = [
        each for each in answer.data.values() if wanted in each.group_id.casefold() and context.sees(About.GROUP, each.group_id)
    ]
    page, following = paged(rows, context.query["after"], context.query["limit"], lambda each: each.group_id)
    data = [{"id": each.group_id, "type": each.kind, "state": each.state, "protocol": each.protocol} for each in page]
    return Answer({"rows": data, "total": len(rows), "next": following}, answer.as_of_ms, answer.partial)


async def facts(context: Context) -> Answer:
    """Lag and members of some groups; each coordinator is asked once, and so are the leaders of all their partitions."""
    cluster = context.cluster
    turns = asyncio.Semaphore(AT_ONCE)

    async def look(group_id: str) -> _Facts | Exception:
        async with turns:
            try:
                return await _facts_of(cluster, group_id)
            except Exception as error:
                return error

    ids = [each for each in context.query["id"] if context.sees(About.GROUP, each)]
    together = await _facts_of_many(cluster, ids)
    others = [each for each in ids if each not in together]
    alone = dict(zip(others, await asyncio.gather(*map(look, others)), strict=True))
    looks = {each: together.get(each) or alone[each] for each in ids}
    wanted = sorted({at for each in looks.values() if not isinstance(each, Exception) for at in each[1]})
    limits = await cluster.run(bounds(wanted))
    return Answer([_facts_row(group_id, each, limits) for group_id, each in looks.items()])


async def _facts_of_many(cluster: Cluster, ids: Sequence[str]) -> dict[str, _Facts]:
    """Those groups of the classic and the consumer protocol that could be asked for together."""
    listed = (await cluster.groups()).data
    wanted = [listed[each] for each in ids if each in listed]
    offsets, members = await asyncio.gather(cluster.run(committed_of(wanted)), cluster.run(members_of(wanted)))
    return {each: (members[each], offsets[each], None) for each in ids if each in offsets and each in members}


async def _facts_of(cluster: Cluster, group_id: str) -> _Facts:
    kind = await kind_of(cluster, group_id)
    group = await cluster.run(group_described(group_id, kind))
    if kind == SHARE:
        starts = await cluster.run(share_groups.offsets(group_id))
        known = [each.lag for each in starts.values() if each.lag is not None]
        return len(group.members), {at: each.start_offset for at, each in starts.items()}, sum(known) if known else None
    return len(group.members), await cluster.run(committed(group_id)), None


def _facts_row(
    group_id: str,
    found: _Facts | Exception,
    limits: Mapping[Partition, Bounds],
) -> dict[str, Any]:
    if isinstance(found, Exception):
        return {"id": group_id, "lag": None, "members": None, "topics": None, "error": error_text(found)}
    members, offsets, lag = found
    if lag is None:
        known = [each for at, offset in offsets.items() if (each := Progress(offset, limits[at]).lag) is not None]
        lag = sum(known) if known else None
    return {
        "id": group_id,
        "lag": None if lag is None else str(lag),
        "members": members,
        "topics": len({topic for topic, _ in offsets}),
        "error": None,
    }


async def kind_of(cluster: Cluster, group_id: str) -> str:
    """The type of a group. Problem (404) when no broker lists it."""
    answer = await cluster.groups()
    found = answer.data.get(group_id)
    if found is None:
        missing = "; not every broker answered" if answer.partial else ""
        raise Problem(
            404,
            f"there is no group {group_id}: nothing has joined with this id, and it has no offsets{missing}",
            code=ErrorCode.GROUP_ID_NOT_FOUND,
        )
    return str(found.kind)


async def snapshot_of(cluster: Cluster, group_id: str) -> tuple[GroupSnapshot, int]:
    """A group with its offsets, and when it was asked for; each look is a sample of its history."""
    kind = await kind_of(cluster, group_id)
    kept = await cluster.shared.get(("group", group_id), SNAPSHOT_MS, lambda: cluster.run(snapshot(group_id, kind)))
    found: GroupSnapshot = kept.value
    known = [each for each in found.progress.values() if each.committed is not None and each.bounds.end is not None]
    if known:
        committed = sum(each.committed or 0 for each in known)
        lag = sum(each.lag or 0 for each in known)
        cluster.history(group_id).add(Sample(kept.at_ms, committed, committed + lag))
    return found, kept.at_ms


async def group(context: Context) -> Answer:
    """One group."""
    cluster, group_id = context.cluster, context.query["id"]
    found, at_ms = await snapshot_of(cluster, group_id)
    return Answer({**described(found, cluster.history(group_id)), "may": context.may(About.GROUP, group_id)}, at_ms)


def described(found: GroupSnapshot, history: History) -> dict[str, Any]:
    """A group as its page shows it."""
    state = found.group
    owners = {} if state.kind == STREAMS else {at: each for each in state.members for at in each.assignment}
    rates = history.rates()
    return {
        "id": state.group_id,
        "type": state.kind,
        "state": state.state,
        "assignor": state.assignor,
        "epoch": state.epoch,
        "target_epoch": state.target_epoch,
        "lag": None if found.lag is None else str(found.lag),
        "coordinator": found.coordinator,
        "members": [_member(each) for each in state.members],
        "offsets": [_offset(at, each, owners.get(at)) for at, each in sorted(found.progress.items())],
        "streams": _topology(state) if state.kind == STREAMS else None,
        "rates": None if rates is None else rates.as_json(),
        "history": [
            {"at_ms": str(each.at_ms), "lag": str(each.lag), "committed": str(each.committed), "end": str(each.end)}
            for each in history.samples
        ],
    }


def _member(found: MemberState) -> dict[str, Any]:
    return {
        "id": found.member_id,
        "instance_id": found.instance_id,
        "client_id": found.client_id,
        "host": found.host,
        "epoch": found.epoch,
        "assignment": by_topic(found.assignment),
        "target": None if found.target is None else by_topic(found.target),
        "streams": None if found.streams is None else _thread(found.streams),
    }


def _thread(found: StreamsMember) -> dict[str, Any]:
    """What only members of streams groups have."""
    return {
        "process_id": found.process_id,
        "topology_epoch": found.topology_epoch,
        "classic": found.classic,
        "standby": by_topic(found.assignment.standby),
        "warmup": by_topic(found.assignment.warmup),
        "target_standby": by_topic(found.target.standby),
        "target_warmup": by_topic(found.target.warmup),
    }


def _offset(at: tuple[str, int], found: Progress, owner: MemberState | None) -> dict[str, Any]:
    def shown(value: int | None) -> str | None:
        return None if value is None else str(value)

    return {
        "topic": at[0],
        "partition": at[1],
        "committed": shown(found.committed),
        "start": shown(found.bounds.start),
        "end": shown(found.bounds.end),
        "stable": shown(found.bounds.stable),
        "lag": shown(found.lag),
        "member": None if owner is None else owner.member_id,
        "error": found.bounds.error,
    }


def _topology(state: GroupState) -> Mapping[str, Any]:
    return {
        "topology_epoch": state.topology_epoch,
        "subtopologies": [
            {
                "id": each.subtopology_id,
                "source_topics": list(each.source_topics),
                "repartition_topics": list(each.repartition_source_topics),
                "changelog_topics": list(each.state_changelog_topics),
            }
            for each in state.subtopologies
        ],
    }


async def why(context: Context) -> dict[str, Any]:
    """The verdict of ``tidelog why``: the group is looked at twice, some seconds apart."""
    cluster, group_id = context.cluster, context.query["id"]
    await kind_of(cluster, group_id)
    first = await cluster.run(sample(group_id, context.state.now_ms()))
    if first.coordinator_error is None or first.out_of_reach:
        await asyncio.sleep(context.query["seconds"])
        last = await cluster.run(sample(group_id, context.state.now_ms()))
    else:
        last = replace(first, at_ms=context.state.now_ms())
    first, last = (_of_seen_topics(context, each) for each in (first, last))
    found = await asyncio.to_thread(diagnose, GroupFacts(group_id, first, last))  # it looks for names among all topics
    verdict = dict(found.as_json())
    where = cluster.commands.connection
    for finding in (verdict["primary"], *verdict["contributing"], *verdict["notes"]):
        if finding is not None and finding["command"]:
            finding["command"] += f" {where}"
    return {**verdict, "lag": str(verdict["lag"])}


def _of_seen_topics(context: Context, found: GroupSample) -> GroupSample:
    """The verdict names the topic that is most like a missing one: only of those that the user may see."""
    return replace(found, topics=frozenset(each for each in found.topics if context.sees(About.TOPIC, each)))


_ID: Final = {"id": Param(text(MAX_GROUP_ID, least=0), required=True)}
_GROUPS: Final = "clusters/{c}/groups"
_GROUP: Final = "clusters/{c}/group"
ROUTES: Final = (
    Route(
        "GET",
        _GROUPS,
        groups,
        Right.VIEW,
        query={
            "filter": Param(text(1000), ""),
            "limit": Param(number(1, MOST_ROWS), MOST_ROWS),
            "after": Param(text(MAX_GROUP_ID), ""),
        },
    ),
    Route(
        "GET",
        _GROUPS + "/facts",
        facts,
        Right.VIEW,
        query={"id": Param(text(MAX_GROUP_ID), many=True, most=MOST_FACTS, required=True)},
    ),
    Route("GET", _GROUP, group, Right.VIEW, About.GROUP, "id", query=_ID),
    Route(
        "GET",
        _GROUP + "/why",
        why,
        Right.VIEW,
        About.GROUP,
        "id",
        query={**_ID, "seconds": Param(number(1, LONGEST_WATCH_S), 6)},
    ),
)
