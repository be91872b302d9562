from __future__ import annotations

from tests.unit.replication.followed import EPOCH, follow, followed, led, produce
from tests.unit.replication.world import NOW_MS, World, batch
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from tidelog.replication.isr_and_high_watermark import is_followed
from tidelog.replication.leadership import Leadership
from tidelog.replication.partition import Partition
from tidelog.replication.reads import read_partition
from tidelog.replication.replica import Caller
from tidelog.storage.log_config import LogConfig


def high_watermark(partition: Partition) -> int:
    assert partition.log is not None
    return partition.log.high_watermark


def leadership(partition: Partition) -> Leadership:
    assert partition.leadership is not None
    return partition.leadership


def shrink(world: World, partition: Partition, even_ms: int) -> None:
    """The check that runs every half of replica.lag.time.max.ms."""
    assert partition in list(world.manager.partitions())
    world.manager.isr_step(even_ms)


def test_the_high_watermark_is_what_all_in_sync_replicas_hold_and_the_fetch_that_moves_it_is_told() -> None:
    _, partition = followed()
    produce(partition, 3)
    assert follow(partition, 0).high_watermark == 0
    assert follow(partition, 2).high_watermark == 2 == high_watermark(partition)
    follow(partition, 1)
    assert high_watermark(partition) == 2, "a follower that lost its tail does not move it back"


def test_a_follower_that_caught_up_is_asked_for_and_counts_before_the_controller_agrees() -> None:
    world, partition = followed(isr=(1,))
    produce(partition)
    follow(partition, 0)
    assert leadership(partition).pending is None
    follow(partition, 1)
    assert leadership(partition).pending == (1, 2)
    produce(partition)
    assert high_watermark(partition) == 1, "the maximal ISR holds it back"
    assert partition.isr == (1,) and world.manager.isr_changes.ready


def test_a_leader_is_followed_while_all_who_could_follow_it_in_office_fetch_from_it() -> None:
    _, partition = followed()
    assert not is_followed(partition, NOW_MS, 1000), "nobody has fetched yet"
    follow(partition, 0)
    assert is_followed(partition, NOW_MS + 1000, 1000) and not is_followed(partition, NOW_MS + 1001, 1000)
    _, alone = followed(isr=(1,))
    assert is_followed(alone, NOW_MS + 1 << 40, 1000), "nobody else could be elected"
    follow(alone, 0)
    produce(alone)
    follow(alone, 1)
    assert leadership(alone).pending == (1, 2)
    assert not is_followed(alone, NOW_MS + 1001, 1000), "the controller may have agreed, and elected it"


def test_below_the_minimum_in_sync_whoever_left_the_isr_may_have_been_elected_as_well() -> None:
    """With eligible leader replicas: nothing was acknowledged without them."""
    _, partition = followed(isr=(1,), config=LogConfig(min_insync_replicas=2))
    assert not is_followed(partition, NOW_MS, 1000)
    produce(partition)
    follow(partition, 0)
    assert is_followed(partition, NOW_MS + 1000, 1000) and not is_followed(partition, NOW_MS + 1001, 1000)


def test_a_follower_joins_only_from_where_this_leaders_epoch_began() -> None:
    _, partition = followed(isr=(1,))
    produce(partition, 5, NOW_MS)
    partition.update_metadata(led((1,), leader_epoch=1, partition_epoch=1), NOW_MS)
    follow(partition, 4)
    assert leadership(partition).pending is None
    follow(partition, 5)
    assert leadership(partition).pending == (1, 2)


def test_brokers_that_are_fenced_stopping_or_of_another_epoch_do_not_join() -> None:
    for change in ({"fenced": True}, {"in_controlled_shutdown": True}, {"epoch": EPOCH - 1}):
        world, partition = followed(isr=(1,))
        brokers = dict(world.image.brokers)
        brokers[2] = brokers[2]._replace(**change)
        world.set_brokers(brokers)
        follow(partition, 0)
        assert leadership(partition).pending is None, change


def test_a_fetch_of_an_incarnation_that_was_replaced_counts_for_nothing() -> None:
    _, partition = followed()
    produce(partition)
    assert follow(partition, 1, broker_epoch=EPOCH - 1).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert high_watermark(partition) == 0
    assert follow(partition, 1, broker_epoch=-1).error == ErrorCode.NONE, "versions before 15 do not say"
    assert high_watermark(partition) == 1


