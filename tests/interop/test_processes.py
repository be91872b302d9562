"""``tidelog start --processes`` under the clients of five libraries: processes and supervisor are killed while all of them write.

Each client lives through all of it, and writes into a topic of its own, a number a record. What was acknowledged is read at the
end. ``TIDELOG_LONG=1`` adds franz-go, which Go has to build.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import aiokafka
import kafka
import pytest

from tests.interop.java import JVM_FLAGS, LOG4J
from tests.interop.secured_clients import FranzGo
from tests.node.installation import BOUND_S, Installation, Writer, installed, missing
from tools.jars import JarsMissing, ensure

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
LONG = bool(os.environ.get("TIDELOG_LONG"))
PAUSE_S = 0.01
FRANZ_S = 15.0


class Writing(ABC):
    """A client that writes in a thread until the test ends it."""

    def __init__(self, running: Installation) -> None:
        self.bootstrap, self.folder, self.topic = running.bootstrap, running.directory, type(self).__name__
        self.acknowledged: set[int] = set()
        self.failure: BaseException | None = None
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    def _go(self) -> None:
        try:
            self.write()
        except BaseException as error:  # told to the test
            self.failure = error

    @abstractmethod
    def write(self) -> None:
        """Write until ``ended``; each acknowledged number goes into ``acknowledged``."""

    def end(self) -> None:
        """All that was sent is acknowledged."""
        self.ended.set()
        self._thread.join(BOUND_S)
        assert not self._thread.is_alive(), f"{self.topic}: the client hangs"
        if self.failure is not None:
            raise self.failure


class Java(Writing):
    """Kafka's verifiable producer, which prints a line for each acknowledgement, and would try once without ``retries``."""

    def write(self) -> None:
        settings = self.folder / "verifiable.properties"
        settings.write_text("retries=2147483647\ndelivery.timeout.ms=80000\nenable.idempotence=true\nacks=all\n")
        command = ["java", *JVM_FLAGS, f"-Dlog4j2.configurationFile={LOG4J}", "-cp", f"{ensure()}/*"]
        command += ["org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", self.bootstrap, "--topic", self.topic]
        command += ["--throughput", "100", "--command-config", str(settings)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            threading.Thread(target=self._end, args=(process,), daemon=True).start()
            for line in process.stdout:
                told = json.loads(line)
                assert told["name"] != "producer_send_error", line
                if told["name"] == "producer_send_success":
                    self.acknowledged.add(int(told["value"]))
        assert self.acknowledged

    def _end(self, process: subprocess.Popen[str]) -> None:
        self.ended.wait()
        process.terminate()


class Librdkafka(Writing):
    def write(self) -> None:
        writer = Writer(self.bootstrap, self.topic)
        while not self.ended.wait(PAUSE_S):
            writer.write(1)
        writer.flush()
        self.acknowledged = writer.acknowledged


class KafkaPython(Writing):
    def write(self) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self.bootstrap, acks="all", enable_idempotence=True, delivery_timeout_ms=80_000, linger_ms=2
        )
        sent = []
        while not self.ended.wait(PAUSE_S):
            sent.append(producer.send(self.topic, str(len(sent)).encode()))
        producer.flush(BOUND_S)
        for number, future in enumerate(sent):
            future.get(BOUND_S)
            self.acknowledged.add(number)
        producer.close()


class Aiokafka(Writing):
    def write(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.bootstrap, enable_idempotence=True, acks="all", request_timeout_ms=80_000
        )
        await producer.start()
        number = 0
        while not self.ended.is_set():
            await producer.send_and_wait(self.topic, str(number).encode())
            self.acknowledged.add(number)
            number += 1
            await asyncio.sleep(PAUSE_S)
        await producer.stop()


class Franz(Writing):
    """franz-go for a fixed time; its records are equal, so that offsets are what is compared."""

    def write(self) -> None:
        task = json.dumps({"Seed": self.bootstrap, "Topic": self.topic, "Seconds": FRANZ_S})
        done = subprocess.run(
            [FranzGo()._program], input=task, capture_output=True, text=True, check=False, timeout=FRANZ_S + BOUND_S
        )
        assert done.returncode == 0, done.stderr
        offsets: list[int] = json.loads(done.stdout)["Offsets"]
        assert len(set(offsets)) == len(offsets)
        self.acknowledged = set(offsets)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Installation]:
    try:
        ensure()
    except JarsMissing as absent:
        pytest.skip(str(absent))
    with installed(tmp_path, 2) as made:
        yield made


def test_five_libraries_go_on_when_processes_and_their_supervisor_are_killed(running: Installation) -> None:
    kinds: list[type[Writing]] = [Java, Librdkafka, KafkaPython, Aiokafka, *([Franz] if LONG else [])]
    for kind in kinds:
        running.create(kind.__name__, 1 if kind is Franz else 2, 2)
    with ExitStack() as stack:
        writing = [kind(running) for kind in kinds]
        for each in writing:
            stack.callback(each.ended.set)
        all_write(running, writing)
        for node_id in (2, 1):
            running.kill(node_id)
            all_write(running, writing)
        running.kill_supervisor()
        running.start()
        all_write(running, writing)
        pids = list(running.pids().values())
        running.kill_supervisor()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        running.start()
        all_write(running, writing)
        for each in writing:
            each.end()
    for each in writing:
        if isinstance(each, Franz):
            assert end_of(running.bootstrap, each.topic) > max(each.acknowledged)
        else:
            assert missing(running.bootstrap, each.topic, each.acknowledged) == set(), each.topic


def all_write(running: Installation, writing: list[Writing]) -> None:
    """Every client is acknowledged something from now on; those that say so only at their end are not waited for."""
    told = [each for each in writing if isinstance(each, Java | Aiokafka)]
    before = {each.topic: len(each.acknowledged) for each in told}
    running.until(lambda: all(len(each.acknowledged) > before[each.topic] + 20 or each.failure for each in told))
    assert not [each.failure for each in writing if each.failure]


def end_of(bootstrap: str, topic: str) -> int:
    """The end offset of partition 0."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
    partition = kafka.TopicPartition(topic, 0)
    end: int = consumer.end_offsets([partition])[partition]
    consumer.close()
    return end
