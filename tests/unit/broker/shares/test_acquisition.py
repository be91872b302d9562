"""ShareFetching: limits, waiting, and one fetch at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.broker.node_world import run
from tests.unit.broker.shares.test_log_reading import partition
from tests.unit.broker.shares.test_share_partitions import World
from tidelog.broker.shares import acquisition
from tidelog.broker.shares.acquisition import ParkedShareFetch, ShareFetching
from tidelog.broker.shares.hosted_share import HostedShare
from tidelog.broker.shares.log_reading import ShareRead, read_log
from tidelog.broker.shares.share_sessions import Place, ShareSession
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.share_fetch import ShareFetchRequest
from tidelog.replication.partition import Partition


class Fetches(World):
    """Fetches of group ``g`` from the ten records of one partition; a wait ends when the deadline has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0
        self.places = 1
        self.during_wait: Callable[[], object] = lambda: None
        self.settings.committed_only = lambda group_id: False
        self.clock.wait = self.wait
        replicas = SimpleNamespace(by_id=lambda topic_id, index: self.partition)
        node = SimpleNamespace(share_partitions=self.shares, runtime=self.clock, replicas=replicas)
        self.ctx: Any = SimpleNamespace(node=node, config=BrokerConfig.from_properties({}), wait=self.wait)
        self.hosted = self.serve()
        self.readable = {self.place.topic_id: ErrorCode.NONE}

    async def wait(self, parked: ParkedShareFetch) -> None:
        self.waits += 1
        self.during_wait()
        assert parked in self.hosted.watchers and parked in self.partition.watchers
        self.clock.now += 1_000
        parked.expired = True
        parked.finish()

    def fetch(self, member: str = "m", **limits: Any) -> ShareFetching:
        values = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, **limits}
        session = self.session(member)
        session.add([self.place._replace(partition=index) for index in range(self.places)])
        return self.fetch_in(session, **values)

    def fetch_in(self, session: ShareSession, **values: Any) -> ShareFetching:
        request = ShareFetchRequest("g", session.member_id, session.epoch, **values)
        fetch = ShareFetching(self.ctx, session, request, self.readable, exact=False)
        run(fetch.run())
        for tick in self.clock.tasks:
            tick.close()
        self.clock.tasks.clear()
        self.shares._ticks = False
        return fetch

    def got(self, fetch: ShareFetching) -> list[tuple[int, ...]]:
        return [tuple(each) for found in fetch.results.values() for each in found.acquired]


def test_what_is_there_is_acquired_at_once() -> None:
    world = Fetches()
    assert world.got(world.fetch(max_records=3)) == [(0, 4, 1)]
    assert world.got(world.fetch("n")) == [(5, 9, 1)]
    assert world.waits == 0 and not world.hosted.watchers and not world.partition.watchers


def test_it_waits_for_records_and_for_enough_of_them() -> None:
    world = Fetches()
    assert world.got(world.fetch(min_bytes=100_000)) == [(0, 9, 1)]
    assert world.waits == 1, "what there is when the time is over is taken"
    assert world.got(world.fetch("n")) == []
    assert world.waits == 2 and not world.hosted.watchers


def test_no_limit_no_fetch() -> None:
    world = Fetches()
    assert world.fetch(max_records=0).results == {} and world.fetch(max_bytes=0).results == {}
    assert world.waits == 0


def test_one_fetch_at_a_time_reads_a_share_partition() -> None:
    world = Fetches()
    assert world.hosted.begin_read(ParkedShareFetch(0))
    assert world.got(world.fetch(max_wait_ms=0)) == []
    world.hosted.end_read()
    assert world.got(world.fetch(max_wait_ms=0)) == [(0, 9, 1)]
    assert world.hosted.begin_read(ParkedShareFetch(0))


def test_an_error_is_the_answer() -> None:
    world = Fetches()
    world.partition.is_leader = False
    found = world.fetch()
    assert found.results[Place(world.place.topic_id, 0)].error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.waits == 0


def test_a_log_start_that_moved_is_followed() -> None:
    world = Fetches()
    assert world.partition.delete_records(7)[0] is ErrorCode.NONE
    assert world.got(world.fetch()) == [(7, 9, 1)]
    assert isinstance(world.hosted, HostedShare) and world.hosted.machine.start_offset == 7


def test_only_one_partition_of_a_fetch_may_exceed_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Fetches()
    asked: list[bool] = []

    def read(partition: Any, offset: int, max_bytes: int, **how: Any) -> ShareRead:
        asked.append(how["min_one"])
        return read_log(partition, offset, max_bytes, **how)

    monkeypatch.setattr(acquisition, "read_log", read)
    world.places = 3
    for index in range(3):
        world.shares.serve("g", world.place._replace(partition=index), world.partition)
    world.clock.run()
    fetch = world.fetch(max_bytes=1)
    assert asked == [True, False, False]
    assert world.got(fetch) == [(0, 4, 1)]


def test_a_session_that_was_replaced_gets_no_records() -> None:
    world = Fetches()
    world.during_wait = lambda: world.shares.sessions.open("g", "m", None)
    assert world.got(world.fetch(min_bytes=100_000)) == []
    assert world.hosted.machine.spans() == []


def test_a_log_start_that_moves_makes_room_at_the_limit() -> None:
    world = Fetches()
    world.settings.most = 5
    assert world.got(world.fetch(max_records=5)) == [(0, 4, 1)]
    assert world.partition.delete_records(5)[0] is ErrorCode.NONE
    assert world.got(world.fetch("n", max_wait_ms=0)) == [(5, 9, 1)]


