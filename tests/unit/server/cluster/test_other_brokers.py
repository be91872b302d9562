from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld
from tests.unit.server.controllers import Controllers, free_ports
from tidelog.metadata.image import ClusterImage, Endpoint
from tidelog.model.errors import ErrorCode as E
from tidelog.model.errors import KafkaError
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.protocol.messages.vote import VoteRequest, VoteResponse
from tidelog.server.cluster.channels import Channels
from tidelog.server.cluster.other_brokers import ChannelsToBrokers


def image_with(port: int) -> ClusterImage:
    """Broker 1 listens there, on INTERNAL only."""
    image = NodeWorld().broker.image
    broker = image.brokers[1]._replace(endpoints={"INTERNAL": Endpoint("INTERNAL", "127.0.0.1", port)})
    return replace(image, brokers={1: broker})


def test_a_broker_is_asked_where_the_image_says_that_it_listens_and_failures_are_codes(one: Controllers) -> None:
    """What serves here is a controller: any server does."""

    async def main() -> None:
        await one.start()
        channels = Channels(one.runtime, "test")
        images = [image_with(one.ports[1])]
        others = ChannelsToBrokers(channels, lambda: images[-1], "INTERNAL")

        async def code(broker_id: int, request: Any, listener: ChannelsToBrokers = others) -> E:
            with pytest.raises(KafkaError) as error:
                await listener.ask(broker_id, "test", request, 10_000)
            return error.value.code

        assert isinstance(await others.ask(1, "test", VoteRequest(), 10_000), VoteResponse)
        assert await code(1, MetadataRequest()) is E.UNSUPPORTED_VERSION
        assert await code(2, VoteRequest()) is E.BROKER_NOT_AVAILABLE
        assert await code(1, VoteRequest(), ChannelsToBrokers(channels, lambda: images[-1], "EXTERNAL")) is E.BROKER_NOT_AVAILABLE
        images.append(image_with(free_ports(1)[0]))
        assert await code(1, VoteRequest()) is E.NETWORK_EXCEPTION
        images.append(image_with(one.ports[1]))
        channels.close()
        assert await code(1, VoteRequest()) is E.NETWORK_EXCEPTION

    one.run(main)


def test_a_broker_that_does_not_answer_in_time_is_told_apart(one: Controllers) -> None:
    async def main() -> None:
        async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(mute, "127.0.0.1", 0)
        channels = Channels(one.runtime, "test")
        image = image_with(server.sockets[0].getsockname()[1])
        with pytest.raises(KafkaError) as error:
            await ChannelsToBrokers(channels, lambda: image, "INTERNAL").ask(1, "test", VoteRequest(), 20)
        assert error.value.code is E.REQUEST_TIMED_OUT
        channels.close()
        server.close()

    one.run(main)
