"""Going through a topic's records: newest first, forward from some offsets, or as they come. Every step is bounded.

Each partition has a buffer of rows that the filter took; the row with the newest (forward: oldest) timestamp of all buffers is
next. Without a filter an empty buffer is refilled before the next row is chosen, so the order is exact; with one, each round
reads every partition, so that hits appear early.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tidelog.client.calls import Call
from tidelog.console.reading.fetching import READ_COMMITTED, READ_UNCOMMITTED, Bounds, PartitionRead, fetch
from tidelog.console.reading.looking import Look
from tidelog.console.reading.rows import Row, View
from tidelog.console.reading.scanning import Scan
from tidelog.model.errors import ErrorCode

SMALLEST_CHUNK: Final = 8
FILTERED_CHUNK: Final = 64
LARGEST_CHUNK: Final = 1 << 17
"""Offsets of one partition that a round goes back."""
LARGE_ROUND: Final = 32 << 20
"""Bytes: after a round that read more, the next one goes back half as far."""
PROGRESS_S: Final = 0.4
FAR_BEHIND: Final = 8192
"""Records: a tail that is further behind goes to the end, and counts what it leaves out."""
KEPT_ROWS: Final = 500
"""Rows of one answer that a tail looks at; of more the newest."""
GROWTH: Final = 4
LONGEST_LOOK_S: Final = 5.0
"""A look ends behind the record that it is at then: filters with slow patterns may take seconds for one."""
MOST_STALLS: Final = 3
"""Rounds without any record until a partition is given up."""


class Runner(Protocol):
    """Runs calls on the cluster."""

    def __call__(self, call: Call[Any], /) -> Awaitable[Any]: ...


@dataclass(slots=True)
class Budget:
    """What one search may cost, and what it has cost. ``pace``: waits until these bytes may be read, shared by all searches."""

    seconds: float
    bytes: int
    now: Callable[[], float]
    pace: Callable[[int], Awaitable[None]]
    began: float = 0.0
    scanned: int = 0
    read: int = 0

    def begin(self) -> None:
        """The time runs from here on."""
        self.began = self.now()

    @property
    def spent_seconds(self) -> float:
        return self.now() - self.began

    @property
    def over(self) -> str | None:
        """``time`` or ``budget`` when it is used up."""
        if self.spent_seconds >= self.seconds:
            return "time"
        return "budget" if self.read >= self.bytes else None


@dataclass(slots=True)
class Topic:
    """The topic that is read: the leader and the bounds of each partition."""

    name: str
    topic_id: bytes
    leaders: Mapping[int, int]
    bounds: Mapping[int, Bounds]


@dataclass(slots=True)
class _Side:
    """A partition under way. ``at``: where the next read begins (newest first: ends). ``done``: what was seen."""

    at: int
    done: int
    rows: deque[Row] = field(default_factory=deque)


class Walk:
    """One walk through a topic. ``problems`` of partitions are lines of their own; such a partition is left out from there on."""

    def __init__(self, run: Runner, topic: Topic, view: View, budget: Budget) -> None:
        self._run = run
        self._topic = topic
        self._view = view
        self._budget = budget
        self._problems: list[Mapping[str, Any]] = []
        self._gone: set[int] = set()
        self._all_stable: set[int] = set()
        self._said_s = 0.0

    # -- newest first --------------------------------------------------------------------------------------------------------

    async def newest(self, before: Mapping[int, int], limit: int) -> AsyncIterator[Mapping[str, Any]]:
        """Rows below these offsets. The last line has the offsets for the next page."""
        self._budget.begin()
        sides = {index: _Side(offset, offset) for index, offset in before.items()}
        chunk = FILTERED_CHUNK if self._view.test else max(SMALLEST_CHUNK, -(-limit // max(1, len(sides))))
        hits, reason = 0, "limit"
        while hits < limit:
            due = self._due(sides, lambda index, side: side.at > self._start(index))
            if due:
                if self._budget.over:
                    reason = self._budget.over
                    break
                before_round = self._budget.read
                found = await self._back(sides, due, chunk, limit)
                if found is None:
                    reason = self._budget.over or "budget"
                    break
                if self._budget.read - before_round > LARGE_ROUND:
                    chunk = max(1, chunk // 2)
                elif not found or self._view.test is not None:
                    chunk = min(GROWTH * chunk, LARGEST_CHUNK)
                for line in self._said(hits):
                    yield line
                continue
            side = max((each for each in sides.values() if each.rows), key=_newest, default=None)
            if side is None:
                reason = "end"
                break
            row = side.rows.popleft()
            side.done = row.offset if side.rows else side.at
            hits += 1
            yield row.line
        yield self._end(reason, "back", sides, hits)

    async def _back(self, sides: Mapping[int, _Side], due: Iterable[int], chunk: int, limit: int) -> bool | None:
        """Refill the buffers of these partitions by one step back; whether a row was found. None, and nothing is changed, when
        the budget ended meanwhile."""
        windows = {index: (max(self._start(index), sides[index].at - chunk), sides[index].at) for index in due}
        found = await self._window(windows, _share(limit, sides))
        if found is None:
            return None
        for index, (low, _) in windows.items():
            side, (rows, complete) = sides[index], found[index]
            side.rows = deque(reversed(rows))
            side.at = low if complete else rows[0].offset
            if not rows and index not in self._gone:
                side.done = low
        return any(rows for rows, _ in found.values())

    async def _window(self, windows: Mapping[int, tuple[int, int]], most: int) -> dict[int, tuple[deque[Row], bool]] | None:
        """The last ``most`` rows of each window, and whether these are all. None when the budget ends before."""
        found: dict[int, deque[Row]] = {index: deque(maxlen=most) for index in windows}
        counts = dict.fromkeys(windows, 0)
        positions = {index: low for index, (low, _) in windows.items()}
        stalls = 0
        while positions and stalls < MOST_STALLS:
            moved = False
            stops = {each: windows[each][1] for each in positions}
            for index, (look, at) in (await self._step(positions, stops, most, last=True)).items():
                found[index].extend(look.rows)
                counts[index] += look.wanted
                moved |= at > positions[index]
                positions[index] = at
            positions = {index: at for index, at in positions.items() if at < windows[index][1] and index not in self._gone}
            stalls = 0 if moved else stalls + 1
            if positions and self._budget.over:
                return None
        return {index: (rows, counts[index] == len(rows)) for index, rows in found.items()}

    # -- forward -------------------------------------------------------------------------------------------------------------

    async def forward(self, begin: Mapping[int, int], limit: int) -> AsyncIterator[Mapping[str, Any]]:
        """Rows from these offsets on, up to the ends that the partitions had at the beginning."""
        self._budget.begin()
        sides = {index: _Side(offset, offset) for index, offset in begin.items()}
        hits, reason, stalls = 0, "limit", 0
        while hits < limit:
            due = self._due(sides, lambda index, side: side.at < self._end_of(index))
            if due and stalls < MOST_STALLS:
                if self._budget.over:
                    reason = self._budget.over
                    break
                stalls = 0 if await self._ahead(sides, due, limit) else stalls + 1
                for line in self._said(hits):
                    yield line
                continue
            side = min((each for each in sides.values() if each.rows), key=_newest, default=None)
            if side is None:
                reason = "end"
                break
            row = side.rows.popleft()
            side.done = row.offset + 1 if side.rows else side.at
            hits += 1
            yield row.line
        yield self._end(reason, "on", sides, hits)

    async def _ahead(self, sides: Mapping[int, _Side], due: Iterable[int], limit: int) -> bool:
        """Refill the buffers of these partitions by one Fetch; whether any went on."""
        positions = {index: sides[index].at for index in due}
        stops = {each: self._end_of(each) for each in positions}
        moved = False
        for index, (look, at) in (await self._step(positions, stops, _share(limit, sides), last=False)).items():
            side = sides[index]
            moved |= at > side.at
            side.at = at
            side.rows = look.rows
            if not look.rows:
                side.done = at
        return moved or any(index in self._gone for index in positions)

    # -- as they come --------------------------------------------------------------------------------------------------------

    async def arriving(self, begin: Mapping[int, int], wait_ms: int) -> AsyncIterator[tuple[list[Row], int]]:
        """Endless: (rows, records that were left out because more came than can be read). The caller ends it."""
        positions = dict(begin)
        while positions:
            reads = await self._fetch(positions, {}, wait_ms)
            rows: list[Row] = []
            left_out = 0
            for index, read in reads.items():
                look, at = await self._scanned(index, read, positions[index], None, Look(self._view, KEPT_ROWS, last=True))
                rows += look.rows
                left_out += look.wanted - len(look.rows)
                if read.records and at == positions[index]:
                    self._gone.add(index)  # what it cannot read it would fetch again and again
                behind = read.high_watermark - at
                if behind > FAR_BEHIND:
                    left_out += behind
                    at = read.high_watermark
                positions[index] = at
            positions = {index: at for index, at in positions.items() if index not in self._gone}
            rows.sort(key=_by_time)
            yield rows, left_out

    # -- parts ---------------------------------------------------------------------------------------------------------------

    def take_problems(self) -> list[Mapping[str, Any]]:
        """The problems since the last call, as lines."""
        found, self._problems = self._problems, []
        return found

    def _due(self, sides: Mapping[int, _Side], more: Callable[[int, _Side], bool]) -> list[int]:
        """The partitions to read now; with a filter none, while there are rows."""
        if self._view.test is not None and any(side.rows for side in sides.values()):
            return []
        return [index for index, side in sides.items() if not side.rows and index not in self._gone and more(index, side)]

    async def _step(
        self, positions: Mapping[int, int], stops: Mapping[int, int], most: int, *, last: bool
    ) -> dict[int, tuple[Look, int]]:
        """One Fetch for each leader: a look at what is below the stops, and where to continue. ``most``, ``last``: as in Look."""
        reads = await self._fetch(positions, self._topic.bounds, 0)
        return {
            index: await self._scanned(index, read, positions[index], stops[index], Look(self._view, most, last=last))
            for index, read in reads.items()
        }

    async def _fetch(self, positions: Mapping[int, int], bounds: Mapping[int, Bounds], wait_ms: int) -> dict[int, PartitionRead]:
        """Below the last stable offset what is committed is read so, because only then the broker names aborted transactions."""
        groups: dict[tuple[int, int], dict[int, int]] = {}
        for index, at in positions.items():
            stable = bounds[index].stable if index in bounds else None
            settled = stable is not None and at < stable and index not in self._all_stable
            isolation = READ_COMMITTED if settled else READ_UNCOMMITTED
            groups.setdefault((self._topic.leaders[index], isolation), {})[index] = at
        calls = [
            self._run(fetch(self._topic.name, self._topic.topic_id, leader, offsets, isolation=isolation, wait_ms=wait_ms))
            for (leader, isolation), offsets in groups.items()
        ]
        found: dict[int, PartitionRead] = {}
        answers = await asyncio.gather(*calls, return_exceptions=True)
        for ((_, isolation), offsets), answer in zip(groups.items(), answers, strict=True):
            if isinstance(answer, BaseException):
                self._lost(offsets, answer)
                continue
            found |= answer
            if isolation == READ_COMMITTED and not any(read.records for read in answer.values()):
                self._all_stable.update(answer)  # what lies below the last stable offset was compacted away
        size = sum(len(read.records) for read in found.values())
        self._budget.read += size
        await self._budget.pace(size)
        return {index: read for index, read in found.items() if index in positions and self._is_fine(index, read)}

    def _lost(self, offsets: Iterable[int], error: BaseException) -> None:
        """A leader did not answer: its partitions are left out, the others go on."""
        if not isinstance(error, Exception):
            raise error
        for index in offsets:
            self._gone.add(index)
            self._problems.append({"kind": "problem", "partition": index, "error": str(error)})

    def _is_fine(self, index: int, read: PartitionRead) -> bool:
        if read.error == ErrorCode.NONE:
            return True
        self._gone.add(index)
        self._problems.append({"kind": "problem", "partition": index, "error": f"{read.error.name}: {read.error.text}"})
        return False

    async def _scanned(self, index: int, read: PartitionRead, begin: int, stop: int | None, look: Look) -> tuple[Look, int]:
        """The look, done, and where to continue. Off the loop: decompression and filters take time."""
        if not read.records:
            return look, begin
        stable = self._topic.bounds[index].stable if stop is not None else read.last_stable_offset
        scan = Scan(index, read.records, begin, begin if stable is None else stable, read.aborted, stop)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(LONGEST_LOOK_S, look.leave)
        job = loop.run_in_executor(None, look.through, scan)
        try:
            await asyncio.shield(job)
        except asyncio.CancelledError:
            look.leave()
            await asyncio.wait({job})  # until then it has its thread, so no other search gets its place
            raise
        finally:
            timer.cancel()
        self._budget.scanned += look.seen
        self._problems += [{"kind": "problem", "partition": index, "error": text} for _, text in scan.problems]
        return look, scan.next_offset if stop is None else min(stop, scan.next_offset)

    def _start(self, index: int) -> int:
        return self._topic.bounds[index].start or 0

    def _end_of(self, index: int) -> int:
        return self._topic.bounds[index].end or 0

    def _said(self, hits: int) -> list[Mapping[str, Any]]:
        budget = self._budget
        if budget.spent_seconds < self._said_s + PROGRESS_S:
            return self.take_problems()
        self._said_s = budget.spent_seconds
        line = {
            "kind": "progress",
            "scanned": str(budget.scanned),
            "bytes": str(budget.read),
            "hits": hits,
            "skipped": "0",
            "seconds": round(budget.spent_seconds, 3),
        }
        return [*self.take_problems(), line]

    def _end(self, reason: str, direction: str, sides: Mapping[int, _Side], hits: int) -> Mapping[str, Any]:
        budget = self._budget
        return {
            "kind": "end",
            "reason": reason,
            "cursor": None if reason == "end" else cursor_text(direction, {index: side.done for index, side in sides.items()}),
            "scanned": str(budget.scanned),
            "bytes": str(budget.read),
            "hits": hits,
            "seconds": round(budget.spent_seconds, 3),
        }


def cursor_text(direction: str, offsets: Mapping[int, int]) -> str:
    """The place where a page ended: ``back`` or ``on``, and an offset of each partition."""
    return direction + "".join(f"_{index}-{offset}" for index, offset in sorted(offsets.items()))


def cursor_offsets(text: str, direction: str) -> dict[int, int]:
    """The offsets of a cursor. ValueError for a text that is none, or of the other direction."""
    first, *parts = text.split("_")
    if first != direction:
        raise ValueError("the cursor is of another mode")
    found = {}
    for part in parts:
        index, _, offset = part.partition("-")
        if not (index.isdecimal() and offset.isdecimal() and len(offset) <= 19 and len(index) <= 10):
            raise ValueError(f"{part!r} is no part of a cursor")
        found[int(index)] = int(offset)
    return found


def _share(limit: int, sides: Mapping[int, _Side]) -> int:
    """Rows that one of these partitions may hold, so that all together hold few more than the page has."""
    return min(limit, max(SMALLEST_CHUNK, -(-2 * limit // len(sides))))


def _newest(side: _Side) -> tuple[int, int]:
    row = side.rows[0]
    return row.timestamp, -row.partition


def _by_time(row: Row) -> int:
    return row.timestamp