HIDDEN = Place(b"h" * 16, 0)
LIMITS = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}


def test_an_error_of_one_partition_does_not_end_the_wait_for_another() -> None:
    world = Fetches()
    world.readable[HIDDEN.topic_id] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert world.got(world.fetch("n")) == [(0, 9, 1)]
    session = world.session("m")
    session.add([HIDDEN])
    found = world.fetch_in(session, **LIMITS)
    assert found.results[HIDDEN].error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert world.waits == 1


def test_an_error_that_comes_up_ends_the_wait() -> None:
    world = Fetches()
    assert world.got(world.fetch("n")) == [(0, 9, 1)]
    session = world.session("m")
    session.add([Place(world.place.topic_id, 1)])
    others = [world.partition, partition(3)]
    others[1].is_leader = True
    world.ctx.node.replicas = SimpleNamespace(by_id=lambda topic_id, index: others[index])

    async def leader_moves(parked: ParkedShareFetch) -> None:
        world.waits += 1
        others[1].is_leader = False
        parked.finish()

    world.ctx.wait = leader_moves
    found = world.fetch_in(session, **LIMITS)
    assert found.results[Place(world.place.topic_id, 1)].error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.waits == 1


def test_a_read_of_aborted_records_only_is_followed_by_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Fetches()
    reads: list[int] = []

    def aborted_first(read: Partition, offset: int, max_bytes: int, **how: Any) -> ShareRead:
        found = read_log(read, offset, 1, **how)
        reads.append(offset)
        return found._replace(aborted=[(0, 4)]) if offset == 0 else found

    monkeypatch.setattr(acquisition, "read_log", aborted_first)
    assert world.got(world.fetch()) == [(5, 9, 1)]
    assert reads == [0, 5]
    assert world.waits == 0


def all_aborted(world: Fetches, monkeypatch: pytest.MonkeyPatch, takes_ms: int) -> list[int]:
    """Each read finds one batch, whose transaction was aborted; where it began."""
    reads: list[int] = []

    def aborted(read: Partition, offset: int, max_bytes: int, **how: Any) -> ShareRead:
        reads.append(offset)
        world.clock.now += takes_ms
        return read_log(read, offset, 1, **how)._replace(aborted=[(0, 9)])

    monkeypatch.setattr(acquisition, "read_log", aborted)
    return reads


def test_others_have_their_turn_between_reads_of_aborted_records(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Fetches()
    reads = all_aborted(world, monkeypatch, 0)
    turns: list[tuple[float, int]] = []

    async def sleep(seconds: float) -> None:
        turns.append((seconds, len(reads)))

    world.clock.sleep = sleep  # type: ignore[method-assign]
    assert world.got(world.fetch()) == []
    assert reads == [0, 5] and turns == [(0, 1), (0, 2)]


def test_a_fetch_whose_time_is_over_reads_no_further_aborted_records(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Fetches()
    reads = all_aborted(world, monkeypatch, 600)
    assert world.got(world.fetch(max_wait_ms=1_000)) == []
    assert reads == [0, 5]
    world = Fetches()
    reads = all_aborted(world, monkeypatch, 0)
    fetch = world.fetch(max_wait_ms=0)
    assert (world.got(fetch), reads) == ([], [0])
    assert fetch.results[world.place].error is ErrorCode.NONE


def test_a_wake_looks_only_at_what_is_served_here() -> None:
    """A session may name 50,000 partitions that are not here; each wake of its fetch cost the loop a look at all of them."""
    world = Fetches()
    assert world.got(world.fetch("n")) == [(0, 9, 1)]
    session = world.session("m")
    session.add([world.place._replace(partition=index) for index in range(5 * acquisition.A_TURN)])
    looks: list[int] = []
    turns: list[int] = []

    def by_id(topic_id: bytes, index: int) -> Partition | ErrorCode:
        looks.append(index)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if index else world.partition

    async def sleep(seconds: float) -> None:
        turns.append(len(looks))

    async def wakes(parked: ParkedShareFetch) -> None:
        world.waits += 1
        world.clock.now += 100
        parked.finish()

    world.ctx.node.replicas = SimpleNamespace(by_id=by_id)
    world.ctx.wait = wakes
    world.clock.sleep = sleep  # type: ignore[method-assign]
    found = world.fetch_in(session, **LIMITS)
    assert world.waits == 5
    assert sorted(looks[: 5 * acquisition.A_TURN]) == list(range(5 * acquisition.A_TURN))
    assert looks[5 * acquisition.A_TURN :] == [0] * 5, "one for each wake"
    assert max(after - before for before, after in pairwise([0, *turns])) <= acquisition.A_TURN
    errors = [each.error for place, each in found.results.items() if place.partition]
    assert errors == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * (5 * acquisition.A_TURN - 1)
    assert found.results[world.place].error is ErrorCode.NONE


def test_a_share_partition_that_ends_while_another_one_is_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Fetches()
    world.places = 2
    world.shares.serve("g", world.place._replace(partition=1), world.partition)
    world.clock.run()
    other = world.shares.find("g", world.place._replace(partition=1))
    assert other is not None
    monkeypatch.setattr(acquisition.reading, "may_block", lambda log, offset, committed: True)

    async def run_blocking(job: Callable[[], object]) -> None:
        other.end(ErrorCode.FENCED_LEADER_EPOCH)

    world.ctx.run_blocking = run_blocking
    found = world.fetch()
    assert found.results[world.place._replace(partition=1)].error is ErrorCode.FENCED_LEADER_EPOCH
    assert world.got(found) == [(0, 9, 1)]
