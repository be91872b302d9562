"""Clusters, their health, brokers, disks, quorum, features; and the search over all names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from functools import partial as partial_of
from typing import Any, Final, TypeVar

from tidelog.client.admin import cluster as cluster_calls
from tidelog.client.admin import replicas, transactions
from tidelog.client.admin.results import LogDir, QuorumDescription, ResourceType, TransactionDescription
from tidelog.client.connection import UnsupportedByBroker
from tidelog.console.access.rights import About, Right
from tidelog.console.asking.configs import min_in_sync, settings
from tidelog.console.asking.health import Facts, Trouble, troubles
from tidelog.console.asking.overview import Overview
from tidelog.console.asking.searching import Named, found, matches
from tidelog.console.web.answers import Answer
from tidelog.console.web.clusters import Cluster
from tidelog.console.web.context import Context
from tidelog.console.web.problems import Problem, error_text
from tidelog.console.web.routing import Route
from tidelog.console.web.values import Param, number, text

T = TypeVar("T")
SLOW_MS: Final = 15_000
QUICK_MS: Final = 3_000
MOST_TRANSACTIONS: Final = 50
MOST_TOPICS_ASKED: Final = 200
LARGEST_SHOWN: Final = 20


async def clusters(context: Context) -> list[dict[str, Any]]:
    """Every cluster that the user may see, those in trouble first."""
    seen = [each for each in context.state.clusters.values() if context.access.sees(each.id)]
    rows = await asyncio.gather(*(_cluster_row(each) for each in seen))
    return sorted(rows, key=lambda row: (row["reachable"], -(row["unclean"] or 0), row["id"]))


async def _cluster_row(cluster: Cluster) -> dict[str, Any]:
    row: dict[str, Any] = {"id": cluster.id, "bootstrap": cluster.bootstrap, "reachable": False, "error": None}
    counts = dict.fromkeys(("cluster_id", "brokers", "topics", "partitions", "unclean", "groups"))
    try:
        there, _ = await cluster.overview()
        groups = await cluster.groups()
    except Exception as error:
        return {**row, **counts, "error": error_text(error)}
    return {
        **row,
        "reachable": True,
        "cluster_id": there.cluster_id,
        "brokers": len(there.brokers),
        "topics": len(there.topics),
        "partitions": there.partition_count,
        "unclean": sum(topic.unclean for topic in there.topics.values()),
        "groups": len(groups.data),
    }


# -- health -----------------------------------------------------------------------------------------------------------------


async def health(context: Context) -> Answer:
    """What is unclean, worst first; topics that the user may not see are left out by name, not from the counts."""
    cluster = context.cluster
    kept = await cluster.shared.get("health", QUICK_MS, lambda: _health(cluster, context))
    there, asked_ms, controller, groups, (unclean, fine), partial = kept.value
    return Answer(
        {
            "cluster_id": there.cluster_id,
            "controller": controller,
            "brokers": len(there.brokers),
            "topics": len(there.topics),
            "partitions": there.partition_count,
            "groups": groups,
            "findings": [each.as_json(partial_of(_with_connection, cluster)) for each in unclean if _shown(context, each)],
            "fine": fine,
        },
        asked_ms,
        partial,
    )


def _shown(context: Context, trouble: Trouble) -> bool:
    """Findings name topics: those go to users who may see the cluster's own pages."""
    if context.sees(About.CLUSTER):
        return True
    page, name = trouble.link or ("", "")
    return page == "topic" and len(trouble.evidence) == 1 and context.sees(About.TOPIC, name)


def _with_connection(cluster: Cluster, command: str) -> str:
    _, tool, rest = command.split(" ", 2)
    return f"tidelog {tool} {cluster.commands.connection} {rest}"


async def _health(
    cluster: Cluster, context: Context
) -> tuple[Overview, int, int | None, int, tuple[list[Trouble], list[str]], tuple[tuple[str, str], ...]]:
    there, asked_ms = await cluster.overview()
    partial: list[tuple[str, str]] = []
    short = sorted({topic.name for topic in there.topics.values() if topic.unclean})[:MOST_TOPICS_ASKED]
    dirs, without = await disks(cluster)
    least = await _or_none(cluster.run(min_in_sync(short)), "settings", partial)
    quorum = await _or_none(cluster.run(cluster_calls.quorum()), "quorum", partial)
    moves = await _or_none(cluster.run(replicas.reassignments()), "reassignments", partial)
    described = await _or_none(cluster.run(cluster_calls.describe()), "controller", partial)
    opened = await _or_none(_open_transactions(cluster), "transactions", partial)
    groups = await cluster.groups()
    facts = Facts(context.state.now_ms(), there, least or {}, dirs, quorum, tuple(opened or ()), moves or {})
    controller = described.controller_id if described is not None else None
    judged = await asyncio.to_thread(troubles, facts)
    return there, asked_ms, controller, len(groups.data), judged, (*partial, *without, *groups.partial)


