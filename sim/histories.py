"""Histories as a cluster that keeps its promises would let clients write them, and as one with a certain fault would.

A model of logs, a transaction coordinator and a group, small enough to be seen to be right, is used by producers, transformers
and readers whose steps interleave by a seed. Clients die, answers are lost, coordinators end transactions late, members lose
their partitions. ``FAULTS`` names what can be wrong with the cluster; a fault strikes once, somewhere in the middle. The
checker of histories (``tidelog.testing.checker``) must pass what has none and find each of them.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from tidelog.testing.checker.verdict import Anomaly

INPUTS, OUTPUTS, PLAIN = ("in-0", "in-1"), ("out-0", "out-1", "out-2"), ("plain-0",)
PARTITIONS = (*INPUTS, *OUTPUTS, *PLAIN)
GROUP = "transformers"
Steps = Iterator[None]

FAULTS: dict[str, Anomaly] = {
    "an abort becomes a commit": Anomaly.ABORTED_READ,
    "an abort becomes a commit in one partition": Anomaly.ABORTED_READ,
    "a refused commit happens": Anomaly.ABORTED_READ,
    "a record of an aborted transaction is late and joins the next": Anomaly.ABORTED_READ,
    "a reader gets an aborted record": Anomaly.ABORTED_READ,
    "a reader gets open records": Anomaly.INTERMEDIATE_READ,
    "a reader gets what nobody sent": Anomaly.PHANTOM_READ,
    "an acknowledged record is not written": Anomaly.LOST_WRITE,
    "all records of a commit are gone": Anomaly.LOST_WRITE,
    "the end of a log is cut off": Anomaly.UNSEEN_WRITE,
    "a retry is written twice": Anomaly.DUPLICATE_WRITE,
    "a retry in a transaction is written twice": Anomaly.DUPLICATE_WRITE,
    "a commit becomes an abort in one partition": Anomaly.TORN_TRANSACTION,
    "an unknown commit happens in one partition only": Anomaly.TORN_TRANSACTION,
    "a record of a transaction is not written": Anomaly.TORN_TRANSACTION,
    "a wrong offset is acknowledged": Anomaly.INCONSISTENT_OFFSET,
    "two readers get different records at one offset": Anomaly.INCONSISTENT_OFFSET,
    "a poll is out of order": Anomaly.POLL_BACK_WITHIN,
    "a reader is thrown back": Anomaly.POLL_BACK,
    "records of a transaction change places": Anomaly.SEND_BACK_WITHIN,
    "records of a producer change places": Anomaly.SEND_BACK,
    "a poll leaves a record out": Anomaly.SKIPPED_WITHIN,
    "a reader is thrown forward": Anomaly.SKIPPED,
    "offsets of an aborted transaction count": Anomaly.ABORTED_OFFSETS,
    "committed offsets are forgotten": Anomaly.LOST_OFFSETS,
    "a member without its partitions may commit": Anomaly.DUPLICATE_OUTPUT,
    "offsets count, records do not": Anomaly.MISSING_OUTPUT,
    "records count, offsets do not": Anomaly.UNCOUNTED_OUTPUT,
}
"""What can be wrong, and the anomaly that it must be found as (others may be found besides)."""


@dataclass(slots=True, eq=False)
class Txn:
    """``state``: open, committed or aborted; per partition while markers are on their way."""

    name: str
    entries: list[tuple[str, Entry]] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    must_commit: bool = False
    """A fault has touched it that would be lawful if it were not committed."""
    asked: bool = False
    """Its fate is decided, or asked for."""
    doubtful: bool = False
    """Nobody will be told of its fate."""
    transforms: bool = False


@dataclass(slots=True, eq=False)
class Entry:
    """A record; a marker or a hole when ``value`` is None."""

    value: str | None
    txn: Txn | None = None
    state: str = "committed"


class World:
    """One run. ``events`` is the history."""

    def __init__(self, seed: int, fault: str | None = None) -> None:
        self.rng = random.Random(seed)
        self.fault = fault
        self.struck = False
        self.ready = False
        """Whether the fault may strike yet."""
        self.events: list[dict[str, Any]] = []
        self.logs: dict[str, list[Entry]] = {partition: [] for partition in PARTITIONS}
        self.offsets: dict[str, int] = {}
        self.pending: dict[str, Txn] = {}
        self.generation = 0
        self.members: list[str] = []
        self.late: list[tuple[Txn, bool]] = []
        self.stray: list[tuple[str, str]] = []
        self.names = 0
        self.stopping = False
        self.doubted: set[tuple[str, int]] = set()
        """Offsets that somebody sent without hearing whether they count."""
        self.dreaming = False
        """A member is not heard of for long."""

    def note(self, process: str, kind: str, op: str, **fields: Any) -> None:
        self.events.append({"time": len(self.events), "process": process, "type": kind, "op": op, **fields})

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def strike(self, fault: str) -> bool:
        """Whether this fault strikes here and now; once."""
        if self.fault != fault or self.struck or not self.ready:
            return False
        self.struck = True
        return True

    # -- the cluster ---------------------------------------------------------------------------------------------------------

    def append(self, partition: str, value: str, txn: Txn | None, *, told: bool = True) -> int:
        """The offset that is acknowledged; ``told``: the client will hear of it."""
        log = self.logs[partition]
        entry = Entry(value, txn, "open" if txn else "committed")
        gone = "a record of a transaction is not written" if txn else "an acknowledged record is not written"
        if told and (txn is None or (txn.entries and not txn.transforms)) and self.strike(gone):
            entry.value = None
            if txn is not None:
                txn.must_commit = True
        log.append(entry)
        offset = len(log) - 1
        if txn is not None:
            txn.entries.append((partition, entry))
        if self.strike("a retry in a transaction is written twice" if txn else "a retry is written twice"):
            log.append(Entry(value, txn, entry.state))
            if txn is not None:
                txn.entries.append((partition, log[-1]))
                txn.must_commit = True
        if told and txn is None and self.strike("a wrong offset is acknowledged"):
            return offset + 1
        if txn is not None and self.stray and not txn.transforms:
            where, what = self.stray.pop()
            self.logs[where].append(Entry(what, txn, "open"))
            txn.entries.append((where, self.logs[where][-1]))
            txn.must_commit = True
        return offset

    def end(self, txn: Txn, commit: bool, *, torn: bool = False, told: bool = True) -> Steps:
        """Markers, partition by partition, then the offsets. ``told``: the client will hear of it."""
        partitions = list(dict.fromkeys(partition for partition, _ in txn.entries))
        odd: str | None = None
        data = commit
        split = "a commit becomes an abort in one partition" if commit else "an abort becomes a commit in one partition"
        if len(partitions) > commit and not txn.doubtful and self.strike(split):
            odd = partitions[0]
        elif partitions and not commit and not txn.doubtful and self.strike("an abort becomes a commit"):
            data = True
        elif torn:
            odd = partitions[0]
        elif partitions and commit and told:
            gone = "offsets count, records do not" if txn.offsets else "all records of a commit are gone"
            data = not self.strike(gone)
        for partition in partitions:
            state = "committed" if data is not (partition == odd) else "aborted"
            for where, entry in txn.entries:
                if where == partition:
                    entry.state = state
            self.logs[partition].append(Entry(None))
            yield
        count = commit
        if txn.offsets and commit and told and self.strike("records count, offsets do not"):
            self.fault = "records count, offsets do not (and the group stays there)"
            self.stopping = True
            count = False
        clear = told and not self.doubted.intersection(txn.offsets.items())
        if txn.offsets and not commit and clear and self.strike("offsets of an aborted transaction count"):
            count = True
        if (
            txn.offsets
            and commit
            and told
            and self.offsets.keys() >= txn.offsets.keys()
            and self.strike("committed offsets are forgotten")
        ):
            count = False
        for partition, offset in txn.offsets.items():
            if count:
                self.offsets[partition] = offset
            if self.pending.get(partition) is txn:
                del self.pending[partition]

    def stable_end(self, partition: str) -> int:
        """The last stable offset."""
        log = self.logs[partition]
        return next((offset for offset, entry in enumerate(log) if entry.state == "open"), len(log))

    def read(self, partition: str, start: int, limit: int, *, committed_only: bool) -> tuple[list[list[Any]], int]:
        """Records and where the reader stands afterwards."""
        log = self.logs[partition]
        end = self.stable_end(partition) if committed_only else len(log)
        if committed_only and end < len(log) and start <= end and self._early(log[end]):
            return [[partition, end, log[end].value]], end + 1
        found: list[list[Any]] = []
        position = start
        while position < end and len(found) < limit:
            entry = log[position]
            if entry.value is not None and (
                not committed_only
                or entry.state == "committed"
                or (entry.txn and not entry.txn.doubtful and self.strike("a reader gets an aborted record"))
            ):
                found.append([partition, position, entry.value])
            position += 1
        return found, position

    def _early(self, entry: Entry) -> bool:
        """Whether a reader gets this open record, whose transaction will be committed."""
        txn = entry.txn
        if entry.value is None or txn is None or txn.asked or txn.transforms or not self.strike("a reader gets open records"):
            return False
        txn.must_commit = True
        return True

    # -- clients -------------------------------------------------------------------------------------------------------------

    def send(self, process: str, partition: str, txn: Txn | None, source: str | None = None) -> Iterator[None]:
        value = self.name("v")
        more = {name: field for name, field in (("txn", txn and txn.name), ("source", source)) if field is not None}
        self.note(process, "invoke", "send", partition=partition, value=value, **more)
        yield
        offset = self.append(partition, value, txn)
        yield
        self.note(process, "ok", "send", value=value, offset=offset)

    def swapped(self, process: str, partition: str, txn: Txn | None) -> None:
        """Two sends whose records lie the wrong way round."""
        first, second = self.name("v"), self.name("v")
        more = {} if txn is None else {"txn": txn.name}
        for value in (first, second):
            self.note(process, "invoke", "send", partition=partition, value=value, **more)
        offsets = [self.append(partition, value, txn) for value in (second, first)]
        for value, offset in zip((second, first), offsets, strict=True):
            self.note(process, "ok", "send", value=value, offset=offset)

    def plain_producer(self) -> Steps:
        process = self.name("plain")
        while not self.stopping:
            if self.rng.random() < 0.1:  # the answer is lost, the record perhaps as well
                value = self.name("v")
                self.note(process, "invoke", "send", partition=PLAIN[0], value=value)
                if self.rng.random() < 0.5:
                    self.append(PLAIN[0], value, None, told=False)
                self.note(process, "info", "send", value=value)
            elif self.strike("records of a producer change places"):
                self.swapped(process, PLAIN[0], None)
            else:
                yield from self.send(process, PLAIN[0], None)
            yield

    def finish(self, process: str, txn: Txn) -> Generator[None, None, str]:
        """Commit, abort or die: done, aborted, or dead, when the client goes no further."""
        way = (
            "commit"
            if txn.must_commit
            else self.rng.choices(("commit", "abort", "die", "unknown", "refused"), (6, 3, 1, 1, 0.5))[0]
        )
        txn.asked, txn.doubtful = True, way == "unknown"
        if way == "die":
            self.late.append((txn, False))
            return "dead"
        self.note(process, "invoke", "abort" if way == "abort" else "commit", txn=txn.name)
        yield
        if way == "unknown":
            self.doubted.update(txn.offsets.items())
            happens = self.rng.random() < 0.5
            several = len({partition for partition, _ in txn.entries}) > 1
            if several and self.strike("an unknown commit happens in one partition only"):
                yield from self.end(txn, True, torn=True)
            else:
                self.late.append((txn, happens))
            if self.rng.random() < 0.5:
                self.note(process, "info", "commit", txn=txn.name)
            return "dead"
        happens = way == "commit" or (way == "refused" and bool(txn.entries) and self.strike("a refused commit happens"))
        yield from self.end(txn, happens)
        self.note(process, "fail" if way == "refused" else "ok", "abort" if way == "abort" else "commit", txn=txn.name)
        return "dead" if way == "refused" else "aborted" if way == "abort" else "done"

    def transactional_producer(self) -> Steps:
        process = self.name("producer")
        position = dict.fromkeys(OUTPUTS, 0)
        self.note(process, "ok", "position", positions=dict(position))
        while not self.stopping:
            txn = Txn(self.name("t"))
            self.note(process, "ok", "begin", txn=txn.name)
            for _ in range(self.rng.randint(1, 4)):
                partition = self.rng.choice(INPUTS)
                if self.strike("records of a transaction change places"):
                    self.swapped(process, partition, txn)
                else:
                    yield from self.send(process, partition, txn)
                if self.rng.random() < 0.3:
                    self.poll(process, position, committed_only=True, txn=txn)
                yield
            if not txn.must_commit and self.strike("a record of an aborted transaction is late and joins the next"):
                value = self.name("v")
                self.note(process, "invoke", "send", partition=INPUTS[0], value=value, txn=txn.name)
                self.note(process, "info", "send", value=value)
                self.stray.append((INPUTS[0], value))
                self.note(process, "invoke", "abort", txn=txn.name)
                yield from self.end(txn, False)
                self.note(process, "ok", "abort", txn=txn.name)
                continue
            if (yield from self.finish(process, txn)) == "dead":
                process = self.name("producer")
                position = dict.fromkeys(OUTPUTS, 0)
                self.note(process, "ok", "position", positions=dict(position))

    def poll(
        self, process: str, position: dict[str, int], *, committed_only: bool, txn: Txn | None = None, limit: int = 5
    ) -> int:
        """Moves ``position``; how many records there were."""
        records: list[list[Any]] = []
        for partition in sorted(position):
            found, position[partition] = self.read(partition, position[partition], limit, committed_only=committed_only)
            records += found
            if txn is None and not self.stopping:
                records = self.spoil(records, found, position)
        more = {} if txn is None else {"txn": txn.name}
        level = "read_committed" if committed_only else "read_uncommitted"
        told = {"positions": dict(position)} if self.rng.random() < 0.5 else {}
        if records or self.rng.random() < 0.05:
            self.note(process, "ok", "poll", isolation=level, records=records, **told, **more)
        return len(records)

    def spoil(self, records: list[list[Any]], found: list[list[Any]], position: dict[str, int]) -> list[list[Any]]:
        """The faults of a fetch, where there is enough to spoil."""
        if len(found) > 2 and self.strike("a poll leaves a record out"):
            return [record for record in records if record is not found[1]]
        if len(found) > 1 and self.strike("a poll is out of order"):
            at = records.index(found[0])
            records[at], records[at + 1] = records[at + 1], records[at]
        if len(found) > 2 and self.strike("a reader is thrown back"):
            position[found[0][0]] = found[0][1]
        partition = found[0][0] if found else ""
        if found and found[-1][1] + 2 < self.stable_end(partition):
            following = self.logs[partition][found[-1][1] + 1 : found[-1][1] + 3]
            there = all(entry.value is not None and entry.state == "committed" for entry in following)
            if there and self.strike("a reader is thrown forward"):
                position[partition] = found[-1][1] + 2
        if found and self.strike("a reader gets what nobody sent"):
            found[0][2] = "nobody's"
        if len(found) > 1 and self.strike("two readers get different records at one offset"):
            found[0][2] = found[1][2]
        return records

    def reader(self, committed_only: bool) -> Steps:
        process = self.name("reader")
        watched = [partition for partition in PARTITIONS if self.rng.random() < 0.7] or list(PARTITIONS)
        position = dict.fromkeys(watched, 0)
        self.note(process, "ok", "position", positions=dict(position))
        while not self.stopping:
            yield
            self.poll(process, position, committed_only=committed_only)
            luck = 1.0 if self.struck else self.rng.random()  # a reader that goes elsewhere would hide what has struck it
            if luck < 0.05:
                partition = self.rng.choice(watched)
                position[partition] = self.rng.randint(0, position[partition])
                known = position[partition] if self.rng.random() < 0.7 else None
                self.note(process, "ok", "position", positions={partition: known})
            elif luck < 0.08:
                partition = self.rng.choice(watched)
                self.note(process, "ok", "revoke", partitions=[partition])
                position[partition] = self.rng.randint(0, self.stable_end(partition))

    def mine(self, process: str) -> list[str]:
        """The partitions of a member."""
        return [partition for index, partition in enumerate(INPUTS) if self.members[index % len(self.members)] == process]

    def rebalance(self) -> Steps:
        while not self.stopping:
            for _ in range(self.rng.randint(20, 60)):
                yield
            self.generation += 1
            self.rng.shuffle(self.members)

    def transformer(self) -> Steps:
        process = self.name("transformer")
        self.members.append(process)
        self.generation += 1
        while not self.stopping:
            yield
            generation, partitions = self.generation, self.mine(process)
            while any(partition in self.pending for partition in partitions):
                yield
            position = {partition: self.offsets.get(partition, 0) for partition in partitions}
            if position:
                self.note(process, "invoke", "fetch")
                told = {partition: self.offsets.get(partition, -1) for partition in partitions}
                self.note(process, "ok", "fetch", group=GROUP, offsets=told)
                self.note(process, "ok", "position", positions=dict(position))
            fate = "done"
            while position and fate == "done" and self.generation == generation and not self.stopping:
                fate = yield from self.transform(process, position, generation)
            if fate == "dead":
                self.members.remove(process)
                process = self.name("transformer")
                self.members.append(process)
                self.generation += 1
            elif position:
                self.note(process, "ok", "revoke", partitions=partitions)

    def transform(self, process: str, position: dict[str, int], generation: int) -> Generator[None, None, str]:
        """One transaction: done, dead, or again, when the member has to ask where the group stands."""
        records: list[list[Any]] = []
        for partition in sorted(position):
            found, position[partition] = self.read(partition, position[partition], 3, committed_only=True)
            records += found
        if not records:
            yield
            return "done"
        self.note(process, "ok", "poll", records=records)
        txn = Txn(self.name("t"), transforms=True)
        self.note(process, "ok", "begin", txn=txn.name)
        for _, _, value in records:
            yield from self.send(process, self.rng.choice(OUTPUTS), txn, source=value)
        first = records[0]
        if self.ready and not self.dreaming and self.fault == "a member without its partitions may commit":
            self.dreaming = True
            while self.offsets.get(first[0], 0) <= first[1] and not self.stopping:  # until another member has done the same
                yield
        self.note(process, "invoke", "offsets", group=GROUP, offsets=dict(position), txn=txn.name)
        yield
        stale = self.generation != generation
        zombie = stale and self.offsets.get(first[0], 0) > first[1]
        if stale and not (zombie and self.strike("a member without its partitions may commit")):
            self.note(process, "fail", "offsets", group=GROUP, txn=txn.name)
            self.note(process, "invoke", "abort", txn=txn.name)
            yield from self.end(txn, False)
            self.note(process, "ok", "abort", txn=txn.name)
            return "again"
        if stale:
            txn.must_commit = True
        txn.offsets = dict(position)
        self.pending.update(dict.fromkeys(position, txn))
        self.note(process, "ok", "offsets", group=GROUP, txn=txn.name)
        fate = yield from self.finish(process, txn)
        # After an abort, as after losing the partitions, it begins again where the group stands.
        committed = fate == "done" and all(self.offsets.get(p) == offset for p, offset in position.items())
        return fate if fate == "dead" else "done" if committed else "again"

    def coordinator(self) -> Steps:
        """Ends what clients have left, and what it was late with."""
        while True:
            yield
            if self.late and self.rng.random() < 0.2:
                txn, commit = self.late.pop(self.rng.randrange(len(self.late)))
                yield from self.end(txn, commit, told=False)

    # -- the run -------------------------------------------------------------------------------------------------------------

    def run(self, steps: int) -> list[dict[str, Any]]:
        """The history of so many steps, and of the reading to the end after them."""
        crowd = [
            self.coordinator(),
            self.rebalance(),
            self.plain_producer(),
            *(self.transactional_producer() for _ in range(3)),
            *(self.transformer() for _ in range(2)),
            *(self.reader(committed_only) for committed_only in (True, True, False)),
        ]
        for step in range(steps):
            self.ready = steps // 3 < step < steps * 2 // 3
            if self.stopping:
                break
            next(self.rng.choice(crowd), None)
        self.stopping = True
        for process in crowd[1:]:
            for _ in zip(range(1000), process, strict=False):
                next(crowd[0])
        while self.late or self.pending or any(entry.state == "open" for log in self.logs.values() for entry in log):
            next(crowd[0])
        self.cut_off()
        self.drain()
        return self.events

    def cut_off(self) -> None:
        """The fault that comes last."""
        log = self.logs[PLAIN[0]]
        if self.fault == "the end of a log is cut off":
            value = self.name("v")
            self.note("last", "invoke", "send", partition=PLAIN[0], value=value)
            self.note("last", "ok", "send", value=value, offset=len(log))
            self.struck = True

    def drain(self) -> None:
        """Read everything, and where the group ended."""
        process = self.name("final")
        position = dict.fromkeys(PARTITIONS, 0)
        self.note(process, "ok", "position", positions=dict(position))
        while self.poll(process, position, committed_only=True, limit=50):
            pass
        self.note(process, "ok", "drain", positions={partition: self.stable_end(partition) for partition in PARTITIONS})
        self.note(process, "invoke", "fetch")
        told = {partition: self.offsets.get(partition, -1) for partition in INPUTS}
        self.note(process, "ok", "fetch", group=GROUP, offsets=told)


def history(seed: int, steps: int = 3000, fault: str | None = None) -> tuple[list[dict[str, Any]], bool]:
    """The history of one run, and whether its fault has struck."""
    world = World(seed, fault)
    return world.run(steps), world.struck
