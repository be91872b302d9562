"""A broker's partitions on a disk in memory, for the tests of replication and of the handlers above it."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar

from tidelog.broker.answer_types import Waiting, settled
from tidelog.broker.node import Broker, BrokerContext
from tidelog.broker.request import RequestContext, Session
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import BrokerImage, ClusterImage, Endpoint, PartitionImage, TopicImage, TopicsImage
from tidelog.model.errors import StorageFailure
from tidelog.model.ids import Uuid
from tidelog.model.ports import Buffer, FileStat
from tidelog.records.builder import RecordData, build_batch
from tidelog.replication.partition import Partition
from tidelog.replication.purgatory import Parked
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.storage.checkpoints import MetaProperties
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_manager import LogManager

T = TypeVar("T")
DIRECTORY_IDS = (b"A" * 16, b"B" * 16)
NOW_MS = 1_700_000_000_000


class MemoryFile:
    """A file whose bytes are kept in the disk; it survives being renamed, like a descriptor does."""

    def __init__(self, disk: MemoryDisk, path: str, content: bytearray) -> None:
        self.disk = disk
        self.path = path
        self.content = content

    def size(self) -> int:
        return len(self.content)

    def read(self, position: int, length: int) -> bytes:
        self.disk.check(self.path, "read")
        return bytes(self.content[position : position + length])

    def write(self, position: int, data: Buffer | Sequence[Buffer]) -> int:
        self.disk.check(self.path, "write")
        raw = bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"".join(bytes(part) for part in data)
        self.content[position : position + len(raw)] = raw
        return len(raw)

    def truncate(self, length: int) -> None:
        del self.content[length:]

    def sync(self) -> None:
        self.disk.check(self.path, "sync")

    def close(self) -> None:
        pass

    def fileno(self) -> int:
        return -1


class MemoryDisk:
    """A FileSystem in a dictionary. ``broken`` holds (beginning of a path, operation) pairs that fail with EIO."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.dirs: set[str] = set()
        self.broken: list[tuple[str, str]] = []

    def check(self, path: str, operation: str) -> None:
        if any(path.startswith(prefix) and operation == failing for prefix, failing in self.broken):
            raise OSError(5, "Input/output error", path)

    def open(self, path: str, *, create: bool = False, write: bool = True) -> MemoryFile:
        if path not in self.files:
            if not create:
                raise FileNotFoundError(2, "No such file", path)
            self.check(path, "write")
            self.files[path] = bytearray()
        return MemoryFile(self, path, self.files[path])

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.dirs

    def stat(self, path: str) -> FileStat:
        if path in self.dirs:
            return FileStat(0, NOW_MS, True)
        if path not in self.files:
            raise FileNotFoundError(2, "No such file", path)
        return FileStat(len(self.files[path]), NOW_MS, False)

    def listdir(self, path: str) -> list[str]:
        below = path + "/"
        return sorted({name[len(below) :].split("/")[0] for name in [*self.files, *self.dirs] if name.startswith(below)})

    def make_dirs(self, path: str) -> None:
        self.check(path, "write")
        parts = path.split("/")
        self.dirs.update("/".join(parts[: n + 1]) for n in range(len(parts)))

    def rename(self, source: str, target: str) -> None:
        for names in (self.files, dict.fromkeys(self.dirs)):
            for name in [name for name in names if name == source or name.startswith(source + "/")]:
                renamed = target + name[len(source) :]
                if name in self.files:
                    self.files[renamed] = self.files.pop(name)
                else:
                    self.dirs.remove(name)
                    self.dirs.add(renamed)

    def remove(self, path: str) -> None:
        if path not in self.files:
            raise FileNotFoundError(2, "No such file", path)
        del self.files[path]

    def remove_tree(self, path: str) -> None:
        for name in [name for name in self.files if name.startswith(path + "/")]:
            del self.files[name]
        self.dirs = {name for name in self.dirs if name != path and not name.startswith(path + "/")}

    def sync_dir(self, path: str) -> None:
        pass

    def lock(self, path: str) -> Any:
        return SimpleNamespace(release=lambda: None)

    def boot_id(self) -> str:
        return ""

    def usage(self, path: str) -> tuple[int, int]:
        return 1 << 40, 1 << 39


def topic_id(name: str) -> Uuid:
    """The id that a topic of this name gets here."""
    return Uuid(name.encode().ljust(16, b"."))