async def _or_none(asked: Awaitable[T], what: str, partial: list[tuple[str, str]]) -> T | None:
    """The answer; or None, and why it is missing."""
    try:
        return await asked
    except Exception as error:
        partial.append((what, error_text(error)))
        return None


async def _open_transactions(cluster: Cluster) -> list[TransactionDescription]:
    """The transactions that are under way, at most fifty."""
    try:
        listed = await cluster.run(transactions.list_all())
    except UnsupportedByBroker:
        return []
    names = [each.transactional_id for each in listed if each.state in ("Ongoing", "PrepareCommit", "PrepareAbort")]
    rows = await asyncio.gather(
        *(cluster.run(transactions.describe(name)) for name in names[:MOST_TRANSACTIONS]), return_exceptions=True
    )
    return [row for row in rows if isinstance(row, TransactionDescription)]


# -- brokers and disks ------------------------------------------------------------------------------------------------------


async def disks(cluster: Cluster) -> tuple[Mapping[int, list[LogDir]], tuple[tuple[str, str], ...]]:
    """The log dirs of each broker that answers, and what is wrong with the others."""

    async def ask() -> tuple[dict[int, list[LogDir]], tuple[tuple[str, str], ...]]:
        return await cluster.each(await cluster.broker_ids(), lambda broker: cluster.run_aside(replicas.log_dirs(broker)))

    kept = await cluster.shared.get("log dirs", SLOW_MS, ask)
    found: tuple[dict[int, list[LogDir]], tuple[tuple[str, str], ...]] = kept.value
    return found


async def brokers(context: Context) -> Answer:
    """A row for each broker."""
    cluster = context.cluster
    there, at_ms = await cluster.overview()
    dirs, partial = await disks(cluster)
    described = await cluster.shared.get("nodes", QUICK_MS, lambda: cluster.run(cluster_calls.describe(include_fenced=False)))
    errors = dict(partial)
    leaders: dict[int, int] = {}
    held: dict[int, int] = {}
    behind: dict[int, int] = {}
    for _, part in there.each_partition():
        if part.leader is not None:
            leaders[part.leader] = leaders.get(part.leader, 0) + 1
        for broker in part.replicas:
            held[broker] = held.get(broker, 0) + 1
            behind[broker] = behind.get(broker, 0) + (broker not in part.in_sync)
    rows: list[dict[str, Any]] = [
        {
            "id": each.node_id,
            "host": each.host,
            "port": each.port,
            "rack": each.rack,
            "controller": each.node_id == described.value.controller_id,
            "fenced": False,
            "leaders": leaders.get(each.node_id, 0),
            "replicas": held.get(each.node_id, 0),
            "out_of_sync": behind.get(each.node_id, 0),
            "bytes": str(sum(sum(d.replicas.values()) for d in dirs[each.node_id])) if each.node_id in dirs else None,
            "dirs": len(dirs[each.node_id]) if each.node_id in dirs else None,
            "error": errors.get(f"broker {each.node_id}"),
        }
        for each in there.brokers.values()
    ]
    rows += [_missing_row(broker, held, behind.get(broker, 0)) for broker, held in there.missing_brokers().items()]
    return Answer(sorted(rows, key=lambda row: row["id"]), at_ms, partial)


def _missing_row(broker: int, held: int, behind: int) -> dict[str, Any]:
    """A broker that holds replicas and is not there."""
    return {
        "id": broker,
        "host": "",
        "port": 0,
        "rack": None,
        "controller": False,
        "fenced": True,
        "leaders": 0,
        "replicas": held,
        "out_of_sync": behind,
        "bytes": None,
        "dirs": None,
        "error": "it is down, or the other brokers cannot reach it",
    }


async def broker_config(context: Context) -> list[dict[str, Any]]:
    """The settings of a broker."""
    broker = context.segments["id"]
    if not broker.isdecimal() or len(broker) > 10:
        raise Problem(400, "a broker's id is a number")
    return [each.as_json() for each in await context.cluster.run(settings(ResourceType.BROKER, broker))]


