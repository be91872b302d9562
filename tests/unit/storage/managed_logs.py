"""A log manager over formatted dirs of a simulated disk."""

import random

from sim.workload import NOW_MS
from tidelog.model.ids import TopicPartition
from tidelog.storage import checkpoints
from tidelog.storage.checkpoints import MetaProperties
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_manager import LogManager
from tidelog.testing.simulation.disk import SimDisk

TOPIC = b"\5" * 16


def partition(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def manager(disk: SimDisk, *paths: str, config: LogConfig | None = None) -> LogManager:
    for number, path in enumerate(paths):
        if not disk.exists(f"{path}/meta.properties"):
            disk.make_dirs(path)
            checkpoints.replace_file(disk, f"{path}/meta.properties", MetaProperties("c", 1, bytes([number + 1]) * 16).encode())
    made = LogManager(disk, paths, node_id=1, rng=random.Random(1), config_for=lambda _: config or LogConfig())
    made.open_dirs()
    made.load_all(NOW_MS)
    return made
