"""What a share group gave up (KIP-1191): its newest dead letters, and which of them were replayed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from tidelog.client import AdminClient
from tidelog.client.admin.results import ResourceType
from tidelog.console.access.rights import About, Right
from tidelog.console.asking.configs import settings
from tidelog.console.asking.groups import SHARE
from tidelog.console.asking.overview import Overview, TopicState
from tidelog.console.reading.letters import Letters, Replays
from tidelog.console.reading.rows import View
from tidelog.console.reading.walking import Budget, Walk
from tidelog.console.web.answers import Answer
from tidelog.console.web.context import Context
from tidelog.console.web.group_pages import MAX_GROUP_ID, kind_of
from tidelog.console.web.problems import Problem
from tidelog.console.web.record_pages import topic_of
from tidelog.console.web.routing import Route
from tidelog.console.web.values import Param, number, text
from tidelog.dead_letters.journal import Entry, journal_topic
from tidelog.dead_letters.letter import Source
from tidelog.model.ids import uuid_to_text

TOPIC_NAME: Final = "errors.deadletterqueue.topic.name"
"""The setting of a group that names its dead-letter topic."""
MOST_LETTERS: Final = 200
MOST_REPLAYS: Final = 10 * MOST_LETTERS
LONGEST_S: Final = 10.0
"""Of each of the two walks, through letters and journal."""
CUT: Final = 1024
"""Bytes of a key or a value."""

Lines = list[Mapping[str, Any]]


async def dead_letters(context: Context) -> Answer:
    """The newest dead letters of a share group."""
    cluster, group_id = context.cluster, context.query["id"]
    kind = await kind_of(cluster, group_id)
    if kind != SHARE:
        raise Problem(400, f"{group_id} is a group of type {kind}: only share groups have dead letters")
    (setting,) = await cluster.run(settings(ResourceType.GROUP, group_id, [TOPIC_NAME])) or (None,)
    name = setting.value if setting is not None else None
    if not name:
        return Answer(_data(None, False))
    context.demand(Right.PAYLOAD, About.TOPIC, name)
    if context.access.is_masked(cluster.id, name):
        raise Problem(403, f"parts of the records of {name} are masked for you, and dead letters are records of others")
    there, _ = await cluster.overview()
    command = cluster.commands.line("share-groups", "dead-letters", "replay", name, "--group", group_id)
    if name not in there.topics:
        return Answer(_data(name, False))
    view = Letters(cut=CUT, schemas=cluster.schemas, group=group_id)
    with context.state.searches.enter():
        client = cluster.reader()
        try:
            rows, reason, problems = await _read(context, client, there.topic(name), view, context.query["limit"])
            done, known = await _replays(context, client, there, name, {view.source_of(row) for row in rows})
        finally:
            await client.close()
    context.state.audit.add(
        "read",
        user=context.user,
        address=context.address,
        outcome="done",
        cluster=cluster.id,
        topic=name,
        records=len(rows),
        group=group_id,
    )
    shown = [_shown(row, done.get(view.source_of(row)), known) for row in rows]
    return Answer(_data(name, True, shown, reason, command), partial=tuple(problems))


async def _read(
    context: Context, client: AdminClient, found: TopicState, view: View, limit: int, *, newest: bool = True
) -> tuple[Lines, str, list[tuple[str, str]]]:
    """The rows of a topic that the view takes, why the walk ended, and what of the topic could not be read."""
    topic = await topic_of(client, found, [])
    readable = {index: each for index, each in topic.bounds.items() if each.error is None and index in topic.leaders}
    problems = [
        (f"{found.name}-{index}", each.error or "it has no leader")
        for index, each in topic.bounds.items()
        if index not in readable
    ]
    limits = context.state.limits
    walk = Walk(client.run, topic, view, Budget(LONGEST_S, limits.search_bytes, time.monotonic, context.state.pace))
    ends = {index: each.end or 0 for index, each in readable.items()}
    starts = {index: each.start or 0 for index, each in readable.items()}
    rows: Lines = []
    reason = "end"
    async for line in walk.newest(ends, limit) if newest else walk.forward(starts, limit):
        match line["kind"]:
            case "record":
                rows.append(line)
            case "problem":
                problems.append((f"{found.name}-{line['partition']}", line["error"]))
            case "end":
                reason = line["reason"]
    return rows, reason, problems


async def _replays(
    context: Context, client: AdminClient, there: Overview, name: str, sources: set[Source]
) -> tuple[Mapping[Source, Entry], bool]:
    """The last replay of each source, and whether the journal was read to its end: without that, the others are not known."""
    journal = journal_topic(name)
    if not context.access.may(Right.PAYLOAD, context.cluster.id, About.TOPIC, journal):
        return {}, False
    if journal not in there.topics or not sources:
        return {}, True
    ids = {each: there.topics[each.topic].topic_id for each in sources if each.topic in there.topics}
    view = Replays(wanted=frozenset((each, uuid_to_text(topic_id)) for each, topic_id in ids.items()))
    rows, reason, problems = await _read(context, client, there.topic(journal), view, MOST_REPLAYS, newest=False)
    return {row["entry"].source: row["entry"] for row in rows}, reason == "end" and not problems


def _shown(row: Mapping[str, Any], entry: Entry | None, known: bool) -> dict[str, Any]:
    replayed = entry is not None if known or entry is not None else None
    return {
        **{name: value for name, value in row.items() if name != "kind"},
        "replayed": replayed,
        "replay": None
        if entry is None
        else {
            "at_ms": str(entry.at_ms),
            "partition": entry.partition,
            "offset": str(entry.offset),
            "replays": entry.replays,
        },
    }


def _data(
    topic: str | None, exists: bool, rows: list[dict[str, Any]] | None = None, end: str | None = None, command: str | None = None
) -> dict[str, Any]:
    return {"topic": topic, "exists": exists, "rows": rows or [], "end": end, "command": command}


ROUTES: Final = (
    Route(
        "GET",
        "clusters/{c}/group/dead-letters",
        dead_letters,
        Right.VIEW,
        About.GROUP,
        "id",
        query={
            "id": Param(text(MAX_GROUP_ID, least=0), required=True),
            "limit": Param(number(1, MOST_LETTERS), 100),
        },
    ),
)
