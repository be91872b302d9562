"""Coverage-guided fuzzing of everything that a peer's bytes reach: ``python tools/fuzz.py [SECONDS] [CORPUS]``.

A node without sockets, its disk in memory; each input is a frame for its compiled lanes and its dispatcher, and what has to wait
is driven for a moment.
The only exception that may come out is ProtocolViolation. The corpus (default ``.cache/fuzz``) begins with a valid request of
every API at every version and keeps what led to new code. A crash is written beside it by libFuzzer, and printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
import sys
from pathlib import Path

import atheris  # type: ignore[import-not-found]

with atheris.instrument_imports(include=["tidelog"]):
    from tidelog.broker.dispatch import Dispatcher
    from tidelog.broker.request import Session
    from tidelog.broker.table import BROKER_APIS
    from tidelog.config.resolve import BrokerConfig
    from tidelog.controller.quorum_controller import QuorumController
    from tidelog.model.errors import ProtocolViolation
    from tidelog.protocol import registry
    from tidelog.protocol.framing import RequestHeader, encode_request_header
    from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
    from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
    from tidelog.server.native import fetch_lanes, produce_lanes
    from tidelog.server.node import Node
    from tidelog.server.runtime import LoopRuntime
    from tidelog.server.serving.follower_lane import with_follower_lane
    from tidelog.testing.memory_disk import MemoryDisk

from tests.node.attack import FrameMaker
from tests.unit.protocol.random_messages import Maker, message_named

ROOT = Path(__file__).resolve().parent.parent
WAIT_S = 0.02
"""How long a handler that waits is driven; long polls are abandoned after it, as by a client that goes away."""
SETTINGS = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": "/memory", "tidelog.http.listener": "", "num.partitions": "1"}


class Target:
    """The dispatcher of a node that was never given a socket of its own to serve."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.node = Node(BrokerConfig.from_properties(SETTINGS), LoopRuntime(self.loop), MemoryDisk())
        self.loop.run_until_complete(self.node.start())
        topic = CreatableTopic(name="attacked", num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
        self.loop.run_until_complete(self.node.controller.submit(QuorumController.create_topics, request))
        dispatcher = Dispatcher(self.node.broker, BROKER_APIS, fetches=fetch_lanes(), produces=produce_lanes())
        self.handle = with_follower_lane(self.node.broker, dispatcher)
        self.session = Session("PLAINTEXT", "127.0.0.1")

    def one(self, data: bytes) -> None:
        """One frame."""
        try:
            outgoing = self.handle(self.session, memoryview(bytearray(data)))
        except ProtocolViolation:
            return
        if asyncio.iscoroutine(outgoing):
            with contextlib.suppress(TimeoutError, ProtocolViolation):
                self.loop.run_until_complete(asyncio.wait_for(outgoing, WAIT_S))


def plain_fetches() -> list[bytes]:
    """Fetches of a partition that exists, without a session and with a new one: for the lane, and what its sessions need."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="attacked", partitions=[partition])]
    return [
        encode_request_header(RequestHeader(1, 12, 1, "fuzz"))
        + FetchRequest(max_bytes=1 << 20, min_bytes=least, session_id=0, session_epoch=epoch, topics=topics).encode(12)
        for epoch in (-1, 0)
        for least in (0, 1)
    ]


def seeds(corpus: Path) -> None:
    """A valid request of every API at every version, produces of every codec, and plain fetches."""
    corpus.mkdir(parents=True, exist_ok=True)
    frames = [FrameMaker(1, "attacked").produce(batch) for batch in FrameMaker(1, "attacked").batches]
    frames += plain_fetches()
    for row in (route.api for route in BROKER_APIS.values()):
        name = registry.request_class(row.key).NAME
        for version in range(row.versions[0], row.versions[1] + 1):
            body = Maker(message_named(name), version, random.Random(version)).make().encode(version)
            frames.append(encode_request_header(RequestHeader(row.key, version, 1, "fuzz")) + body)
    for frame in frames:
        (corpus / hashlib.sha1(frame, usedforsecurity=False).hexdigest()).write_bytes(frame)


def main() -> None:
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    corpus = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / ".cache" / "fuzz"
    seeds(corpus)
    target = Target()
    atheris.Setup(
        [sys.argv[0], f"-max_total_time={seconds}", "-max_len=4096", f"-artifact_prefix={corpus}/../", str(corpus)], target.one
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
