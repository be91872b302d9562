"""SharePartitions: which are served, how sessions end, and the clock of the locks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.unit.broker.node_world import run
from tests.unit.broker.shares.hosted import Clock, Settings, Store, Turn
from tests.unit.broker.shares.test_log_reading import partition
from tidelog.broker.shares.hosted_share import HostedShare, Phase
from tidelog.broker.shares.share_partitions import SharePartitions
from tidelog.broker.shares.share_sessions import Place, ShareSession
from tidelog.config.resolve import BrokerConfig
from tidelog.coordinator.share.coordinator import Answer, Written
from tidelog.coordinator.share.records import ShareKey
from tidelog.model.errors import ErrorCode
from tidelog.replication.share.acquiring import Want
from tidelog.replication.share.record_state import Acknowledgement, RecordState


class Waiting(Clock):
    """Sleeps are over at once, and take their time."""

    async def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1000)

    async def wait(self, parked: Any) -> None:
        assert parked.done


class World:
    def __init__(self) -> None:
        self.clock: Any = Waiting()
        self.features = {"share.version": 1}
        image = SimpleNamespace(features=self.features)
        host: Any = SimpleNamespace(config=BrokerConfig.from_properties({}), runtime=self.clock, image=image)
        self.shares = SharePartitions(host)
        self.store: Any = Store()
        self.settings: Any = Settings()
        self.shares.store, self.shares.settings = self.store, self.settings
        self.partition = partition(5, 5)
        self.place = Place(self.partition.topic_id, 0)

    def serve(self, group: str = "g") -> HostedShare:
        hosted = self.shares.serve(group, self.place, self.partition)
        self.clock.run()
        return hosted

    def session(self, member: str, owner: object = None) -> ShareSession:
        session = self.shares.sessions.open("g", member, owner)
        assert isinstance(session, ShareSession)
        session.add([self.place])
        return session

    def acquire(self, hosted: HostedShare, member: str = "m") -> None:
        assert hosted.machine.acquire(0, [(0, 4), (5, 9)], Want(member, 5, 5), self.clock.now)


def test_a_share_partition_is_loaded_at_its_first_fetch_and_kept() -> None:
    world = World()
    assert world.shares.find("g", world.place) is None
    hosted = world.serve()
    assert hosted.phase is Phase.ACTIVE
    assert world.serve() is hosted and world.shares.find("g", world.place) is hosted
    assert world.serve("other") is not hosted


def test_a_failed_load_is_told_once_and_tried_again() -> None:
    world = World()
    world.store.stored = Answer(ErrorCode.NOT_COORDINATOR)
    hosted = world.serve()
    assert world.serve() is hosted and hosted.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.serve() is not hosted


def test_a_leader_that_moved_serves_nothing() -> None:
    world = World()
    hosted = world.serve()
    world.partition.leader_epoch += 1
    world.shares.follow()
    assert hosted.phase is Phase.GONE and hosted.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.serve() is not hosted


def test_a_lost_connection_releases_records_and_the_last_session_takes_the_partitions_along() -> None:
    world = World()
    hosted = world.serve()
    owner = object()
    world.session("m", owner)
    world.session("n")
    world.acquire(hosted)
    world.shares.lost(owner)
    world.clock.run()
    assert hosted.machine.spans() == [(0, 4, RecordState.AVAILABLE, 1, None)]
    assert hosted.phase is Phase.ACTIVE, "another member has a session"
    session = world.shares.sessions.find("g", "n")
    assert session is not None and world.shares.sessions.close(session)
    world.shares.leave(session)
    world.clock.run()
    assert hosted.phase is Phase.GONE and list(world.shares) == []


def test_locks_are_watched_while_there_are_any() -> None:
    world = World()
    hosted = world.serve()
    world.acquire(hosted)
    world.shares.acquired()
    world.shares.acquired()
    (tick,) = world.clock.tasks
    world.clock.tasks.clear()
    run(tick)
    assert world.clock.now >= 1_100
    assert hosted.machine.spans() == [(0, 4, RecordState.AVAILABLE, 1, None)]
    world.clock.run()


def test_a_lock_that_comes_back_after_the_clock_has_stopped_times_out_all_the_same() -> None:
    world = World()
    hosted = world.serve()
    world.session("m")
    world.acquire(hosted)
    world.store.error = ErrorCode.NOT_COORDINATOR
    hosted.acknowledge("m", [Acknowledgement(0, 4, (1,))])
    assert not world.shares._ticks, "the clock of the locks stands still"
    world.clock.run()
    assert hosted.machine.spans() == [(0, 4, RecordState.AVAILABLE, 1, None)]


class Slow(Store):
    """A store whose writes wait until the test lets them go."""

    def __init__(self) -> None:
        super().__init__()
        self.held = True

    async def write(self, key: ShareKey, written: Written) -> Answer:
        while self.held:
            await Turn()
        return await super().write(key, written)


def turn(world: World) -> None:
    """Each task goes on once."""
    for task in list(world.clock.tasks):
        try:
            task.send(None)
        except StopIteration:
            world.clock.tasks.remove(task)


def test_the_last_session_waits_for_its_release_and_so_does_the_request_that_closes_it() -> None:
    world = World()
    hosted = world.serve()
    store = world.store = world.shares.store = Slow()
    hosted._store = store
    session = world.session("m")
    world.acquire(hosted)
    assert world.shares.sessions.close(session)
    (released,) = world.shares.leave(session)
    answered: list[int] = []
    released.on_done = lambda: answered.append(1)
    turn(world)
    turn(world)
    assert not answered and hosted.phase is Phase.ACTIVE
    store.held = False
    turn(world)
    assert answered, "the request that closed the session is answered"
    turn(world)
    assert hosted.phase is Phase.GONE


def test_share_partitions_are_dropped_when_no_change_of_theirs_is_under_way() -> None:
    world = World()
    hosted = world.serve()
    store = world.store = world.shares.store = Slow()
    hosted._store = store
    session = world.session("m")
    world.acquire(hosted)
    world.clock.now += 200
    hosted.expire()
    world.shares.sessions.close(session)
    assert world.shares.leave(session) == []
    turn(world)
    assert hosted.phase is Phase.ACTIVE, "another one would begin without the timeout that is being persisted"
    store.held = False
    turn(world)
    assert hosted.phase is Phase.GONE and list(world.shares) == []


def test_nothing_is_kept_once_the_feature_is_off() -> None:
    world = World()
    hosted = world.serve()
    world.session("m")
    world.features["share.version"] = 0
    world.shares.follow()
    assert hosted.phase is Phase.GONE and list(world.shares) == [] and len(world.shares.sessions) == 0


def test_a_session_of_many_partitions_that_are_not_here_is_left_at_the_cost_of_those_that_are() -> None:
    world = World()
    hosted, other = world.serve(), world.serve("other")
    session = world.session("m")
    session.add([world.place._replace(partition=index) for index in range(1000)])
    world.acquire(hosted)
    world.acquire(other)
    looks: list[Place] = []
    find = world.shares.find
    world.shares.find = lambda group, place: looks.append(place) or find(group, place)  # type: ignore[method-assign,func-returns-value]
    assert world.shares.sessions.close(session)
    assert len(world.shares.leave(session)) == 1
    world.clock.run()
    assert looks == [world.place]
    assert other.machine.spans()[0][2] is RecordState.ACQUIRED
