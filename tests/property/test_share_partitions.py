"""Random histories of a share partition, compared with a model that has one entry for each record."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidelog.model.errors import ErrorCode
from tidelog.replication.share.acquiring import Want
from tidelog.replication.share.dead_letters import DeadLetter, unfinished
from tidelog.replication.share.record_state import Acknowledgement, AckType, RecordState, StateBatch
from tidelog.replication.share.share_partition import Change, ShareLimits, SharePartition

MEMBERS = ("ann", "bob", "cid")
LOCK_MS = 50


class ShareHistory(RuleBasedStateMachine):
    """``stored``: what is durable, by offset. A restart loads it, as a new leader does."""

    @initialize(data=st.data(), limit=st.integers(2, 6), locks=st.integers(5, 60), dead=st.booleans())
    def begin(self, data: st.DataObject, limit: int, locks: int, dead: bool) -> None:
        self.limits = ShareLimits(limit, locks, LOCK_MS, dead_letters=dead)
        self.letters: list[DeadLetter] = []
        self.log: list[tuple[int, int]] = []
        at = 0
        for hole, size in data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12)), min_size=1, max_size=12)):
            at += hole
            self.log.append((at, at + size - 1))
            at += size
        self.offsets = {offset for first, last in self.log for offset in range(first, last + 1)}
        self.stored: dict[int, tuple[RecordState, int]] = {}
        self.stored_start = self.log_start = 0
        self.finished: set[int] = set()
        self.gone: set[int] = set()
        self.held: dict[int, tuple[str, int]] = {}
        self.pending: list[tuple[Change, dict[int, tuple[str, int]]]] = []
        self.now_ms = 0
        self.machine = SharePartition(0, (), lambda: self.limits)

    @rule(
        member=st.sampled_from(MEMBERS),
        most=st.integers(1, 30),
        size=st.integers(1, 20),
        exact=st.booleans(),
        room=st.integers(1, 6),
    )
    def fetch(self, member: str, most: int, size: int, exact: bool, room: int) -> None:
        offset = self.machine.next_fetch_offset()
        batches = [one for one in self.log if one[1] >= offset][:room]
        before = self.machine.end_offset
        in_flight = self.machine.in_flight
        got = self.machine.acquire(offset, batches, Want(member, most, size, exact), self.now_ms)
        last = -1
        for first, upto, count in got:
            assert last < first <= upto and 1 <= count <= self.limits.delivery_count
            last = upto
            for each in range(first, upto + 1):
                assert each not in self.finished, f"{each} was finished and is delivered again"
                assert each not in self.gone, f"{each} was given up and is delivered again"
                assert each not in self.held, f"{each} is held by {self.held[each]}"
                self.held[each] = (member, self.now_ms + LOCK_MS)
        if exact:
            assert sum(upto - first + 1 for first, upto, _ in got) <= most
        if in_flight >= self.limits.max_locks:
            assert self.machine.end_offset == before, "nothing new at the limit"
        if batches and in_flight < self.limits.max_locks and offset > before:
            assert got, "records are there, nobody has them, and there is room"

    @precondition(lambda self: self.held)
    @rule(data=st.data(), kind=st.sampled_from([AckType.ACCEPT, AckType.RELEASE, AckType.REJECT, AckType.GAP, AckType.RENEW]))
    def acknowledge(self, data: st.DataObject, kind: AckType) -> None:
        first = data.draw(st.sampled_from(sorted(self.held)))
        member = self.held[first][0]
        last = first
        while self.held.get(last + 1, ("", 0))[0] == member and data.draw(st.booleans()):
            last += 1
        answer = self.machine.acknowledge(member, [Acknowledgement(first, last, (kind,))], self.now_ms)
        assert isinstance(answer, Change), answer
        if kind is AckType.RENEW:
            assert not answer.batches
            for each in range(first, last + 1):
                self.held[each] = (member, self.now_ms + LOCK_MS)
            return
        taken = {each: self.held.pop(each) for each in range(first, last + 1)}
        self.pending.append((answer, taken))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), member=st.sampled_from(MEMBERS))
    def acknowledge_for_another(self, data: st.DataObject, member: str) -> None:
        first = data.draw(st.sampled_from(sorted(self.held)))
        if self.held[first][0] != member:
            before = self.machine.spans()
            answer = self.machine.acknowledge(member, [Acknowledgement(first, first, (1,))], self.now_ms)
            assert answer is ErrorCode.INVALID_RECORD_STATE
            assert self.machine.spans() == before

    @precondition(lambda self: self.pending)
    @rule(persisted=st.booleans())
    def persist(self, persisted: bool) -> None:
        change, taken = self.pending.pop(0)
        if persisted:
            self.store(change)
            self.letters += change.dead_letters
        again = self.machine.complete(change, self.now_ms, persisted=persisted)
        if again is not None:
            self.letters += again.dead_letters
        if not persisted:
            available = {e for first, last, state, _, _ in self.machine.spans() if state == 0 for e in range(first, last + 1)}
            for each, (member, deadline_ms) in taken.items():
                if each in self.gone:
                    continue
                if deadline_ms > self.now_ms:
                    self.held[each] = (member, deadline_ms)
                elif each not in available:  # its lock timed out meanwhile, and that was its last delivery
                    self.gone.add(each)

    def store(self, change: Change) -> None:
        self.stored_start = max(self.stored_start, change.start_offset)
        for batch in change.batches:
            for each in range(batch.first, batch.last + 1):
                if batch.state is not RecordState.AVAILABLE:
                    self.finished.add(each)
                if each >= self.stored_start:
                    self.stored[each] = (batch.state, batch.delivery_count)
        self.stored = {each: state for each, state in self.stored.items() if each >= self.stored_start}

    @rule(member=st.sampled_from(MEMBERS))
    def close(self, member: str) -> None:
        change = self.machine.release(member)
        taken = {each: self.held.pop(each) for each, (holder, _) in list(self.held.items()) if holder == member}
        assert (change is not None) == bool(taken)
        if change is not None:
            self.pending.append((change, taken))

    @rule(after_ms=st.integers(1, 60), persisted=st.booleans())
    def wait(self, after_ms: int, persisted: bool) -> None:
        self.now_ms += after_ms
        late = {each for each, (_, deadline_ms) in self.held.items() if deadline_ms <= self.now_ms}
        assert not late or self.machine.next_deadline() <= self.now_ms
        change = self.machine.expire(self.now_ms)
        assert {each for batch in change.batches for each in range(batch.first, batch.last + 1)} == late if change else not late
        for each in late:
            del self.held[each]
        if change is not None:
            self.gone |= {e for b in change.batches if b.state.is_terminal for e in range(b.first, b.last + 1)}
            if persisted:
                self.store(change)
            self.machine.complete(change, self.now_ms, persisted=persisted)
            self.letters += change.dead_letters

    @precondition(lambda self: self.letters)
    @rule(data=st.data(), persisted=st.booleans())
    def bury(self, data: st.DataObject, persisted: bool) -> None:
        letter = self.letters.pop(data.draw(st.integers(0, len(self.letters) - 1)))
        start = self.machine.start_offset
        change = self.machine.archive(letter)
        assert (change is None) == (letter.last < start)
        if change is not None:
            assert all(each.state is RecordState.ARCHIVED for each in change.batches)
            self.gone |= {each for batch in change.batches for each in range(batch.first, batch.last + 1)}
            if persisted:
                self.store(change)

    @rule(offset=st.integers(0, 60))
    def delete_records(self, offset: int) -> None:
        self.log = [one for one in self.log if one[1] >= offset]
        self.machine.move_start(offset)
        self.log_start = max(self.log_start, offset)
        self.gone |= set(range(offset))
        self.held = {each: held for each, held in self.held.items() if each >= offset}

    @rule()
    def new_leader(self) -> None:
        batches = [StateBatch(each, each, *state) for each, state in sorted(self.stored.items())]
        self.machine = SharePartition(self.stored_start, batches, lambda: self.limits)
        self.machine.move_start(self.log_start)
        self.held.clear()
        self.pending.clear()
        self.letters = list(unfinished(self.machine.spans(), self.limits.delivery_count))
        self.gone = {each for each in self.gone if each < max(self.stored_start, self.log_start)}
        self.finished = {e for e in self.finished if e < self.stored_start or (e in self.stored and self.stored[e][0] != 0)}

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "machine"):
            return
        self.machine.check()
        start = self.machine.start_offset
        dying = {e for first, last, state, _, _ in self.machine.spans() if state == 3 for e in range(first, last + 1)}
        known = {e for letter in self.letters for e in range(letter.first, letter.last + 1)}
        known |= {e for change, _ in self.pending for letter in change.dead_letters for e in range(letter.first, letter.last + 1)}
        assert dying <= known, f"{dying - known} would hold up the start for good"
        lost = {each for each in self.offsets if each < start} - self.finished - self.gone
        assert not lost, f"{lost} were skipped"
        held = {
            e
            for first, last, state, _, _ in self.machine.spans()
            if state is RecordState.ACQUIRED
            for e in range(first, last + 1)
        }
        assert held == {each for each in self.held if each >= start}


ShareHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestShareHistory = ShareHistory.TestCase


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5), st.sampled_from([0, 2, 4]), st.integers(1, 4)), max_size=8),
    st.integers(1, 20),
)
@settings(max_examples=300, deadline=None)
def test_after_a_load_everything_unfinished_is_delivered_once(stored: list[tuple[int, int, int, int]], most: int) -> None:
    at, batches = 0, []
    for hole, size, state, count in stored:
        at += hole
        batches.append(StateBatch(at, at + size - 1, RecordState(state), count))
        at += size
    machine = SharePartition(0, batches, ShareLimits)
    finished = {e for one in batches if one.state.is_terminal for e in range(one.first, one.last + 1)}
    log = [(first, first + 4) for first in range(0, at + 10, 5)]
    seen: list[int] = []
    while (offset := machine.next_fetch_offset()) <= log[-1][1]:
        read = [one for one in log if one[1] >= offset][:3]
        got = machine.acquire(offset, read, Want("ann", most, 3), 0)
        machine.check()
        assert got, offset
        seen += [each for first, last, _ in got for each in range(first, last + 1)]
    assert sorted(seen) == [each for each in range(log[-1][1] + 1) if each not in finished]
