"""Latency of produce while a search of the console reads records, and while none does, under the same load.

The load is one producer with acks=all that sends so many records a second, each by itself. Periods with and without the search
take turns; the search reads the topic ``searched`` from its beginning for a text that is in none of its records, again and again.
"""

from __future__ import annotations

import http.client
import statistics
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.console.consoles import Console, console

SEARCHED, LOADED = "searched", "loaded"
PARTITIONS = 3
RECORDS = 200_000
VALUE = b'{"order": 1, "text": "' + b"x" * 160 + b'"}'
RATE = 200
"""Records a second of the load."""


def prepare(bootstrap: str) -> None:
    """Both topics, and the records that are searched."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (SEARCHED, LOADED)]).values():
        future.exception()  # they may be there from an earlier run
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": RECORDS})
    for index in range(RECORDS):
        producer.produce(SEARCHED, VALUE, partition=index % PARTITIONS)
    if producer.flush(120):
        raise RuntimeError("the records to be searched were not taken")


class Search(threading.Thread):
    """Searches until it is ended. ``done``: searches that came to their end."""

    def __init__(self, found: Console) -> None:
        super().__init__(daemon=True)
        self._where = urlsplit(found.url)
        query = urlencode({"mode": "oldest", "limit": "50", "filter": 'value contains "no such text"'})
        self._path = f"{self._where.path}api/v1/clusters/main/topics/{SEARCHED}/records?{query}"
        self._over = threading.Event()
        self.done = 0
        self.bytes = 0
        self.failed: str | None = None

    def run(self) -> None:
        try:
            while not self._over.is_set():
                connection = http.client.HTTPConnection(self._where.hostname or "", self._where.port or 0, timeout=120)
                connection.request("GET", self._path)
                answer = connection.getresponse()
                if answer.status != 200:
                    raise RuntimeError(f"{answer.status} {answer.read()[:300]!r}")
                while piece := answer.read1(1 << 16):
                    self.bytes += len(piece)
                    if self._over.is_set():
                        break
                else:
                    self.done += 1
                connection.close()
        except Exception as error:
            self.failed = str(error)

    def end(self) -> None:
        """Cuts the search that is under way."""
        self._over.set()
        self.join(120)


def loaded(bootstrap: str, seconds: float) -> list[float]:
    """Milliseconds from each record's sending to its acknowledgement."""
    took: list[float] = []
    lost: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    producer.list_topics(LOADED, timeout=60)
    began = time.perf_counter()
    for index in range(int(seconds * RATE)):
        while (ahead := began + index / RATE - time.perf_counter()) > 0:
            producer.poll(min(ahead, 0.001))

        def acknowledged(error: Any, _: Any, sent: float = time.perf_counter()) -> None:
            if error is None:
                took.append((time.perf_counter() - sent) * 1000)
            else:
                lost.append(str(error))

        producer.produce(LOADED, VALUE, on_delivery=acknowledged)
    producer.flush(60)
    if lost:
        raise RuntimeError(f"{len(lost)} records were not taken: {lost[0]}")
    return took


def measure(bootstrap: str, folder: Path, brokers: Mapping[int, int], rounds: int, seconds: float) -> dict[str, Any]:
    """Samples by round: ``without`` and ``with`` a search, each with its quantiles and what it took."""
    prepare(bootstrap)
    found: list[dict[str, Any]] = []
    with console(bootstrap, folder, brokers) as running:
        loaded(bootstrap, min(seconds, 3))
        for number in range(rounds):
            row: dict[str, Any] = {}
            for name in ("without", "with") if number % 2 == 0 else ("with", "without"):
                row[name] = _period(running, bootstrap, seconds, searched=name == "with")
            found.append(row)
            told = ", ".join(f"{name} p99 {row[name]['p99_ms']:.1f} ms" for name in ("without", "with"))
            print(f"  round {number + 1}: {told}, {row['with']['searches']} searches", file=sys.stderr, flush=True)
    return {"rate": RATE, "records": RECORDS, "rounds": found}


def _period(running: Console, bootstrap: str, seconds: float, *, searched: bool) -> dict[str, Any]:
    search = Search(running) if searched else None
    with running.measured() as spent:
        if search:
            search.start()
        took = loaded(bootstrap, seconds)
        if search:
            search.end()
    if search and search.failed:
        raise RuntimeError(f"the search failed: {search.failed}")
    hundredths = statistics.quantiles(took, n=100)
    return {
        **spent[0].as_json(),
        "p50_ms": round(hundredths[49], 3),
        "p99_ms": round(hundredths[98], 3),
        "most_ms": round(max(took), 3),
        "records": len(took),
        "searches": search.done if search else 0,
    }
