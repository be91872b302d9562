"""Executes a plan: a few partitions at a time, within a rate limit, with progress reports.

All state is in the cluster. Moves in progress when this ends are finished by the brokers, and a new plan continues from there.
Ctrl-C finishes the started moves and starts no more; a second Ctrl-C exits immediately.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tidelog.cli.admin_session import AdminSession
from tidelog.cli.cluster.cluster_layout import see
from tidelog.cli.refusal import CannotConnect, CommandFailed
from tidelog.cli.tools import reassignments, replication_throttles
from tidelog.cli.tools.leader_election import elect
from tidelog.console.moving.balance_plan import Move, Partition
from tidelog.console.moving.layout import Ongoing, drifted
from tidelog.console.moving.throttles import transfers
from tidelog.console.sizes import size_text, time_text
from tidelog.server.signals import ending_signals

POLL_S = 0.5
REPORT_S = 10.0
"""Seconds between progress lines when the output is not a terminal."""
WINDOW = 20
"""Polls over which the speed is averaged."""


@dataclass(slots=True)
class Progress:
    """The progress of a plan."""

    total: int
    total_bytes: int
    done: int = 0
    done_bytes: int = 0
    flying_bytes: int = 0
    waiting_for: tuple[int, ...] = ()
    samples: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def sample(self, now_s: float) -> None:
        """Takes a sample of the speed."""
        self.samples.append((now_s, self.done_bytes + self.flying_bytes))

    def rate(self) -> float:
        """Recent bytes per second."""
        if len(self.samples) < 2:
            return 0.0
        (since, before), (now, after) = self.samples[0], self.samples[-1]
        return max(0.0, (after - before) / (now - since)) if now > since else 0.0

    def line(self) -> str:
        """``12 of 23 partitions, 1.1 GiB of 3.1 GiB, 52.0 MiB/s, about 40 s left``"""
        moved = min(self.total_bytes, self.done_bytes + self.flying_bytes)
        text = f"{self.done} of {self.total} partitions, {size_text(moved)} of {size_text(self.total_bytes)}"
        rate = self.rate()
        if rate > 0 and self.done < self.total:
            text += f", {size_text(rate)}/s, about {time_text((self.total_bytes - moved) / rate)} left"
        if self.waiting_for:
            text += f"; waiting for broker {', '.join(map(str, self.waiting_for))}, which is down"
        return text


class Stop:
    """Whether the user wants to stop."""

    def __init__(self) -> None:
        self.wanted = False

    def __call__(self, number: int, frame: Any) -> None:
        if self.wanted:
            raise KeyboardInterrupt
        self.wanted = True

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handles Ctrl-C, SIGTERM and a closed terminal inside the block."""
        before = {number: signal.signal(number, self) for number in ending_signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class MoveRunner:
    """Executes ``moves``, in addition to running reassignments."""

    def __init__(
        self,
        session: AdminSession,
        moves: Sequence[Move],
        under_way: Mapping[Partition, Ongoing],
        *,
        throttle: int | None,
        concurrent: int,
        all_leaders: bool = False,
        report: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``throttle``: bytes per second at each broker, None for no limit. ``concurrent``: partitions at a time.

        ``all_leaders``: at the end, elect the preferred leaders of all partitions, not only of those that moved.
        """
        self._session = session
        self._under_way = dict(under_way)
        self._flying: dict[Partition, Move] = {
            partition: Move(partition, tuple(set(each.replicas) - set(each.adding)), each.target, 0)
            for partition, each in under_way.items()
        }
        self._pending = deque(sorted(moves, key=lambda move: (-move.bytes_moved, move.partition)))
        self._moves = list(moves)
        self._throttle = throttle
        self._concurrent = concurrent
        self._all_leaders = all_leaders
        self._report = report
        self._sleep = sleep
        self._clock = clock
        self.stop = Stop()
        self.progress = Progress(len(moves) + len(under_way), sum(move.bytes_moved for move in moves))

    def run(self) -> bool:
        """Runs to the end, or until stopped; True at the end. CommandFailed when a broker refuses a move."""
        if self._throttle is not None:
            self._limit(self._throttle)
        with self.stop.listening():
            while self._flying or (self._pending and not self.stop.wanted):
                self._begin_some()
                self._sleep(POLL_S)
                self._look()
                self._report(self.progress.line())
        if not self._pending:
            self._elect()
        self.clear_throttles()
        return not self._pending

    def clear_throttles(self) -> None:
        """Clears all throttles, including those of an earlier run."""
        topics = {partition[0] for partition in (*self._under_way, *(move.partition for move in self._moves))}
        replication_throttles.clear(self._session, self._session.brokers(), topics)

    def _limit(self, rate: int) -> None:
        proposed = {move.partition: move.after for move in self._moves if move.coming}
        current = {move.partition: move.before for move in self._moves}
        sending = transfers(current, proposed, self._under_way)
        replication_throttles.set_rate(self._session, sending, rate)

    def _begin_some(self) -> None:
        """Starts moves up to the limit; skips those to brokers that are down."""
        if self.stop.wanted:
            return
        there = self._session.brokers()
        begun: dict[Partition, Move] = {}
        held_back: deque[Move] = deque()
        while self._pending and len(self._flying) + len(begun) < self._concurrent:
            move = self._pending.popleft()
            if all(broker in there for broker in move.coming):
                begun[move.partition] = move
            else:
                held_back.append(move)
        self._pending.extendleft(reversed(held_back))
        failed = reassignments.alter(self._session, {partition: move.after for partition, move in begun.items()})
        self._flying |= {partition: move for partition, move in begun.items() if partition not in failed}
        if failed:
            lines = "; ".join(f"{topic}-{index}: {problem}" for (topic, index), problem in sorted(failed.items()))
            raise CommandFailed(f"Brokers refuse to move {lines}. Moves that have begun continue; run this again for a new plan.")

    def _look(self) -> None:
        """Checks which moves are complete, and the progress of the others."""
        progress = self.progress
        still = reassignments.ongoing(self._session)
        for partition in [each for each in self._flying if each not in still]:
            move = self._flying.pop(partition)
            progress.done += 1
            progress.done_bytes += move.bytes_moved
        self._session.metadata([])
        there = self._session.brokers()
        missing = {broker for move in (*self._flying.values(), *self._pending) for broker in move.coming if broker not in there}
        progress.waiting_for = tuple(sorted(missing))
        try:
            coming = reassignments.placed(self._session, {each: move.coming for each, move in self._flying.items()})
        except CannotConnect:
            self._session.forget_connections()  # a broker disconnected during the request: the next poll leaves it out
        else:
            sizes = {partition: move.size for partition, move in self._flying.items()}
            progress.flying_bytes = sum(min(each.size, sizes[topic, index]) for (topic, index, _), each in coming.items())
        progress.sample(self._clock())

    def _elect(self) -> None:
        """Elects the preferred leaders that do not lead yet and are in sync."""
        moved = {*(move.partition for move in self._moves), *self._under_way}
        wanted = [
            each.partition
            for each in see(self._session, None if self._all_leaders else {topic for topic, _ in moved})
            if (self._all_leaders or each.partition in moved) and drifted(each)
        ]
        if wanted:
            elect(self._session, "PREFERRED", wanted, say=False)


def reporter(stream: Any = None) -> Callable[[str], None]:
    """Updates a line in place at a terminal; elsewhere prints changes every ten seconds."""
    out = sys.stderr if stream is None else stream
    last_line, last_s = "", 0.0

    def say(line: str) -> None:
        nonlocal last_line, last_s
        now = time.monotonic()
        if out.isatty():
            print(f"\r\x1b[K{line}", end="", file=out, flush=True)
        elif line != last_line and now - last_s >= REPORT_S:
            last_line, last_s = line, now
            print(line, file=out, flush=True)

    return say
