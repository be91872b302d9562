"""Time moves without waiting, and everything due has happened when ``advance`` returns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tidelog.replication.purgatory import ParkedFetch
from tidelog.server.runtime import new_event_loop, system_now_ms
from tidelog.testing import Broker
from tidelog.testing.clock import Clock, MovableRuntime, steps

DAY_S = 86_400


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def test_a_session_ends_when_its_time_has_passed_and_the_client_comes_back(broker: Broker) -> None:
    broker.produce("t", "a", "b")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 3_000,
        }
    )
    consumer.subscribe(["t"])
    assert consumer.consume(1, 15)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    broker.advance(5)
    assert admin.describe_consumer_groups(["g"])["g"].result().state is ConsumerGroupState.STABLE
    broker.advance(11)
    assert admin.describe_consumer_groups(["g"])["g"].result().state is ConsumerGroupState.EMPTY
    while admin.describe_consumer_groups(["g"])["g"].result().state is not ConsumerGroupState.STABLE:
        consumer.poll(0.1)
    consumer.close()


def test_old_records_go_by_retention(broker: Broker) -> None:
    broker.create_topic("t", retention_ms=7 * DAY_S * 1000)
    broker.produce("t", "old")
    broker.advance(6 * DAY_S)
    broker.produce("t", "young")
    assert [message.text for message in broker.messages("t")] == ["old", "young"]
    broker.advance(8 * DAY_S)
    assert broker.messages("t") == []


def test_committed_offsets_of_an_empty_group_expire(broker: Broker) -> None:
    broker.produce("t", "a")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    broker.advance(6 * DAY_S)
    assert consumer.committed([TopicPartition("t", 0)], 10)[0].offset == 1
    broker.advance(2 * DAY_S)
    assert consumer.committed([TopicPartition("t", 0)], 10)[0].offset < 0
    consumer.close()


def test_a_delayed_request_is_served_when_its_delay_is_over(broker: Broker) -> None:
    broker.create_topic("t")
    broker.faults.delay("METADATA", 3600)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "socket.timeout.ms": 60_000})
    while broker.faults.pending:
        admin.poll(0.01)
    broker.advance(3600)
    assert "t" in admin.list_topics(timeout=15).topics


def test_a_transaction_that_is_forgotten_is_aborted_in_the_end(broker: Broker) -> None:
    broker.create_topic("t")
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x", "transaction.timeout.ms": 60_000}
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("t", "a")
    producer.flush(30)
    broker.produce("t", "behind it")
    reader = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "isolation.level": "read_committed"}
    consumer = Consumer(reader)
    consumer.assign([TopicPartition("t", 0, 0)])
    assert consumer.poll(0.5) is None
    broker.advance(120)
    message = consumer.poll(30)
    assert message is not None
    assert message.value() == b"behind it"
    consumer.close()


def test_a_broker_may_live_at_another_time() -> None:
    clock = Clock(datetime(2031, 5, 1, tzinfo=UTC))
    with Broker(clock=clock) as one, Broker(clock=clock) as other:
        clock.advance(3600)
        for broker in (one, other):
            broker.produce("t", "a")
            (message,) = broker.messages("t")
            assert datetime.fromtimestamp(message.timestamp_ms / 1000, UTC).strftime("%F %H") == "2031-05-01 01"
    with pytest.raises(ValueError, match="no time zone"):
        Clock(datetime(2031, 5, 1))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        (0, [0]),
        (10_000, [10_000]),
        (60_000, [60_000]),
        (90_000, [60_000, 30_000]),
        (660_000, [60_000] * 11),
        (DAY_S * 1000, [DAY_S * 1000 - 660_000, *[60_000] * 11]),
    ],
)
def test_a_long_step_ends_in_short_ones(total: int, expected: list[int]) -> None:
    assert steps(total) == expected


def test_time_does_not_go_back(broker: Broker) -> None:
    with pytest.raises(ValueError, match="cannot be moved back"):
        broker.advance(-1)


def test_a_clock_that_is_not_moved_is_the_machines() -> None:
    before = system_now_ms()
    assert before <= Clock().now_ms() <= system_now_ms()


def test_timers_ring_once_in_the_order_of_their_deadlines_and_those_that_are_not_due_stay() -> None:
    loop = new_event_loop()
    clock = Clock()
    runtime = MovableRuntime(loop, clock)
    rung: list[str] = []

    async def main() -> None:
        for name, delay_s in (("second", 20), ("first", 10), ("not due", 40)):
            runtime.call_later(delay_s, lambda name=name: rung.append(name))
        cancelled = runtime.call_later(5, lambda: rung.append("cancelled"))
        runtime.call_later(4, cancelled.cancel)
        again = [runtime.call_later(6, lambda: runtime.call_later(6, lambda: rung.append("set by a timer")))]
        assert again
        parked = ParkedFetch(runtime.now_ms() + 15_000, 1, committed=False)
        waiting = runtime.wait(parked)
        await loop.run_in_executor(None, clock.advance, 30)
        assert rung == ["first", "second"]
        assert waiting.done()
        await loop.run_in_executor(None, clock.advance, 9)
        assert rung == ["first", "second", "set by a timer"]

    loop.run_until_complete(asyncio.wait_for(main(), 10))
    loop.run_until_complete(runtime.close())
    loop.close()
    assert not runtime.timers


def test_a_timer_rings_by_itself_when_nobody_moves_the_clock() -> None:
    loop = new_event_loop()
    runtime = MovableRuntime(loop, Clock())

    async def main() -> None:
        await runtime.sleep(0.01)

    loop.run_until_complete(asyncio.wait_for(main(), 10))
    assert not runtime.timers
    loop.run_until_complete(runtime.close())
    loop.close()
