"""Topics: the list, sizes of the rows that are visible, one topic with its partitions, settings, groups and producers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidelog.client.admin import replicas, share_groups
from tidelog.client.admin.results import ResourceType
from tidelog.console.access.rights import About, Right
from tidelog.console.asking.configs import settings
from tidelog.console.asking.groups import EMPTY_STATES, SHARE, STREAMS, Listed, Progress, committed, described
from tidelog.console.asking.many_groups import committed_of
from tidelog.console.asking.overview import TopicState, overview
from tidelog.console.asking.producers import producers
from tidelog.console.asking.sizes import leader_bytes
from tidelog.console.reading.fetching import Bounds, bounds
from tidelog.console.web.answers import Answer
from tidelog.console.web.clusters import Cluster
from tidelog.console.web.context import Context
from tidelog.console.web.problems import Problem, error_text
from tidelog.console.web.routing import Route
from tidelog.console.web.values import Param, flag, number, text, topic_name
from tidelog.model.ids import uuid_to_text

MOST_ROWS: Final = 20_000
MOST_FACTS: Final = 50
MOST_GROUPS: Final = 500
AT_ONCE: Final = 20
FACTS_MS: Final = 5_000
_GROUP: Final = "group "


async def topics(context: Context) -> Answer:
    """The topics that the user may see, by name."""
    there, at_ms = await context.cluster.overview()
    wanted, internal = context.query["filter"].casefold(), context.query["internal"]
    names = [
        topic
        for topic in there.topics.values()
        if (internal or not topic.internal) and wanted in topic.name.casefold() and context.sees(About.TOPIC, topic.name)
    ]
    page, following = paged(names, context.query["after"], context.query["limit"], lambda topic: topic.name)
    rows = [
        {
            "name": topic.name,
            "partitions": len(topic.partitions),
            "replication": topic.replication,
            "internal": topic.internal,
            "unclean": topic.unclean,
        }
        for topic in page
    ]
    return Answer({"rows": rows, "total": len(names), "next": following}, at_ms)


def paged(rows: Sequence[Any], after: str, limit: int, name: Any) -> tuple[Sequence[Any], str | None]:
    """The rows behind the name ``after``, and the name to go on from; the rows are in the order of their names."""
    begin = 0
    if after:
        while begin < len(rows) and name(rows[begin]) <= after:
            begin += 1
    page = rows[begin : begin + limit]
    return page, name(page[-1]) if page and begin + limit < len(rows) else None


async def facts(context: Context) -> Answer:
    """Records and bytes of some topics."""
    cluster = context.cluster
    seen = [name for name in dict.fromkeys(context.query["name"]) if context.sees(About.TOPIC, name)]
    kept = await cluster.shared.get(("topics", *seen), FACTS_MS, lambda: cluster.run(overview(seen)))
    there, at_ms = kept.value, kept.at_ms
    names = [name for name in seen if name in there.topics]
    limits = await partition_bounds(cluster, [there.topics[name] for name in names])
    sizes = await _sizes(cluster, [there.topics[name] for name in names])
    rows = [
        {
            "name": name,
            "records": records_text(limits, there.topics[name]),
            "bytes": _bytes_text(sizes.get(name)),
            "error": there.topics[name].error,
        }
        for name in names
    ]
    return Answer(rows, at_ms)


async def _sizes(cluster: Cluster, topics: Sequence[TopicState]) -> Mapping[str, Mapping[int, int]]:
    """Bytes of the partitions of these topics, by topic; shared for some seconds."""
    key = ("sizes", *(each.name for each in topics))
    kept = await cluster.shared.get(key, FACTS_MS, lambda: cluster.run(leader_bytes(topics)))
    found: dict[str, dict[int, int]] = {}
    for (name, index), size in kept.value.items():
        found.setdefault(name, {})[index] = size
    return found


def _bytes_text(sizes: Mapping[int, int] | None) -> str | None:
    """All of them together; None where no broker said."""
    return str(sum(sizes.values())) if sizes else None


async def partition_bounds(cluster: Cluster, wanted: Sequence[TopicState]) -> Mapping[tuple[str, int], Bounds]:
    """The bounds of every partition of these topics, shared for some seconds."""
    key = ("bounds", *(topic.name for topic in wanted))
    partitions = [(topic.name, part.index) for topic in wanted for part in topic.partitions]
    leaders = {(topic.name, part.index): part.leader for topic in wanted for part in topic.partitions if part.leader is not None}
    kept = await cluster.shared.get(key, FACTS_MS, lambda: cluster.run(bounds(partitions, leaders)))
    found: Mapping[tuple[str, int], Bounds] = kept.value
    return found


def records_text(limits: Mapping[tuple[str, int], Bounds], topic: TopicState) -> str | None:
    """The records between start and end, all partitions together; None where one cannot be asked."""
    each = [limits.get((topic.name, part.index), Bounds()) for part in topic.partitions]
    if any(one.end is None for one in each):
        return None
    return str(sum((one.end or 0) - (one.start or 0) for one in each))


async def topic(context: Context) -> Answer:
    """One topic with its partitions."""
    cluster, name = context.cluster, context.segments["t"]
    found, at_ms = await cluster.topic(name)
    partial: list[tuple[str, str]] = [(name, found.error)] if found.error else []
    limits = await partition_bounds(cluster, [found])
    partial += [(f"{name}-{at[1]}", one.error) for at, one in limits.items() if one.error]
    sizes: Mapping[int, int] | None = None
    moving: list[dict[str, Any]] = []
    try:
        sizes = (await _sizes(cluster, [found])).get(name)
        under_way = await cluster.shared.get("moves", FACTS_MS, lambda: cluster.run(replicas.reassignments()))
        moving = [
            {"partition": at[1], "adding": list(each.adding), "removing": list(each.removing)}
            for at, each in sorted(under_way.value.items())
            if at[0] == name
        ]
    except Exception as error:
        partial.append(("disks and moves", error_text(error)))
    rows = [
        {
            "partition": part.index,
            "leader": part.leader,
            "leader_epoch": part.leader_epoch,
            "replicas": list(part.replicas),
            "in_sync": list(part.in_sync),
            "offline": list(part.offline),
            **_bounds_row(limits.get((name, part.index), Bounds())),
            "bytes": None if sizes is None or part.index not in sizes else str(sizes[part.index]),
        }
        for part in found.partitions
    ]
    data = {
        "name": name,
        "topic_id": uuid_to_text(found.topic_id),
        "internal": found.internal,
        "may": context.may(About.TOPIC, name),
        "masked": context.access.is_masked(cluster.id, name),
        "records": records_text(limits, found),
        "bytes": _bytes_text(sizes),
        "partitions": rows,
        "moves": moving,
    }
    return Answer(data, at_ms, tuple(partial))


def _bounds_row(found: Bounds) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in _named(found)}


def _named(found: Bounds) -> tuple[tuple[str, int | None], ...]:
    return ("start", found.start), ("end", found.end), ("stable", found.stable)


async def topic_config(context: Context) -> list[dict[str, Any]]:
    """The settings of a topic."""
    return [each.as_json() for each in await context.cluster.run(settings(ResourceType.TOPIC, context.segments["t"]))]


async def topic_groups(context: Context) -> Answer:
    """The groups with offsets or members on a topic."""
    cluster, name = context.cluster, context.segments["t"]
    kept = await cluster.shared.get(("groups of", name), FACTS_MS, lambda: _groups_of(cluster, name))
    rows, partial = kept.value
    shown = tuple(
        (what, error) for what, error in partial if not what.startswith(_GROUP) or context.sees(About.GROUP, what[len(_GROUP) :])
    )
    return Answer([row for row in rows if context.sees(About.GROUP, row["id"])], kept.at_ms, shown)


async def _groups_of(cluster: Cluster, topic: str) -> tuple[list[dict[str, Any]], tuple[tuple[str, str], ...]]:
    answer = await cluster.groups()
    listed = list(answer.data.values())
    partial = list(answer.partial)
    turns = asyncio.Semaphore(AT_ONCE)
    there, _ = await cluster.topic(topic)
    limits = await partition_bounds(cluster, [there])
    indexes = [part.index for part in there.partitions]
    offsets = await cluster.run(committed_of(listed, topic, indexes))
    # Whether a group without offsets reads the topic, its members say; those have to be asked one by one.
    alone = [each for each in listed if each.group_id not in offsets or not (offsets[each.group_id] or _has_no_members(each))]
    if len(alone) > MOST_GROUPS:
        partial.append(
            ("groups", f"of {len(alone)} groups without offsets here, only {MOST_GROUPS} were asked for their members")
        )

    async def ask(found: Listed) -> dict[str, Any] | None:
        async with turns:
            try:
                lag, here = await _lag_on(cluster, found, topic, indexes, limits)
            except Exception as error:
                partial.append((f"{_GROUP}{found.group_id}", error_text(error)))
                return None
        return _group_row(found, lag) if here else None

    asked = await asyncio.gather(*(ask(each) for each in alone[:MOST_GROUPS]))
    rows = [row for row in asked if row is not None]
    rows += [_group_row(each, _lag_of(offsets[each.group_id], limits)) for each in listed if offsets.get(each.group_id)]
    return sorted(rows, key=lambda row: str(row["id"])), tuple(partial)


def _group_row(found: Listed, lag: str | None) -> dict[str, Any]:
    return {"id": found.group_id, "type": found.kind, "state": found.state, "lag": lag}


def _has_no_members(found: Listed) -> bool:
    """Or none that can be asked which partitions it reads."""
    return found.kind == STREAMS or found.state in EMPTY_STATES


def _lag_of(offsets: Mapping[tuple[str, int], int], limits: Mapping[tuple[str, int], Bounds]) -> str | None:
    lags = [Progress(offset, limits.get(at, Bounds())).lag for at, offset in offsets.items()]
    counted = [lag for lag in lags if lag is not None]
    return str(sum(counted)) if counted else None


async def _lag_on(
    cluster: Cluster, found: Listed, topic: str, indexes: list[int], limits: Mapping[tuple[str, int], Bounds]
) -> tuple[str | None, bool]:
    """The lag of a group on a topic, and whether it has anything to do with it: offsets, or members that read it."""
    if found.kind == SHARE:
        starts = await cluster.run(share_groups.offsets(found.group_id))
        own = [each for at, each in starts.items() if at[0] == topic]
        known = [each.lag for each in own if each.lag is not None]
        return str(sum(known)) if known else None, bool(own)
    offsets = await cluster.run(committed(found.group_id, topic, indexes))
    if offsets:
        return _lag_of(offsets, limits), True
    if _has_no_members(found):
        return None, False
    group = await cluster.run(described(found.group_id, found.kind))
    return None, any(at[0] == topic for member in group.members for at in member.assignment)


async def topic_producers(context: Context) -> Answer:
    """The producers that a topic's leaders know."""
    name = context.segments["t"]
    await context.cluster.topic(name)
    rows, failed = await context.cluster.run(producers(name))
    return Answer(rows, None, tuple(failed))


