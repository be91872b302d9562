"""What is in a pipeline's sinks, read without tidelog: librdkafka for topics, the tables' own logs and pyarrow for tables."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import confluent_kafka
import fastavro
import pyarrow.parquet as pq

QUIET_S = 60.0
_DELETED = 2
"""The status of a manifest's entry for a file that is no longer there."""


class Torn(Exception):
    """A sink cannot be read as its format says."""


def topic(bootstrap: str, name: str) -> list[confluent_kafka.Message]:
    """Every record of a topic that a reader of committed records sees."""
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": "landed",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }
    consumer = confluent_kafka.Consumer(config)
    try:
        partitions = sorted(consumer.list_topics(name, 30).topics[name].partitions)
        consumer.assign([confluent_kafka.TopicPartition(name, index, 0) for index in partitions])
        found: list[confluent_kafka.Message] = []
        open_ones = set(partitions)
        heard = time.monotonic()
        while open_ones:
            # It waits the whole time unless there are so many.
            messages = consumer.consume(1000, 0.2)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > QUIET_S:
                raise Torn(f"{name}: nothing came for {QUIET_S:.0f} s, and partitions {sorted(open_ones)} have no end")
            for message in messages:
                if message.error() is None:
                    found.append(message)
                elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    open_ones.discard(message.partition())
                else:
                    raise Torn(f"{name}: {message.error()}")
        return found
    finally:
        consumer.close()


def delta_files(path: Path) -> list[Path]:
    """The files of a Delta table's newest version: every commit since version 0, as the protocol has them."""
    commits = sorted((path / "_delta_log").glob("[0-9]*.json"))
    if [int(commit.stem) for commit in commits] != list(range(len(commits))):
        raise Torn(f"{path}: versions are missing in its log: {[commit.name for commit in commits]}")
    live: set[str] = set()
    for commit in commits:
        for line in commit.read_text().splitlines():
            action: dict[str, Any] = json.loads(line)
            if "add" in action:
                live.add(unquote(action["add"]["path"]))
            elif "remove" in action:
                live.discard(unquote(action["remove"]["path"]))
    return [path / name for name in sorted(live)]


def manifest_files(path: Path) -> list[Path]:
    """The files of a table of plain Parquet with a commit log (docs/adr/0016)."""
    live: set[str] = set()
    commits = sorted(commit for commit in (path / "_tidelog").glob("[0-9]*.json") if commit.stem.isdecimal())
    if [int(commit.stem) for commit in commits] != list(range(len(commits))):
        raise Torn(f"{path}: versions are missing in its log: {[commit.name for commit in commits]}")
    for commit in commits:
        said = json.loads(commit.read_text())
        live.difference_update(said["removes"])
        live.update(add["path"] for add in said["adds"])
    return [path / "data" / name for name in sorted(live)]


def iceberg_files(path: Path) -> list[Path]:
    """The data files of an Iceberg table's newest snapshot, in a Hadoop catalog: by its manifests, one name as often as it is in
    them."""
    newest = max((path / "metadata").glob("v*.metadata.json"), key=lambda file: int(file.name[1:].split(".")[0]))
    table: dict[str, Any] = json.loads(newest.read_text())
    lists = [one["manifest-list"] for one in table["snapshots"] if one["snapshot-id"] == table.get("current-snapshot-id")]
    entries = [
        entry for manifest_list in lists for manifest in _avro(manifest_list) for entry in _avro(manifest["manifest_path"])
    ]
    wrong = [entry for entry in entries if entry["data_file"]["content"] != 0]
    if wrong:
        raise Torn(f"{path}: it has delete files, and nothing deletes")
    return [_local(entry["data_file"]["file_path"]) for entry in entries if entry["status"] != _DELETED]


def _local(name: str) -> Path:
    return Path(unquote(name.removeprefix("file://").removeprefix("file:")))


def _avro(name: str) -> list[Any]:
    with _local(name).open("rb") as file:
        return list(fastavro.reader(file))


def column(files: list[Path], name: str) -> list[str]:
    """A column of all rows of Parquet files."""
    return [value for file in files for value in pq.read_table(file, columns=[name], partitioning=None)[name].to_pylist()]


def places(files: list[Path]) -> list[str]:
    """Where the rows of a table of raw records come from, as ``partition:offset``."""
    partitions, offsets = column(files, "partition"), column(files, "offset")
    return [f"{partition}:{offset}" for partition, offset in zip(partitions, offsets, strict=True)]


def judged(expected: set[str], found: list[str]) -> str:
    """Empty when every expected row is there once and nothing else; otherwise what is wrong."""
    counted = Counter(found)
    lost = sorted(expected - counted.keys())
    strange = sorted(counted.keys() - expected)
    doubled = sorted(name for name, times in counted.items() if times > 1)
    wrong = [
        f"{len(names)} {what} ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})"
        for what, names in (("lost", lost), ("twice", doubled), ("strange", strange))
        if names
    ]
    return "; ".join(wrong)
