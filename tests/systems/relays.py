"""Other systems that read a topic and write another: each record of ``in`` has to come out in ``out``, once, as it was.

A system has a folder here with a pom, the sums of its jars, and a program ``Relay`` (arguments: bootstrap, a folder to work in,
how many records there are). ``python -m tests.systems.relays storm`` runs one.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.nodes import Node
from tests.systems.exactly_once import FLAGS, HERE, LOG4J, OPENS, Wrong, committed
from tools.jars import compiled_against

SYSTEMS = ("connect", "flume", "hadoop", "hbase", "storm")
RECORDS = 10_000
PARTITIONS = 4
MORE_OPENS = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
)
PATIENCE_S = 420
"""An HBase cluster alone takes minutes to begin where other tests run beside it."""


def fill(bootstrap: str) -> dict[bytes, bytes]:
    """10,000 records into ``in``, by key."""
    records = {b"key-%05d" % number: b"value-%05d" % number for number in range(RECORDS)}
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for key, value in records.items():
        producer.produce("in", key=key, value=value)
        producer.poll(0)
    if left := producer.flush(60):
        raise Wrong(f"{left} records were not acknowledged within a minute")
    return records


def command(name: str, bootstrap: str, folder: Path, *more: str) -> list[str]:
    """What starts a system."""
    classes, jars = compiled_against(HERE / name)
    log4j = (f"-Dlog4j2.configurationFile={LOG4J}", f"-Dlog4j.configurationFile={LOG4J}", "-Dlog.level=warn")
    paths = f"{classes}:{jars}/*"
    return ["java", *FLAGS, *OPENS, *MORE_OPENS, *log4j, "-cp", paths, "Relay", bootstrap, str(folder), str(RECORDS), *more]


def relay(name: str, home: Path, bootstrap: str) -> collections.Counter[bytes]:
    """The values that came out and how often. Raises Wrong when some did not, or the system ended."""
    folder = home / name
    folder.mkdir()
    log = home / f"{name}.log"
    found: collections.Counter[bytes] = collections.Counter()
    with log.open("wb") as out:
        process = subprocess.Popen(command(name, bootstrap, folder), stdout=out, stderr=subprocess.STDOUT, cwd=folder)
    try:
        deadline = time.monotonic() + PATIENCE_S
        silent = 0
        for message in committed(bootstrap, "out", PARTITIONS):
            if message is not None:
                found[message.value()] += 1
            elif len(found) >= RECORDS:
                silent += 1
                if silent == 3:  # whatever comes twice has come by then
                    return found
            elif process.poll() is not None or time.monotonic() > deadline:
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
                ended = (
                    f"ended with {process.returncode}" if process.returncode is not None else f"was not done in {PATIENCE_S} s"
                )
                raise Wrong(f"{name} {ended}; {len(found):,} of {RECORDS:,} values came:\n{tail}")
    finally:
        process.kill()
        process.wait()
    raise AssertionError("the topic's end is not the end")


@contextlib.contextmanager
def serving(name: str, folder: Path) -> Iterator[str]:
    """A system that only serves, by its address. Raises JarsMissing, and Wrong when it does not come up."""
    log = folder.with_suffix(".log")
    with log.open("wb") as errors:
        process = subprocess.Popen(command(name, "nobody", folder, "serve"), stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    impatient = threading.Timer(PATIENCE_S, process.kill)
    impatient.start()
    try:
        served = next((line for line in process.stdout if line.startswith("serving ")), "")
        if not served:
            raise Wrong(f"{name} did not come up:\n{log.read_text(errors='replace')[-3000:]}")
        yield served.removeprefix("serving ").strip().rstrip("/")
    finally:
        impatient.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def run(name: str, home: Path) -> str:
    """One system, from start to end; what was found, in a line. Raises Wrong."""
    node = Node("tidelog", home / "node", None, {"group.initial.rebalance.delay.ms": "0"}, features={})
    try:
        node.start()
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in ("in", "out")]).values():
            future.result()
        written = fill(node.bootstrap)
        began = time.monotonic()
        found = relay(name, home, node.bootstrap)
        seconds = time.monotonic() - began
    finally:
        node.kill()
    if found != collections.Counter(written.values()):
        twice = [value for value, count in found.items() if count > 1]
        foreign = [value for value in found if value not in set(written.values())]
        raise Wrong(
            f"{name}: {len(twice)} values came more than once, {len(foreign)} were never written: {(twice + foreign)[:3]}"
        )
    return f"{name}: {RECORDS:,} records through, each once, in {seconds:.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=SYSTEMS)
    home = Path(tempfile.mkdtemp(prefix="tidelog-relay-"))
    print(f"everything is kept in {home}", file=sys.stderr)
    try:
        print(run(parser.parse_args().name, home))
    except Wrong as wrong:
        print(f"WRONG: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