async def known_topic(context: Context) -> TopicState:
    """The topic of the path. Problem (404)."""
    found, _ = await context.cluster.topic(context.segments["t"])
    if found.error:
        raise Problem(502, f"topic {found.name}: {found.error}")
    return found


_TOPICS: Final = "clusters/{c}/topics"
_ONE: Final = _TOPICS + "/{t}"
ROUTES: Final = (
    Route(
        "GET",
        _TOPICS,
        topics,
        Right.VIEW,
        query={
            "internal": Param(flag, False),
            "filter": Param(text(249), ""),
            "limit": Param(number(1, MOST_ROWS), MOST_ROWS),
            "after": Param(text(249), ""),
        },
    ),
    Route(
        "GET",
        _TOPICS + "/facts",
        facts,
        Right.VIEW,
        query={"name": Param(topic_name, many=True, most=MOST_FACTS, required=True)},
    ),
    Route("GET", _ONE, topic, Right.VIEW, About.TOPIC, "t"),
    Route("GET", _ONE + "/config", topic_config, Right.VIEW, About.TOPIC, "t"),
    Route("GET", _ONE + "/groups", topic_groups, Right.VIEW, About.TOPIC, "t"),
    Route("GET", _ONE + "/producers", topic_producers, Right.VIEW, About.TOPIC, "t"),
)
