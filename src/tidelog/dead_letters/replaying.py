"""Replaying: the dead letters of a range are decided, written in batches at a rate, and counted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from tidelog.dead_letters.journal import Journal, entry_for
from tidelog.dead_letters.letter import Letter
from tidelog.dead_letters.planning import Outcome, Plan, Replay
from tidelog.dead_letters.transactions import Aborted, Refused, ReplayFailed, Writer
from tidelog.records.record import Record

BATCH: Final = 500
"""Records in one transaction."""
BATCH_BYTES: Final = 4 << 20
TRIES: Final = 3


class Pace:
    """At most ``rate`` records a second, in the mean since the start; None: as fast as it goes."""

    def __init__(
        self,
        rate: float | None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rate
        self._now = now
        self._sleep = sleep
        self._next = now()

    @property
    def batch(self) -> int:
        """Records that may go at once: those of a second."""
        return BATCH if self._rate is None else max(1, min(BATCH, int(self._rate)))

    def wait(self, count: int) -> None:
        """Returns when ``count`` more records may go."""
        if self._rate is None:
            return
        ahead = self._next - self._now()
        if ahead > 0:
            self._sleep(ahead)
        self._next = max(self._next, self._now()) + count / self._rate


class Replaying:
    """One run. Without a ``writer`` nothing is written, and everything counted as it would be."""

    def __init__(
        self, plan: Plan, find: Callable[[Letter], Record | None], journal: Journal, writer: Writer | None, pace: Pace
    ) -> None:
        """``find`` looks up the record of a letter in its topic."""
        self._plan = plan
        self._find = find
        self._journal = journal
        self._writer = writer
        self._pace = pace
        self._waiting: list[Replay] = []
        self._bytes = 0
        self.replayed: Counter[tuple[str, str, int]] = Counter()
        """Group, topic and partition of the source -> records that were replayed, or would be."""
        self.left: Counter[Outcome] = Counter()
        """Dead letters that were not."""
        self.refusals: list[tuple[Letter, str]] = []
        """The first ones that the brokers refused, and why."""

    def run(self, letters: Iterable[Letter], advanced: Callable[[int], None] = lambda done: None) -> None:
        """Decides and writes all of them. ``advanced`` is called with the number of records that are done."""
        for letter in letters:
            outcome = self._plan.before_reading(letter)
            found = self._plan.decide(letter, self._find(letter)) if outcome is None else outcome
            if isinstance(found, Outcome):
                self.left[found] += 1
                continue
            size = len(found.key or b"") + len(found.value or b"")
            if self._waiting and (len(self._waiting) >= self._pace.batch or self._bytes + size > BATCH_BYTES):
                self._write(advanced)
            self._waiting.append(found)
            self._bytes += size
        if self._waiting:
            self._write(advanced)

    def _write(self, advanced: Callable[[int], None]) -> None:
        batch, self._waiting, self._bytes = self._waiting, [], 0
        if self._writer is None:
            self._count(batch)
        else:
            self._pace.wait(len(batch))
            self._written(self._writer, batch)
        advanced(sum(self.replayed.values()))

    def _written(self, writer: Writer, batch: list[Replay]) -> None:
        """Writes a batch; when one of its records is refused, each record alone."""
        for left in reversed(range(TRIES)):
            try:
                done = writer.write(batch)
            except Refused as why:
                if len(batch) > 1:
                    for each in batch:
                        self._written(writer, [each])
                else:
                    self.left[Outcome.REFUSED] += 1
                    if len(self.refusals) < BATCH:
                        self.refusals.append((batch[0].letter, str(why)))
                return
            except Aborted as why:
                if not left:
                    raise ReplayFailed(f"A transaction was aborted {TRIES} times: {why}. Run it again to go on.") from why
            else:
                for replayed in done:
                    self._journal.add(entry_for(replayed))
                self._count(batch)
                return

    def _count(self, batch: Iterable[Replay]) -> None:
        for each in batch:
            source = each.source
            self.replayed[source.group, source.topic, source.partition] += 1