async def log_dirs(context: Context) -> Answer:
    """A row for each log dir of each broker."""
    dirs, partial = await disks(context.cluster)
    rows = [
        {
            "broker": broker,
            "path": each.path,
            "total": None if each.total < 0 else str(each.total),
            "usable": None if each.usable < 0 else str(each.usable),
            "bytes": str(sum(each.replicas.values())),
            "replicas": len(each.replicas),
            "error": each.error,
            "largest": [
                {"topic": at[0], "partition": at[1], "bytes": str(size)}
                for at, size in sorted(each.replicas.items(), key=lambda item: -item[1])[:LARGEST_SHOWN]
            ],
        }
        for broker, found_dirs in sorted(dirs.items())
        for each in found_dirs
    ]
    return Answer(rows, None, partial)


async def quorum(context: Context) -> dict[str, Any]:
    """The metadata quorum."""
    found_quorum: QuorumDescription = await context.cluster.run(cluster_calls.quorum())
    ends = [each.log_end_offset for each in found_quorum.voters if each.node_id == found_quorum.leader_id]
    end = ends[0] if ends else found_quorum.high_watermark

    def row(each: Any) -> dict[str, Any]:
        return {
            "id": each.node_id,
            "end": str(each.log_end_offset),
            "lag": str(max(0, end - each.log_end_offset)),
            "last_fetch_ms": None if each.last_fetch_ms < 0 else str(each.last_fetch_ms),
            "last_caught_up_ms": None if each.last_caught_up_ms < 0 else str(each.last_caught_up_ms),
        }

    return {
        "leader": found_quorum.leader_id,
        "leader_epoch": found_quorum.leader_epoch,
        "high_watermark": str(found_quorum.high_watermark),
        "voters": [row(each) for each in found_quorum.voters],
        "observers": [row(each) for each in found_quorum.observers],
    }


async def features(context: Context) -> list[dict[str, Any]]:
    """The finalized features."""
    levels = await context.cluster.run(cluster_calls.features())
    return [{"name": name, "level": level} for name, level in sorted(levels.items())]


# -- search -----------------------------------------------------------------------------------------------------------------


async def search(context: Context) -> Answer:
    """Names of topics, groups, transactional ids and brokers."""
    cluster = context.cluster
    partial: list[tuple[str, str]] = []
    names, asked_ms = await _names(context, context.query["q"].casefold(), partial)
    if context.sees(About.CLUSTER):
        kept = await _or_none(
            cluster.shared.get("transactions", QUICK_MS, lambda: cluster.run(transactions.list_all())), "transactions", partial
        )
        names += [Named("transaction", each.transactional_id, each.state) for each in (kept.value if kept else ())]
    rows = found(context.query["q"], names, context.query["limit"])
    return Answer([{"kind": each.kind, "name": each.name, "text": each.text} for each in rows], asked_ms, tuple(partial))


async def _names(context: Context, wanted: str, partial: list[tuple[str, str]]) -> tuple[list[Named], int]:
    """Topics and groups whose names have ``wanted`` in them, and all brokers; and when the cluster was asked."""
    cluster = context.cluster
    there, asked_ms = await cluster.overview()
    groups = await cluster.groups()
    partial += groups.partial
    names = [
        Named("topic", topic.name, f"{len(topic.partitions)} partitions")
        for topic in there.topics.values()
        if matches(wanted, topic.name) and context.sees(About.TOPIC, topic.name)
    ]
    names += [
        Named("group", each.group_id, f"{each.kind}, {each.state}")
        for each in groups.data.values()
        if matches(wanted, each.group_id) and context.sees(About.GROUP, each.group_id)
    ]
    if context.sees(About.CLUSTER):
        names += [Named("broker", str(each.node_id), f"{each.host}:{each.port}") for each in there.brokers.values()]
    return names, asked_ms


_CLUSTER: Final = "clusters/{c}/"
ROUTES: Final = (
    Route("GET", "clusters", clusters, Right.VIEW),
    Route("GET", _CLUSTER + "health", health, Right.VIEW),
    Route("GET", _CLUSTER + "brokers", brokers, Right.VIEW, About.CLUSTER),
    Route("GET", _CLUSTER + "brokers/{id}/config", broker_config, Right.VIEW, About.CLUSTER),
    Route("GET", _CLUSTER + "logdirs", log_dirs, Right.VIEW, About.CLUSTER),
    Route("GET", _CLUSTER + "quorum", quorum, Right.VIEW, About.CLUSTER),
    Route("GET", _CLUSTER + "features", features, Right.VIEW, About.CLUSTER),
    Route(
        "GET",
        _CLUSTER + "search",
        search,
        Right.VIEW,
        query={"q": Param(text(200, least=1), required=True), "limit": Param(number(1, 100), 20)},
    ),
)
