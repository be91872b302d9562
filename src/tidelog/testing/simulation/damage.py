"""Flipped bits on a simulated disk, in data that was synced; and the operator who repairs what no node can repair alone.

Checksums cover a batch from its attributes on, so a flipped bit there must be noticed: by the follower that copies the batch, by
the consumer that reads it, by recovery after a crash. (Nothing covers the bytes before, such as the base offset; the format is
Apache Kafka's.) An index must not mislead. A damaged closed segment is noticed only when it is read; then the replica is deleted
and copied from another one that is in sync, as operators do.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tidelog.model.ids import METADATA_TOPIC
from tidelog.records.batch import ATTRIBUTES_POSITION, iter_headers
from tidelog.testing.simulation.cluster import SimCluster, newest_image
from tidelog.testing.simulation.disk import SimDisk
from tidelog.testing.simulation.machines import Machine

LOG, OFFSET_INDEX, TIME_INDEX, PRODUCERS = ".log", ".index", ".timeindex", ".snapshot"
SIDE_FILES = (OFFSET_INDEX, TIME_INDEX, PRODUCERS)
DELTA_BYTES = range(23, 27)
"""Offset of the batch's last offset delta, which distinguishes batches before anything is checked."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a flipped bit. ``killed``: it is found only when the process starts again."""

    machine: Machine
    path: str
    partition: str
    killed: bool
    repaired_by_wiping: bool


class Damage:
    def __init__(self, cluster: SimCluster, rng: random.Random) -> None:
        self.cluster, self.rng = cluster, rng
        self.places: list[Place] = []
        """Damage that still exists, and waits for ``repair``."""
        self.machines: set[int] = set()
        """Machines whose batches a reader may find damaged: nodes that had any damage."""
        self.repaired = 0

    def flip(self, machine: Machine) -> Place | None:
        """Flip one bit somewhere on this machine; None when there is nothing to damage yet."""
        kind = self.rng.choice(("closed", "closed", "tail", "side", "metadata"))
        disk = machine.disk
        if kind == "metadata":
            return self._flip_metadata(machine)
        found = [(directory, *each) for directory in self.cluster.shape.dirs for each in _partitions(disk, directory)]
        self.rng.shuffle(found)
        for directory, partition, logs in found:
            folder = f"{directory}/{partition}"
            if kind == "side":
                path = self._side_file(disk, folder, logs[:-1])
            else:
                path = self._batch(disk, folder, logs[-1:] if kind == "tail" else logs[:-1])
            if path is not None:
                place = Place(machine, path, partition, kind != "closed", kind == "closed")
                self.machines.add(machine.node_id)
                if place.repaired_by_wiping:
                    self.places.append(place)
                return place
        return None

    def _flip_metadata(self, machine: Machine) -> Place | None:
        """Flip one in the metadata log. A start reads all of it, cuts it at the damage, and fetches the rest from the leader;
        until then this voter lacks records that it had confirmed, so every other voter must have all that is committed."""
        logs = [(each, each.node.replica.member.log) for each in self.cluster.controllers if each.serving and each.node]
        committed = max((log.log.high_watermark for _, log in logs), default=0)
        whole = len(logs) == len(self.cluster.controllers)
        others = [log.log.recovery_point for each, log in logs if each is not machine]
        if not whole or min(others, default=0) < committed:
            return None
        folder = f"{self.cluster.shape.dirs[0]}/{METADATA_TOPIC}-0"
        path = self._batch(machine.disk, folder, [name for name in machine.disk.listdir(folder) if name.endswith(LOG)])
        return None if path is None else Place(machine, path, f"{METADATA_TOPIC}-0", killed=True, repaired_by_wiping=False)

    def _side_file(self, disk: SimDisk, folder: str, closed: list[str]) -> str | None:
        stems = tuple(name.removesuffix(LOG) for name in closed)
        names = [
            name
            for name in disk.listdir(folder)
            if name.endswith(SIDE_FILES) and name.startswith(stems) and disk.stat(f"{folder}/{name}").size
        ]
        if not names or not stems:
            return None
        path = f"{folder}/{self.rng.choice(names)}"
        disk.flip(path, self.rng.randrange(disk.stat(path).size), self.rng.randrange(8))
        return path

    def _batch(self, disk: SimDisk, folder: str, names: list[str]) -> str | None:
        """A batch of one of these segments."""
        if not names:
            return None
        path = f"{folder}/{self.rng.choice(names)}"
        file = disk.open(path, write=False)
        data = file.read(0, file.size())
        file.close()
        headers = [*iter_headers(data)]
        if not headers:
            return None
        header = self.rng.choice(headers)
        within = self.rng.randrange(ATTRIBUTES_POSITION, header.size)
        if within in DELTA_BYTES:
            within = header.size - 1
        disk.flip(path, header.position + within, self.rng.randrange(8))
        return path

    def repair(self) -> bool:
        """Delete each damaged replica that can be spared, restarting its process; returns whether nothing is left to do."""
        for place in list(self.places):
            machine = place.machine
            if not self._spared(place):
                continue
            machine.kill()
            machine.disk.remove_tree(place.path.rpartition("/")[0])
            machine.start()
            self.places.remove(place)
            self.repaired += 1
        return not self.places

    def _spared(self, place: Place) -> bool:
        """Whether another live broker is in sync, or the replica is gone already."""
        machine = place.machine
        image = newest_image(self.cluster.brokers)
        if image is None or not machine.serving:
            return False
        name, _, number = place.partition.rpartition("-")
        topic = image.topics.by_name.get(name)
        if topic is None or int(number) >= len(topic.partitions):
            return True
        partition = topic.partitions[int(number)]
        up = {each.node_id for each in self.cluster.brokers if each.serving}
        lost = {each.machine.node_id for each in self.places if each.partition == place.partition}
        return machine.node_id not in partition.replicas or bool(set(partition.isr) & up - lost)


def _partitions(disk: SimDisk, directory: str) -> list[tuple[str, list[str]]]:
    """Partitions of users' topics in a log dir with their segments in order, without deleted ones."""
    found = []
    for name in disk.listdir(directory):
        if name.startswith("__") or "." in name or METADATA_TOPIC in name or not name.rpartition("-")[2].isdigit():
            continue
        logs = [each for each in disk.listdir(f"{directory}/{name}") if each.endswith(LOG)]
        if logs:
            found.append((name, logs))
    return found
