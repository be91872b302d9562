"""An honest client beside an attack: ``python -m tests.node.bystander PORT TOPIC SECONDS`` prints its latencies as JSON.

It produces one record and fetches it back, again and again, 200 times a second at most, checks that it gets what it sent, and
reports the median and the 99th percentile of one round in ms.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time

from tidelog.protocol.framing import RequestHeader, encode_request_header
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tidelog.records.builder import RecordData, build_batch

PRODUCE, FETCH = (0, 9), (1, 12)
PAUSE_S = 0.005


class Bystander:
    """One connection."""

    def __init__(self, port: int, topic: str) -> None:
        self.topic = topic
        self.connection = socket.create_connection(("127.0.0.1", port), 30)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.settimeout(30)

    def ask(self, api: tuple[int, int], body: bytes) -> bytes:
        """The answer's body; both APIs answer with a flexible header at these versions."""
        request = encode_request_header(RequestHeader(api[0], api[1], 1, "bystander")) + body
        self.connection.sendall(struct.pack(">i", len(request)) + request)
        size = struct.unpack(">i", self._exactly(4))[0]
        return self._exactly(size)[5:]

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.connection.recv(count - len(data))
            if not part:
                raise ConnectionError("the node closed an honest client's connection")
            data += part
        return data

    def round(self, number: int) -> float:
        """Milliseconds from sending a record to having it back."""
        value = b"bystander %d" % number
        batch = bytes(build_batch([RecordData(None, value, int(time.time() * 1000))]))
        started = time.perf_counter()
        produce = ProduceRequest(
            acks=1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[PartitionProduceData(index=1, records=batch)])],
        )
        partition = (
            ProduceResponse.decode(self.ask(PRODUCE, produce.encode(PRODUCE[1])), PRODUCE[1]).responses[0].partition_responses[0]
        )
        assert partition.error_code == 0, partition
        fetch = FetchRequest(
            max_wait_ms=1000,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[
                FetchTopic(
                    topic=self.topic,
                    partitions=[FetchPartition(partition=1, fetch_offset=partition.base_offset, partition_max_bytes=1 << 20)],
                )
            ],
        )
        records = FetchResponse.decode(self.ask(FETCH, fetch.encode(FETCH[1])), FETCH[1]).responses[0].partitions[0].records
        elapsed = (time.perf_counter() - started) * 1000
        assert records is not None and value in bytes(records), "the record is not what was sent"
        return elapsed


def main() -> None:
    port, topic, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    bystander = Bystander(port, topic)
    times: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        times.append(bystander.round(len(times)))
        time.sleep(PAUSE_S)
    times.sort()
    print(json.dumps({"rounds": len(times), "p50": times[len(times) // 2], "p99": times[int(len(times) * 0.99)]}))


if __name__ == "__main__":
    main()
