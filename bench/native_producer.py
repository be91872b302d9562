"""``python -m bench.native_producer``: records of librdkafka at full speed, without Python in the way.

The library that confluent-kafka brings is called directly: ``rd_kafka_produce_batch`` takes ten thousand records at once, so one
call of Python costs nothing beside them. Prints a line of JSON: records, seconds, CPU seconds of this process. Whether all were
taken is for the caller to see at the topic's end offsets.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import resource
import time
from pathlib import Path

BATCH = 10_000
ROOM = 500_000
"""Records that may wait in the library's queue."""
PRODUCER, ANY_PARTITION, COPY = 0, -1, 0x2
FLUSH_MS = 120_000


class Message(ctypes.Structure):
    """``rd_kafka_message_t``."""

    _fields_ = (
        ("err", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_char_p),
        ("length", ctypes.c_size_t),
        ("key", ctypes.c_char_p),
        ("key_length", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    )


def library() -> ctypes.CDLL:
    """librdkafka inside confluent-kafka's wheel."""
    import confluent_kafka

    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    found = sorted(folder.glob("librdkafka-*.so*"))
    if not found:
        raise SystemExit(f"no librdkafka in {folder.name}: install confluent-kafka from its wheel")
    # its neighbours are found by the module that was loaded with them
    loaded = ctypes.CDLL(str(found[0]))
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_topic_new"):
        getattr(loaded, name).restype = ctypes.c_void_p
    return loaded


class Producer:
    """One producer of one topic."""

    def __init__(self, settings: dict[str, str], topic: str) -> None:
        self._library = library()
        text = ctypes.create_string_buffer(512)
        conf = ctypes.c_void_p(self._library.rd_kafka_conf_new())
        for name, value in settings.items():
            if self._library.rd_kafka_conf_set(conf, name.encode(), value.encode(), text, ctypes.c_size_t(512)):
                raise SystemExit(f"librdkafka: {text.value.decode()}")
        self._handle = ctypes.c_void_p(self._library.rd_kafka_new(PRODUCER, conf, text, ctypes.c_size_t(512)))
        if not self._handle:
            raise SystemExit(f"librdkafka: {text.value.decode()}")
        self._topic = ctypes.c_void_p(self._library.rd_kafka_topic_new(self._handle, topic.encode(), None))

    def produce(self, records: int, size: int) -> None:
        """All of them, and wait until the brokers have taken them."""
        messages = (Message * BATCH)()
        for number in range(BATCH):
            messages[number].payload, messages[number].length = (b"%08d" % number).ljust(size, b"x"), size
        left = records
        while left:
            count = min(left, BATCH)
            while self._library.rd_kafka_outq_len(self._handle) > ROOM - BATCH:
                time.sleep(0.001)
            taken = self._library.rd_kafka_produce_batch(self._topic, ANY_PARTITION, COPY, messages, count)
            left -= taken
            if taken < count:
                time.sleep(0.001)
        if self._library.rd_kafka_flush(self._handle, FLUSH_MS):
            raise SystemExit("librdkafka did not get rid of its records")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.native_producer", description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("records", type=int)
    parser.add_argument("size", type=int)
    arguments = parser.parse_args()
    settings = {
        "bootstrap.servers": arguments.bootstrap,
        "acks": "all",
        "linger.ms": "5",
        "batch.size": "1000000",
        "batch.num.messages": "10000",
        "queue.buffering.max.messages": str(ROOM),
    }
    producer = Producer(settings, arguments.topic)
    began = time.perf_counter()
    producer.produce(arguments.records, arguments.size)
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"records": arguments.records, "seconds": seconds, "cpu_s": used.ru_utime + used.ru_stime}))


if __name__ == "__main__":
    main()
