"""Records: streams of a topic's records, one record by its place, and its raw bytes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from tidelog.client import AdminClient
from tidelog.console.access.rights import About, Right
from tidelog.console.asking.overview import TopicState
from tidelog.console.filters.evaluation import Test, compiled
from tidelog.console.filters.tokens import MAX_CHARACTERS, FilterError
from tidelog.console.payloads.decoding import NAMES
from tidelog.console.reading.fetching import READ_COMMITTED, READ_UNCOMMITTED, Bounds, bounds, fetch, positions_at
from tidelog.console.reading.rows import Hidden, View
from tidelog.console.reading.scanning import Scan, Seen
from tidelog.console.reading.tailing import tail
from tidelog.console.reading.walking import Budget, Topic, Walk, cursor_offsets
from tidelog.console.web.answers import Answer, Lines
from tidelog.console.web.context import Context
from tidelog.console.web.problems import Problem, error_text
from tidelog.console.web.routing import Route
from tidelog.console.web.topic_pages import known_topic
from tidelog.console.web.values import Param, flag, number, one_of, text

MODES: Final = ("newest", "oldest", "offset", "time", "tail")
MOST_PARTITIONS: Final = 1000
MAX_PARTITION: Final = 1_000_000


@dataclass(slots=True)
class Shown:
    """What a stream has shown, for the audit. ``outcome``: done, failed, or left by the reader before its end."""

    records: int = 0
    outcome: str = "left"


async def records(context: Context) -> Lines:
    """A stream of records, as the query says. Problems of the query come before the stream begins."""
    state, query = context.state, context.query
    found = await known_topic(context)
    test = _test(context)
    gate = state.tails.enter() if query["mode"] == "tail" else state.searches.enter()
    gate.__enter__()
    try:
        client = context.cluster.reader()
        try:
            topic = await topic_of(client, found, query["partition"])
            view = _view(context, found.name, test)
            begin = await _begin(context, client, topic)
        except BaseException:
            await client.close()
            raise
    except BaseException:
        gate.__exit__(None, None, None)
        raise
    shown = Shown()

    async def end() -> None:
        gate.__exit__(None, None, None)
        _note(context, topic.name, shown.outcome, shown.records, partitions=sorted(begin), mode=query["mode"])
        await client.close()

    return Lines(_stream(context, Walk(client.run, topic, view, _budget(context)), topic, begin, shown), end, state.ending)


def _test(context: Context) -> Test | None:
    given = context.query["filter"].strip()
    if not given:
        return None
    try:
        return compiled(given, context.state.now_ms())
    except FilterError as error:
        raise Problem(400, error.detail, at=error.at) from None


def _budget(context: Context) -> Budget:
    limits = context.state.limits
    return Budget(limits.search_seconds, limits.search_bytes, time.monotonic, context.state.pace)


def _view(context: Context, topic: str, test: Test | None) -> View:
    query = context.query
    hidden = Hidden.of(context.access, context.cluster.id, topic)
    cut = context.state.limits.cut_bytes
    return View(query["key"], query["value"], cut, test, query["aborted"], query["control"], hidden, context.cluster.schemas)


async def topic_of(client: AdminClient, found: TopicState, chosen: list[int]) -> Topic:
    """The topic with the bounds of the chosen partitions; of those without a leader the bounds have an error."""
    there = {part.index: part for part in found.partitions}
    unknown = [index for index in chosen if index not in there]
    if unknown:
        raise Problem(400, f"{found.name} has no partition {unknown[0]}")
    indexes = sorted(set(chosen) or set(there))
    if len(indexes) > MOST_PARTITIONS:
        raise Problem(400, f"{len(indexes)} partitions are too many to read at a time: choose at most {MOST_PARTITIONS}")
    limits = await client.run(bounds([(found.name, index) for index in indexes]))
    leaders = {index: there[index].leader for index in indexes}
    return Topic(
        found.name,
        found.topic_id,
        {index: leader for index, leader in leaders.items() if leader is not None},
        {index: limits[found.name, index] for index in indexes},
    )


async def _begin(context: Context, client: AdminClient, topic: Topic) -> dict[int, int]:
    """Where to begin in each partition that can be read."""
    query, mode = context.query, context.query["mode"]
    readable = {
        index: each
        for index, each in topic.bounds.items()
        if each.start is not None and each.end is not None and index in topic.leaders
    }
    if query["cursor"]:
        try:
            offsets = cursor_offsets(query["cursor"], "back" if mode == "newest" else "on")
        except ValueError as error:
            raise Problem(400, f"cursor: {error}") from None
        if mode == "tail":
            raise Problem(400, "a tail has no cursor")
        return {index: _inside(offsets.get(index, _default(mode, each)), each) for index, each in readable.items()}
    if mode == "offset":
        if query["offset"] is None:
            raise Problem(400, "mode=offset needs an offset")
        return {index: _inside(query["offset"], each) for index, each in readable.items()}
    if mode == "time":
        if query["time"] is None:
            raise Problem(400, "mode=time needs a time")
        places = await client.run(positions_at([(topic.name, index) for index in readable], query["time"]))
        return {
            index: _inside(each.end or 0 if (at := places.get((topic.name, index))) is None else at, each)
            for index, each in readable.items()
        }
    return {index: _default(mode, each) for index, each in readable.items()}


def _default(mode: str, limits: Bounds) -> int:
    return (limits.end if mode in ("newest", "tail") else limits.start) or 0


def _inside(offset: int, limits: Bounds) -> int:
    return min(max(offset, limits.start or 0), limits.end or 0)


async def _stream(
    context: Context, walk: Walk, topic: Topic, begin: Mapping[int, int], shown: Shown
) -> AsyncIterator[Mapping[str, Any]]:
    """The lines of one stream."""
    yield _first_line(context.query["mode"], topic)
    for index, each in topic.bounds.items():
        if index not in begin:
            yield {"kind": "problem", "partition": index, "error": each.error or "it has no leader"}
    try:
        async for line in _lines(context, walk, begin):
            if context.state.sessions.is_over(context.session, context.state.now_ms()):
                raise Problem(401, "the session is over: log in again")
            shown.records += line["kind"] == "record"
            yield line
        shown.outcome = "done"
    except Exception as error:
        shown.outcome = "failed"
        yield {"kind": "problem", "partition": None, "error": error_text(error)}
        yield _failed(shown.records)


def _lines(context: Context, walk: Walk, begin: Mapping[int, int]) -> AsyncIterator[Mapping[str, Any]]:
    mode, limit = context.query["mode"], context.query["limit"]
    if mode == "tail":
        return tail(walk, begin, context.state.limits.tail_rows_per_second, time.monotonic)
    return walk.newest(begin, limit) if mode == "newest" else walk.forward(begin, limit)


def _first_line(mode: str, topic: Topic) -> Mapping[str, Any]:
    def shown(value: int | None) -> str | None:
        return None if value is None else str(value)

    return {
        "kind": "begin",
        "partitions": [
            {"partition": index, "start": shown(each.start), "end": shown(each.end), "stable": shown(each.stable)}
            for index, each in topic.bounds.items()
        ],
        "mode": mode,
    }


def _failed(hits: int) -> Mapping[str, Any]:
    return {"kind": "end", "reason": "failed", "cursor": None, "scanned": "0", "bytes": "0", "hits": hits, "seconds": 0.0}


def _note(context: Context, topic: str, outcome: str, shown: int, **facts: Any) -> None:
    context.state.audit.add(
        "read",
        user=context.user,
        address=context.address,
        outcome=outcome,
        cluster=context.cluster.id,
        topic=topic,
        records=shown,
        filter=context.query.get("filter") or None,
        **facts,
    )


# -- one record -------------------------------------------------------------------------------------------------------------


async def record(context: Context) -> Answer:
    """One record by its place, with its neighbours; or why there is none."""
    found, index, offset = await _place(context)
    limits, seen, following = await _look(context, found, index, offset)
    query, sizes = context.query, context.state.limits
    row = None
    reason: str | None = None
    if seen is not None:
        cut = sizes.full_bytes if query["full"] else sizes.cut_bytes
        hidden = Hidden.of(context.access, context.cluster.id, found.name)
        schemas = context.cluster.schemas
        view = View(query["key"], query["value"], cut, aborted=True, control=True, hidden=hidden, schemas=schemas)
        made = await asyncio.to_thread(view.row, seen)
        assert made is not None
        row = {name: value for name, value in made.line.items() if name != "kind"}
    else:
        reason = _missing(offset, limits, following)
    previous = offset - 1 if limits.start is not None and offset > limits.start else None
    end = limits.end or 0
    _note(context, found.name, "done", int(row is not None), partitions=[index], offset=str(offset))
    return Answer(
        {
            "record": row,
            "previous": None if previous is None else str(min(previous, end - 1)),
            "next": None if following is None or following >= end else str(following),
            "start": None if limits.start is None else str(limits.start),
            "end": None if limits.end is None else str(limits.end),
            "reason": reason,
        }
    )


async def raw(context: Context) -> Response:
    """The bytes of a key or a value, as a file to keep."""
    found, index, offset = await _place(context)
    if context.access.is_masked(context.cluster.id, found.name):
        raise Problem(403, "parts of this topic's records are masked for you, so their bytes are not given out")
    limits, seen, following = await _look(context, found, index, offset)
    if seen is None:
        raise Problem(404, _missing(offset, limits, following))
    part = context.query["part"]
    data = seen.key if part == "key" else seen.value
    if data is None:
        raise Problem(404, f"the {part} is null")
    _note(context, found.name, "done", 1, partitions=[index], offset=str(offset), part=part)
    name = f"{found.name}-{index}-{offset}-{part}.bin"
    return Response(data, 200, {"Content-Disposition": f'attachment; filename="{name}"'}, media_type="application/octet-stream")


async def _place(context: Context) -> tuple[TopicState, int, int]:
    found = await known_topic(context)
    try:
        index, offset = number(0, MAX_PARTITION)(context.segments["p"]), number(0)(context.segments["offset"])
    except ValueError as error:
        raise Problem(400, f"partition and offset: {error}") from None
    if index not in {part.index for part in found.partitions}:
        raise Problem(404, f"{found.name} has no partition {index}")
    return found, index, offset


async def _look(context: Context, found: TopicState, index: int, offset: int) -> tuple[Bounds, Seen | None, int | None]:
    """The bounds, the record, and the offset of the next one."""
    with context.state.searches.enter():
        client = context.cluster.reader()
        try:
            limits = (await client.run(bounds([(found.name, index)])))[found.name, index]
            leader = next(part.leader for part in found.partitions if part.index == index)
            if limits.start is None or limits.end is None or leader is None:
                raise Problem(503, f"{found.name}-{index} cannot be read: {limits.error or 'it has no leader'}")
            if not limits.start <= offset < limits.end:
                return limits, None, None
            settled = limits.stable is not None and offset < limits.stable
            answer = await client.run(
                fetch(
                    found.name,
                    found.topic_id,
                    leader,
                    {index: offset},
                    isolation=READ_COMMITTED if settled else READ_UNCOMMITTED,
                )
            )
        finally:
            await client.close()
        read = answer[index]
        if read.error:
            raise Problem(502, f"{read.error.name}: {read.error.text}", code=read.error)
        scan = Scan(index, read.records, offset, limits.stable or 0, read.aborted)
        at, following = await asyncio.to_thread(_at_and_behind, scan, offset)
    if following is None and scan.problems:
        raise Problem(502, scan.problems[0][1])
    return limits, at, scan.next_offset if following is None else following


def _at_and_behind(scan: Scan, offset: int) -> tuple[Seen | None, int | None]:
    """The record at the offset, and the offset of the next one. It takes time where a batch was compressed well."""
    at: Seen | None = None
    for seen in scan:
        if seen.offset == offset:
            at = seen
        elif seen.offset > offset:
            return at, seen.offset
    return at, None


def _missing(offset: int, limits: Bounds, following: int | None) -> str:
    if limits.start is not None and offset < limits.start:
        return f"the offset is below the log start {limits.start}: the record was deleted"
    if limits.end is not None and offset >= limits.end:
        return f"the log ends at {limits.end}: there is no such record yet"
    after = "" if following is None else f"; the next record is at {following}"
    return f"there is no record at this offset any more: compaction took it{after}"


_RECORDS: Final = "clusters/{c}/topics/{t}/records"
_PLACE: Final = _RECORDS + "/{p}/{offset}"
_DECODERS: Final = {"key": Param(one_of(NAMES), "auto"), "value": Param(one_of(NAMES), "auto")}
ROUTES: Final = (
    Route(
        "GET",
        _RECORDS,
        records,
        Right.PAYLOAD,
        About.TOPIC,
        "t",
        query={
            "mode": Param(one_of(MODES), "newest"),
            "offset": Param(number(0)),
            "time": Param(number(0)),
            "partition": Param(number(0, MAX_PARTITION), many=True, most=MOST_PARTITIONS),
            "limit": Param(number(1, 500), 50),
            "cursor": Param(text(40_000), ""),
            "filter": Param(text(2 * MAX_CHARACTERS), ""),
            "aborted": Param(flag, False),
            "control": Param(flag, False),
            **_DECODERS,
        },
    ),
    Route("GET", _PLACE, record, Right.PAYLOAD, About.TOPIC, "t", query={"full": Param(flag, False), **_DECODERS}),
    Route("GET", _PLACE + "/raw", raw, Right.PAYLOAD, About.TOPIC, "t", query={"part": Param(one_of(("key", "value")), "value")}),
)
