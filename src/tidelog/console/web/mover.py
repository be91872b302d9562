"""Moves that the console carries out: in the background, a few at a time, one plan per cluster.

All else is in the cluster. When the console ends, moves that have begun go on, and so do the limits on them: the page, or
``tidelog rebalance``, takes limits away that nothing needs any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from tidelog.client.admin import replicas
from tidelog.client.admin.topics import brokers, partitions_of, topics
from tidelog.client.calls import Call, Partition
from tidelog.console.moving.asking import limit, under_way, unlimit
from tidelog.console.moving.balance_plan import Move
from tidelog.console.moving.layout import Layout, Seen, drifted
from tidelog.console.moving.moving import Moving
from tidelog.console.moving.throttles import Transfer, brokers_of, transfers
from tidelog.console.web.problems import Problem, error_text

POLL_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
"""Between attempts while the cluster does not answer."""
MOST_PREVIEWS: Final = 16
MOST_FAILED: Final = 50
"""Moves that failed and are named."""
_log = logging.getLogger("tidelog.console")


@dataclass(frozen=True, slots=True)
class Order:
    """Moves to carry out. ``throttle``: bytes per second at each broker, None for no limit. ``concurrent``: partitions at a time.
    ``all_leaders``: at the end every preferred leader is elected, not only those of partitions that moved."""

    title: str
    moves: tuple[Move, ...]
    throttle: int | None
    concurrent: int
    all_leaders: bool = False


class Mover:
    """The one plan of a cluster that is carried out, and the plans that were shown."""

    def __init__(
        self,
        run: Callable[[Call[Any]], Awaitable[Any]],
        now_ms: Callable[[], int],
        poll_s: float = POLL_S,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """``ended``: called when a plan is carried out, and what pages know of the cluster is old."""
        self._ended = ended
        self._run = run
        self._now_ms = now_ms
        self._poll_s = poll_s
        self._shown: OrderedDict[Hashable, tuple[Move, ...]] = OrderedDict()
        self._order: Order | None = None
        self._moving: Moving | None = None
        self._transfers: dict[Partition, Transfer] = {}
        self._began_ms = 0
        self._ended_ms: int | None = None
        self._problem: str | None = None
        self._task: asyncio.Task[None] | None = None

    # -- previews ------------------------------------------------------------------------------------------------------------

    def show(self, key: Hashable, moves: Iterable[Move]) -> None:
        """Keep a plan that a user looks at: what is confirmed is what was shown."""
        self._shown[key] = tuple(moves)
        self._shown.move_to_end(key)
        while len(self._shown) > MOST_PREVIEWS:
            self._shown.popitem(last=False)

    def confirmed(self, key: Hashable, layout: Layout) -> tuple[Move, ...] | None:
        """The plan that was shown; None without one. Problem (409) when a partition of it is elsewhere by now."""
        moves = self._shown.pop(key, None)
        if moves is None:
            return None
        held = {each.partition: each.replicas for each in layout.held()}
        for move in moves:
            if held.get(move.partition) != move.before:
                topic, index = move.partition
                raise Problem(409, f"{topic}-{index} has moved since the preview: look at it again")
        return moves

    # -- the plan ------------------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a plan is being carried out."""
        return self._task is not None and not self._task.done()

    def start(self, order: Order, layout: Layout) -> None:
        """Begin, with the limits. Problem (409) while another plan is carried out."""
        if self.busy:
            assert self._order is not None
            raise Problem(409, f"this goes on still: {self._order.title}. Wait for its end, or stop it.")
        held = {move.partition: move.before for move in order.moves}
        wanted = {move.partition: move.after for move in order.moves if move.coming}
        self._transfers = transfers(held, wanted, layout.under_way)
        self._order, self._moving = order, Moving(order.moves, order.concurrent)
        self._began_ms, self._ended_ms, self._problem = self._now_ms(), None, None
        self._task = asyncio.get_running_loop().create_task(self._work(order, self._moving))

    def stop(self) -> int:
        """Begin no more moves. Returns how many are given up. Problem (409) when no plan is carried out."""
        if not self.busy or self._moving is None:
            raise Problem(409, "the console carries out no moves")
        return self._moving.stop()

    def status(self) -> dict[str, Any] | None:
        """The plan that is carried out, or that was last, as pages show it."""
        if self._order is None or self._moving is None:
            return None
        moving = self._moving
        failed = sorted(moving.failed.items())[:MOST_FAILED]
        return {
            "title": self._order.title,
            "total": moving.total,
            "done": moving.done,
            "moving": len(moving.flying),
            "waiting": moving.pending,
            "failed": [{"what": f"{at[0]}-{at[1]}", "error": problem} for at, problem in failed],
            "failures": len(moving.failed),
            "stopping": moving.stopping,
            "throttle": None if self._order.throttle is None else str(self._order.throttle),
            "began_ms": str(self._began_ms),
            "ended_ms": None if self._ended_ms is None else str(self._ended_ms),
            "problem": self._problem,
        }

    async def close(self) -> None:
        """End without waiting for moves. Limits stay while something moves."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # -- at work -------------------------------------------------------------------------------------------------------------

    async def _work(self, order: Order, moving: Moving) -> None:
        if order.throttle is not None and self._transfers:
            await self._insist(lambda: self._run(limit(self._transfers, order.throttle or 0)), moving)
        while not moving.ended:
            await self._insist(lambda: self._turn(moving), moving)
            if not moving.ended:
                await asyncio.sleep(self._poll_s)
        try:
            await self._elect(order)
            if order.throttle is not None:
                names = {topic for topic, _ in self._transfers}
                await self._run(unlimit(brokers_of(self._transfers), names))
        except Exception as error:
            self._problem = f"after the moves: {error_text(error)}"
            _log.warning("%s: %s", order.title, self._problem)
        self._ended()
        self._ended_ms = self._now_ms()

    async def _insist(self, act: Callable[[], Awaitable[Any]], moving: Moving) -> None:
        """Until it succeeds, or the moves are stopped before one began."""
        pause_s = self._poll_s
        while True:
            try:
                await act()
                self._problem = None
                return
            except Exception as error:
                self._problem = error_text(error)
                _log.warning("moves wait: %s", self._problem)
            if moving.ended:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _turn(self, moving: Moving) -> None:
        """See what has landed, and begin what may begin."""
        now = await self._run(under_way())
        if landed := moving.landed(now):
            found = await self._run(topics(sorted({topic for topic, _ in landed})))
            placed = {(each.name or "", part.index): part.replicas for each in found for part in partitions_of(each)}
            moving.settle({at: placed.get(at, ()) for at in landed})
        if moving.pending:
            begun = moving.begin(now, list(await self._run(brokers())))
            if begun:
                await self._begin(moving, begun)

    async def _begin(self, moving: Moving, begun: dict[Partition, tuple[int, ...]]) -> None:
        try:
            failed = await self._run(replicas.reassign(begun))
        except Exception:
            moving.unsure(begun)
            raise
        moving.refused({at: error_text(error) for at, error in failed.items()})

    async def _elect(self, order: Order) -> None:
        moved = {move.partition for move in order.moves}
        found = await self._run(topics(None if order.all_leaders else sorted({topic for topic, _ in moved})))
        seen = [
            Seen((each.name or "", part.index), part.leader, part.replicas, part.in_sync)
            for each in found
            for part in partitions_of(each)
        ]
        wanted = [each.partition for each in seen if (order.all_leaders or each.partition in moved) and drifted(each)]
        if wanted:
            await self._run(replicas.elect_leaders(wanted))
