"""FastStream's applications against a broker of the test, over both of its Kafka clients."""

from __future__ import annotations

import asyncio

import pytest
from faststream.confluent import KafkaBroker as ConfluentBroker
from faststream.kafka import KafkaBroker as AiokafkaBroker

from tidelog.testing import Broker

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize("kind", [AiokafkaBroker, ConfluentBroker], ids=["aiokafka", "confluent"])
def test_a_subscriber_reads_what_a_publisher_sends_and_publishes_on(kind: type, tidelog_broker: Broker) -> None:
    tidelog_broker.create_topic("orders")
    tidelog_broker.create_topic("receipts")

    async def main() -> None:
        app = kind(tidelog_broker.bootstrap_servers)
        got: list[dict[str, int]] = []
        enough = asyncio.Event()

        @app.subscriber("orders", group_id="shop", auto_offset_reset="earliest")
        @app.publisher("receipts")
        async def handle(order: dict[str, int]) -> str:
            got.append(order)
            if len(got) == 3:
                enough.set()
            return f"paid {order['n']}"

        async with app:
            await app.start()
            for number in range(3):
                await app.publish({"n": number}, "orders")
            await asyncio.wait_for(enough.wait(), 60)
        assert got == [{"n": 0}, {"n": 1}, {"n": 2}]

    asyncio.run(main())
    assert [message.text for message in tidelog_broker.messages("receipts")] == ["paid 0", "paid 1", "paid 2"]
