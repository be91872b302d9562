from __future__ import annotations

from dataclasses import replace

from tests.unit.server.replica_pair import Pair, placed, run
from tidelog.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from tidelog.replication.fetcher import FetcherSettings
from tidelog.replication.throttle import ALL
from tidelog.server.replication.replica_fetcher import fetcher_settings


def test_replication_stops_as_often_as_it_is_told_to() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1))
        pair.start()
        await pair.stop()
        await pair.stop()
        assert not pair.replications[2].fetchers

    run(story)


def test_the_settings_of_a_fetcher_are_the_brokers() -> None:
    async def story(pair: Pair) -> None:
        settings = fetcher_settings(pair.replications[1].config)
        assert settings == FetcherSettings(max_wait_ms=50, backoff_ms=40)

    run(story)


def test_an_isr_change_that_the_controller_could_not_decide_is_asked_again() -> None:
    async def story(pair: Pair) -> None:
        submit = pair.submit
        refusals = iter([KafkaError(ErrorCode.NOT_CONTROLLER, "none"), None])

        async def refuse_once(handler: object, request: AlterPartitionRequest) -> AlterPartitionResponse:
            error = next(refusals)
            if error is not None:
                raise error
            return await submit(handler, request)

        pair.submit = refuse_once  # type: ignore[method-assign]
        pair.create(placed(1, isr=(1,)))
        pair.start()
        await pair.until(lambda: pair.worlds[1].partition("t").isr == (1, 2))
        assert pair.isr_requests[0].broker_epoch == 5

    run(story)


def test_many_partitions_that_catch_up_together_are_asked_for_together() -> None:
    async def story(pair: Pair) -> None:
        pair.create(*[placed(1, isr=(1,)) for _ in range(30)])
        pair.start()
        await pair.until(lambda: all(each.isr == (1, 2) for each in pair.worlds[1].manager.partitions()))
        assert len(pair.isr_requests) == 1

    run(story)


def test_throttles_come_from_the_brokers_and_the_topics_settings() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1))
        follower = pair.replications[2]
        configs = {
            (BROKER_RESOURCE, ""): {"follower.replication.throttled.rate": "1000"},
            (BROKER_RESOURCE, "2"): {
                "leader.replication.throttled.rate": "5",
                "replica.alter.log.dirs.io.max.bytes.per.second": "7",
            },
            (TOPIC_RESOURCE, "t"): {"follower.replication.throttled.replicas": "0:2,1:1"},
        }
        follower.follow(replace(follower.replicas.image, configs=configs))
        throttles = follower.replicas.throttles
        assert (throttles.follower.rate, throttles.leader.rate, throttles.log_dirs.rate) == (1000, 5, 7)
        assert throttles.follower.applies("t", 0) and not throttles.follower.applies("t", 1)
        assert not throttles.leader.applies("t", 0)

    run(story)


def test_a_throttled_follower_out_of_sync_waits_before_it_asks_for_more() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1, isr=(1,)))
        pair.replications[2].replicas.throttles.follower.change(1, {"t": ALL})
        pair.produce(b"x" * 500)
        pair.start()
        await pair.until(lambda: pair.log(2).log_end_offset == 1)
        assert pair.worlds[1].partition("t").isr == (1,)
        assert pair.replications[2].fetchers[1, 0].machine.next_due_ms() is not None

    run(story)
