"""``python -m bench.warm.native_rate``: what ``bench.wire_rate`` does, by librdkafka: one producer and one consumer of
confluent-kafka in one process, acks=all, linger 1 ms. The same arguments, of which clients and batch do not matter here, and the
same words and numbers printed.
"""

from __future__ import annotations

import argparse
import json
import threading
import time

from confluent_kafka import OFFSET_END, Consumer, KafkaError, Message, Producer, TopicPartition

PERCENTILES = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999}
TICK_S, DRAIN_S, START_S = 0.0005, 1.0, 60.0
READY = b"\0" * 8


class Load:
    """Records that are due on a steady schedule, and when a consumer has each."""

    def __init__(self, how: argparse.Namespace) -> None:
        self._how = how
        self._failed: list[str] = []
        self._waits: list[tuple[int, int]] = []
        self._stop = threading.Event()
        self._filler = bytes(how.size - 8)
        common = {"bootstrap.servers": how.bootstrap}
        self._producer = Producer(
            {**common, "acks": "all", "linger.ms": 1, "on_delivery": self._delivered, "delivery.report.only.error": True}
        )
        self._consumer = Consumer({**common, "group.id": "native-rate", "enable.auto.commit": False})

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error.str())

    def _consume(self) -> None:
        while not self._stop.is_set():
            found = self._consumer.consume(1000, 0.05)
            now_ns = time.monotonic_ns()
            for message in found:
                value = message.value()
                if message.error() is None and value is not None:
                    self._waits.append((int.from_bytes(value[:8], "big"), now_ns))

    def _until_consuming(self) -> None:
        """The consumer finds out where partitions end when it first fetches: send until each partition's records come."""
        deadline = time.monotonic() + START_S
        seen: set[int | None] = set()
        while len(seen) < self._how.partitions:
            if time.monotonic() > deadline:
                raise SystemExit("the consumer gets no records")
            for partition in range(self._how.partitions):
                self._producer.produce(self._how.topic, READY + self._filler, partition=partition)
            self._producer.flush(10)
            seen |= {each.partition() for each in self._consumer.consume(1000, 0.2) if each.error() is None}

    def run(self) -> dict[str, float]:
        """The numbers."""
        how = self._how
        self._consumer.assign([TopicPartition(how.topic, each, OFFSET_END) for each in range(how.partitions)])
        self._until_consuming()
        consuming = threading.Thread(target=self._consume)
        consuming.start()
        start_ns = time.monotonic_ns()
        begin_ns = start_ns + how.warmup * 10**9
        end_ns = begin_ns + how.seconds * 10**9
        sent = self._produce(start_ns, 0, begin_ns)
        cpu = time.process_time()
        print("begin", flush=True)
        self._produce(start_ns, sent, end_ns)
        cpu = time.process_time() - cpu
        print("end", flush=True)
        self._producer.flush(30)
        time.sleep(DRAIN_S)
        self._stop.set()
        consuming.join()
        self._consumer.close()
        waits = sorted(seen - due for due, seen in self._waits if begin_ns <= due < end_ns)
        if not waits:
            raise SystemExit(f"no records came back; {self._failed[:1]}")
        return {
            "seconds": how.seconds,
            "records": len(waits),
            "failed": len(self._failed),
            "client_cpu_s": cpu,
            **{name: waits[min(int(len(waits) * part), len(waits) - 1)] / 1e6 for name, part in PERCENTILES.items()},
        }

    def _produce(self, start_ns: int, sent: int, end_ns: int) -> int:
        """All that is due until then; how many there were in all."""
        how, produce = self._how, self._producer.produce
        while (now_ns := time.monotonic_ns()) < end_ns:
            while (due_ns := start_ns + sent * 10**9 // how.rate) <= now_ns:
                produce(how.topic, due_ns.to_bytes(8, "big") + self._filler)
                sent += 1
            self._producer.poll(0)
            time.sleep(TICK_S)
        return sent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.warm.native_rate", description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    for name in ("partitions", "rate", "seconds", "warmup", "size", "clients", "batch"):
        parser.add_argument(name, type=int)
    print(json.dumps(Load(parser.parse_args()).run()), flush=True)


if __name__ == "__main__":
    main()