class World:
    """One broker of a cluster (1 unless told otherwise), its topics, and the time. ``jobs`` are run in the background when a test
    says so."""

    def __init__(self, *, dirs: int = 1, broker_id: int = 1, disk: MemoryDisk | None = None) -> None:
        self.now_ms = NOW_MS
        self.clock_set_by_ms = 0
        """How far the wall clock of requests was set from ``now_ms``, which goes on evenly."""
        self.in_touch = True
        self.access: Any = None
        self.broker_id = broker_id
        self.disk = disk or MemoryDisk()
        self.configs: dict[str, LogConfig] = {}
        self.jobs: list[tuple[Callable[[], None], Callable[[int], None]]] = []
        rng = random.Random(7)
        paths = [f"/data{number}" for number in range(dirs)]
        for path, directory_id in zip(paths, DIRECTORY_IDS, strict=False):
            self.disk.make_dirs(path)
            self.disk.files[f"{path}/meta.properties"] = bytearray(MetaProperties("cluster", broker_id, directory_id).encode())
        self.logs = LogManager(
            self.disk,
            paths,
            node_id=broker_id,
            rng=rng,
            config_for=lambda name: self.configs.get(name, LogConfig()),
            cluster_id="cluster",
        )
        self.logs.open_dirs()
        self.logs.load_all(self.now_ms)
        self.manager = ReplicaManager(broker_id, self.logs, background=self._later, rng=rng, even_ms=lambda: self.now_ms)
        self.image = ClusterImage(brokers={1: broker_image(1), 2: broker_image(2)})
        self.manager.load(self.image, self.now_ms)

    def _later(self, job: Callable[[], None], done: Callable[[int], None]) -> None:
        self.jobs.append((job, done))

    def run_jobs(self) -> int:
        """Run what is in the background, and what that starts; returns how many jobs it was."""
        count = 0
        while self.jobs:
            job, done = self.jobs.pop(0)
            job()
            done(self.now_ms)
            count += 1
        return count

    def create(self, name: str, *partitions: PartitionImage, config: LogConfig | None = None, id: Uuid | None = None) -> None:
        """A topic; by default one partition that broker 1 leads alone."""
        if config is not None:
            self.configs[name] = config
        image = TopicImage(id or topic_id(name), name, partitions or (led_by_us(),))
        by_id = dict(self.image.topics.by_id)
        by_id[image.id] = image
        self._load(by_id)

    def delete(self, name: str) -> None:
        """Drop a topic."""
        gone = self.image.topics.by_name[name].id
        self._load({topic: image for topic, image in self.image.topics.by_id.items() if topic != gone})

    def _load(self, by_id: dict[Uuid, TopicImage]) -> None:
        topics = TopicsImage(by_id, {image.name: image for image in by_id.values()})
        self.image = ClusterImage(brokers=self.image.brokers, topics=topics)
        self.manager.load(self.image, self.now_ms)

    def set_brokers(self, brokers: dict[int, BrokerImage]) -> None:
        """The brokers of the cluster are these now; partitions have not looked yet."""
        self.image = self.manager.image = replace(self.image, brokers=brokers)
        self.manager.brokers.follow(self.image)

    def replay(self, *records: Any) -> None:
        """What the metadata log says next."""
        delta = ClusterDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(self.image.offset + len(records), 1, self.now_ms)
        self.manager.apply(delta, self.image, self.now_ms)

    def partition(self, name: str, index: int = 0) -> Partition:
        """One that is here."""
        found = self.manager.by_name(name, index)
        assert isinstance(found, Partition), found
        return found

    def context(self, version: int, *, client_id: str = "test") -> BrokerContext:
        """A connection whose request has this version."""
        runtime = SimpleNamespace(now_ms=lambda: self.now_ms + self.clock_set_by_ms, even_ms=lambda: self.now_ms)
        broker: Any = Broker.__new__(Broker)
        broker.replicas = self.manager
        broker.image = self.image
        broker.config = SimpleNamespace(fetch_max_bytes=57_671_680, transaction_partition_verification_enable=True)
        broker.runtime = runtime
        broker.leads = lambda partition: self.in_touch
        broker.access = self.access
        return RequestContext(broker, Session("PLAINTEXT", "127.0.0.1"), -1, version, 42, client_id)


class Pending:
    """A handler's answer that is to come, driven by hand: it stops where it waits."""

    def __init__(self, ctx: BrokerContext, answer: Coroutine[Any, Any, Any] | Waiting) -> None:
        self.parked: Parked | None = None
        self.blocking: Callable[[], Any] | None = None
        self._coroutine: Coroutine[Any, Any, Any] = settled(ctx.wait, answer)
        self.answer: Any = None
        self.done = False
        runtime: Any = ctx.node.runtime
        runtime.wait = self._wait
        runtime.run_blocking = self._run_blocking
        self._step(None)

    async def _wait(self, parked: Parked) -> None:
        self.parked = parked
        if not parked.done:
            parked.on_done = lambda: None
            await _Stop()
        self.parked = None

    async def _run_blocking(self, job: Callable[[], T]) -> T:
        self.blocking = job
        result: T = await _Stop()
        self.blocking = None
        return result

    def _step(self, value: Any) -> None:
        try:
            if isinstance(value, StorageFailure):
                self._coroutine.throw(value)
            else:
                self._coroutine.send(value)
        except StopIteration as stop:
            self.answer = stop.value
            self.done = True

    def go_on(self) -> None:
        """Run the blocking job, or return from the wait if it is over."""
        if self.blocking is not None:
            try:
                result = self.blocking()
            except StorageFailure as failure:
                self._step(failure)
            else:
                self._step(result)
        else:
            assert self.parked is not None and self.parked.done, "still waiting"
            self._step(None)

    def expire(self) -> None:
        """The deadline comes."""
        assert self.parked is not None
        self.parked.expired = True
        self.parked.finish()
        self._step(None)

    def abandon(self) -> None:
        """The connection is closed."""
        self._coroutine.close()


class _Stop:
    def __await__(self) -> Any:
        return (yield)


def broker_image(number: int) -> BrokerImage:
    endpoint = Endpoint("PLAINTEXT", f"host{number}", 9092)
    return BrokerImage(number, 5, Uuid(bytes(16)), {"PLAINTEXT": endpoint}, {}, "rack", False, False, ())


def led_by_us(leader_epoch: int = 0, **changes: Any) -> PartitionImage:
    """One replica, here, in the first log dir unless ``directories`` says otherwise."""
    fields = {"replicas": (1,), "isr": (1,), "leader": 1, "leader_epoch": leader_epoch, "directories": (DIRECTORY_IDS[0],)}
    return PartitionImage(**(fields | changes))


def batch(
    *values: bytes | None, timestamp: int = NOW_MS, keys: Sequence[bytes | None] | None = None, **options: Any
) -> memoryview:
    """A batch as a producer sends it, in a frame that may be written to."""
    records = [
        RecordData(keys[n] if keys is not None else b"k", value, timestamp + n, ()) for n, value in enumerate(values or (b"v",))
    ]
    return memoryview(bytearray(build_batch(records, **options)))
