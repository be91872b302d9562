from __future__ import annotations

from tests.unit.replication.followed import EPOCH, follow, led, produce
from tests.unit.replication.world import NOW_MS, World, topic_id
from tidelog.protocol.fastpath import FetchView
from tidelog.replication.fetch_sessions import FetchContext
from tidelog.replication.replica import Caller
from tidelog.replication.throttle import ALL, ReplicationQuota, throttled_partitions


def test_a_list_names_the_partitions_on_this_broker_or_all() -> None:
    assert throttled_partitions(("0:1", "1:2", "2:1"), 1) == {0, 2}
    assert throttled_partitions(("*",), 1) is ALL
    assert throttled_partitions((), 1) == frozenset()


def test_without_a_rate_nothing_is_throttled() -> None:
    quota = ReplicationQuota()
    quota.change(None, {"t": ALL})
    quota.record(1 << 40, NOW_MS)
    assert not quota.applies("t", 0) and quota.wait_ms(NOW_MS) == 0


def test_the_rate_is_kept_over_the_windows_and_what_is_too_much_is_waited_for() -> None:
    quota = ReplicationQuota(windows=3, window_ms=1000)
    quota.change(1000, {"t": frozenset((2,))})
    assert quota.applies("t", 2) and not quota.applies("t", 1) and not quota.applies("u", 2)
    quota.record(2000, NOW_MS)
    assert quota.wait_ms(NOW_MS) == 0, "two windows are full"
    quota.record(500, NOW_MS + 100)
    assert quota.wait_ms(NOW_MS + 100) == 500
    assert quota.wait_ms(NOW_MS + 3000) == 0, "the windows have passed"


def test_a_leader_sends_no_records_to_a_throttled_follower_out_of_sync_while_the_rate_is_used_up() -> None:
    world = World()
    world.create("t", led((1,)), led((1, 2)))
    for index in (0, 1):
        produce(world.partition("t", index), 3)
    quota = world.manager.throttles.leader
    quota.change(1, {"t": ALL})

    def sizes() -> list[int]:
        request = FetchView()
        request.session_epoch = -1
        request.topics = [(None, topic_id("t"), [(index, -1, 0, -1, 0, 1 << 20) for index in (0, 1)])]
        context = world.manager.sessions.open(request, NOW_MS, by_id=True, caller=Caller(2, EPOCH, NOW_MS))
        assert isinstance(context, FetchContext)
        work = world.manager.fetch(context, min_bytes=1, max_bytes=1 << 20, committed=False)
        return [read.size for read in work.reads.values()]

    first = sizes()
    assert all(first), "what one answer holds is counted when it is read"
    assert sizes() == [0, first[1]], "the one in sync is never held up"
    assert follow(world.partition("t", 0), 3).error == 0