def test_the_leader_waits_for_a_close_follower_outside_of_the_isr_but_not_for_one_that_lags() -> None:
    world, partition = followed(isr=(1,))
    follow(partition, 0, NOW_MS)
    leadership(partition).settle((1,))
    produce(partition, 1, NOW_MS)
    assert high_watermark(partition) == 0
    shrink(world, partition, NOW_MS + 30_001)
    assert high_watermark(partition) == 1


def test_it_stands_while_the_isr_is_smaller_than_min_insync_replicas() -> None:
    _, partition = followed(config=LogConfig(min_insync_replicas=2))
    partition.update_metadata(led((1,), partition_epoch=1), NOW_MS)
    produce(partition, 1, NOW_MS + 60_000)
    assert high_watermark(partition) == 0
    partition.update_metadata(led((1, 2), partition_epoch=2), NOW_MS + 60_000)
    follow(partition, 1, NOW_MS + 60_000)
    assert high_watermark(partition) == 1


def test_who_lags_for_longer_than_allowed_is_to_leave_and_counts_until_the_controller_agrees() -> None:
    world, partition = followed()
    follow(partition, 0, NOW_MS)
    shrink(world, partition, NOW_MS + 90_000)
    assert leadership(partition).pending is None, "it has all that there is"
    produce(partition, 1, NOW_MS + 90_000)
    shrink(world, partition, NOW_MS + 30_000)
    assert leadership(partition).pending is None
    shrink(world, partition, NOW_MS + 30_001)
    assert leadership(partition).pending == (1,)
    assert leadership(partition).maximal_isr == {1, 2} and high_watermark(partition) == 0
    assert world.manager.isr_changes.ready


def test_one_change_is_asked_for_at_a_time() -> None:
    world, partition = followed()
    produce(partition)
    shrink(world, partition, NOW_MS + 30_001)
    follow(partition, 1, NOW_MS + 30_002)
    assert leadership(partition).pending == (1,)


def test_a_fetch_from_a_broker_that_is_no_replica_is_told_to_come_again() -> None:
    world = World()
    world.create("t")
    partition = world.partition("t")
    assert follow(partition, 0).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    with_epoch = read_partition(partition, 0, 100, min_one=True, leader_epoch=0, caller=None)
    assert with_epoch.error == ErrorCode.NONE


def test_parked_appends_end_when_the_followers_have_them() -> None:
    _, partition = followed()
    produce(partition)
    told: list[int] = []

    class Waits:
        def changed(self, _partition: object, _key: object, new_bytes: int) -> None:
            told.append(new_bytes)

    partition.watchers[Waits()] = None
    follow(partition, 1)
    assert partition.is_safe(0, -1)
    assert len(batch()) == told[0]


def test_a_follower_of_a_quiet_partition_joins_when_its_broker_is_unfenced_although_it_fetches_other_things() -> None:
    world, partition = followed(isr=(1,))
    produce(partition)
    fenced = world.image.brokers[2]._replace(fenced=True)
    world.set_brokers({**world.image.brokers, 2: fenced})
    follow(partition, 1)
    assert leadership(partition).pending is None
    world.replay(BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=EPOCH, fenced=-1))
    assert leadership(partition).pending == (1, 2)


def test_who_has_not_asked_for_anything_lately_does_not_join_on_its_own() -> None:
    world, partition = followed(isr=(1,))
    fenced = world.image.brokers[2]._replace(fenced=True)
    world.set_brokers({**world.image.brokers, 2: fenced})
    follow(partition, 0)
    world.now_ms += 30_001
    world.replay(BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=EPOCH, fenced=-1))
    assert leadership(partition).pending is None


def test_a_follower_that_left_the_session_with_a_quiet_partition_is_not_asked_for_and_not_waited_for() -> None:
    """Its log dir failed: the controller took it out of the ISR, and its fetcher asks for other partitions still."""
    world, partition = followed()
    produce(partition)
    caller = Caller(2, EPOCH, NOW_MS)
    read_partition(partition, 1, 1 << 20, min_one=True, caller=caller, follower_start=0, leader_epoch=-1)
    leadership(partition).left(Caller(2, EPOCH, NOW_MS), 1)
    assert leadership(partition).replicas[2].is_asking, "that was another of its fetchers"
    leadership(partition).left(caller, 1)
    world.create("t", led((1,), partition_epoch=1))
    assert leadership(partition).pending is None
    produce(partition)
    assert high_watermark(partition) == 2
    follow(partition, 2)
    assert leadership(partition).pending == (1, 2), "it is there again"
