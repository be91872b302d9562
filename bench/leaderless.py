"""How long a partition cannot be written to: probes with acks=all at every node, every few milliseconds, by raw requests.

What a client of some library makes of it (its back-off, its refresh of metadata) is not in these numbers: a probe asks every node
all the time, so the gap between two acknowledged probes is the time in which nobody could have been served.
"""

from __future__ import annotations

import itertools
import socket
import threading
import time
from types import TracebackType
from typing import Any, Self

from tidelog.client.connection import ClientConnection
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.records.builder import RecordData, build_batch

PAUSE_S = 0.002
ANSWER_S = 1.0
TIMEOUT_MS = 500
"""A probe that the replicas do not take in this time is given up, and the next one sent."""
BY_NAME = 12


def probe_request(topic: str, partition: int) -> ProduceRequest:
    """One small record, acks=all."""
    records = bytes(build_batch([RecordData(None, b"probe", time.time_ns() // 1_000_000, ())]))
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


class Probes:
    """One thread for each node of ``ports``; ``acked`` has the times (``time.perf_counter``) of what was acknowledged."""

    def __init__(self, ports: dict[int, int], topic: str, partition: int = 0) -> None:
        self.acked: list[float] = []
        self._request = probe_request(topic, partition)
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._probe, args=(port,), daemon=True) for port in ports.values()]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _probe(self, port: int) -> None:
        while not self._ended.is_set():
            try:
                with socket.create_connection(("127.0.0.1", port), ANSWER_S) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._probe_on(connection)
            except OSError:
                self._ended.wait(PAUSE_S)

    def _probe_on(self, connection: socket.socket) -> None:
        client = ClientConnection("probe")

        def exchange(frame: bytes) -> Any:
            connection.sendall(frame)
            while not (found := client.receive(connection.recv(1 << 16) or _closed())):
                pass
            return found[0]

        frame: bytes | None = client.hello()
        while frame is not None:
            frame = client.welcomed(exchange(frame))
        while not self._ended.is_set():
            answer = exchange(client.request(self._request, BY_NAME))
            if answer.responses[0].partition_responses[0].error_code == 0:
                self.acked.append(time.perf_counter())
            self._ended.wait(PAUSE_S)

    def acked_since(self, moment: float) -> bool:
        return bool(self.acked) and self.acked[-1] > moment

    def longest_gap_ms(self, since: float) -> float:
        """Between two acknowledged probes, of which the second came after ``since``."""
        times = sorted(self.acked)
        gaps = [after - before for before, after in itertools.pairwise(times) if after > since]
        return max(gaps) * 1000


def _closed() -> bytes:
    raise ConnectionResetError("the node closed the connection")
