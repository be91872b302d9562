"""The cleaner threads of a node: they find dirty logs, stop when the node stops, and a failing disk takes its dir offline."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.server.loops import until
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import iter_headers
from tidelog.records.builder import RecordData, build_batch
from tidelog.server.disk import DiskFileSystem
from tidelog.server.runtime import LoopRuntime
from tidelog.server.upkeep.cleaner_threads import Compaction
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_creation import create_log
from tidelog.storage.unified_log import UnifiedLog

COMPACT = LogConfig(cleanup_policy=frozenset({"compact"}), file_delete_delay_ms=0)


class Replicas:
    """What Compaction asks of the replica manager and of its logs."""

    def __init__(self, *logs: UnifiedLog) -> None:
        self.logs = SimpleNamespace(fs=logs[0].fs, logs=lambda: iter(logs), online_dirs=self._online_dirs)
        self._paths = [log.log_dir for log in logs]
        self.failures: list[StorageFailure] = []
        self.failed = asyncio.Event()

    def _online_dirs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(path=path) for path in self._paths]

    def storage_failed(self, failure: StorageFailure) -> None:
        self.failures.append(failure)
        self.failed.set()


def dirty_log(root: Path, *, batches: int = 20, value_bytes: int = 100) -> UnifiedLog:
    log = create_log(DiskFileSystem(), f"{root}/t-0", TopicPartition("t", 0), None, COMPACT, 0)
    for _ in range(batches):
        log.append_as_leader(build_batch([RecordData(b"k", bytes(value_bytes), 1000)]), 0, 1000)
    log.roll(0)
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    return log


def count(log: UnifiedLog) -> int:
    data = b"".join(segment.file.read(0, segment.size) for segment in log.segments)
    return sum(header.records_count for header in iter_headers(data))


def compaction(replicas: Replicas, **settings: str) -> Compaction:
    names = {name: name.replace("_", ".") for name in settings}
    given = {"log.cleaner.backoff.ms": "5"} | {names[name]: value for name, value in settings.items()}
    stand_in: Any = replicas
    return Compaction(stand_in, BrokerConfig(given), LoopRuntime(asyncio.get_running_loop()))


def test_a_dirty_log_is_compacted_and_its_old_files_go(tmp_path: Path) -> None:
    async def story() -> None:
        log = dirty_log(tmp_path)
        work = compaction(Replicas(log))
        work.start()
        await until(lambda: work.cleanings_done and not any(name.endswith(".deleted") for name in log.fs.listdir(log.dir)))
        await work.stop()
        assert count(log) == 1

    asyncio.run(story())


def test_nothing_is_compacted_when_the_cleaner_is_disabled(tmp_path: Path) -> None:
    async def story() -> None:
        work = compaction(Replicas(dirty_log(tmp_path)), log_cleaner_enable="false")
        work.start()
        assert work._workers == []
        await work.stop()

    asyncio.run(story())


def test_stopping_interrupts_a_long_cleaning_and_takes_its_files_away(tmp_path: Path) -> None:
    async def story() -> None:
        log = dirty_log(tmp_path, batches=200, value_bytes=10_000)
        # At this rate the 2 MB would take over a minute.
        work = compaction(Replicas(log), log_cleaner_io_max_bytes_per_second="50000")
        work.start()
        await until(lambda: work.cleaner.cleanings)
        await work.stop()
        assert not work.cleaner.cleanings
        assert count(log) == 200
        assert not [name for name in log.fs.listdir(log.dir) if name.endswith((".cleaned", ".swap"))]

    asyncio.run(story())


def test_a_failing_disk_is_reported_and_the_other_logs_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        bad, good = dirty_log(tmp_path / "bad"), dirty_log(tmp_path / "good", batches=10)
        good.topic_partition = TopicPartition("u", 0)
        good.set_config(replace(COMPACT, min_cleanable_dirty_ratio=0.2))
        replicas = Replicas(good, bad)
        work = compaction(replicas)

        def fails(_path: str) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(bad.fs, "sync_dir", fails)
        work.start()
        await replicas.failed.wait()
        await until(lambda: work.cleanings_done)
        await work.stop()
        assert [failure.log_dir for failure in replicas.failures] == [bad.log_dir]
        assert count(good) == 1

    asyncio.run(story())


def test_a_log_that_nobody_foresaw_is_left_alone_and_the_others_are_compacted(tmp_path: Path) -> None:
    async def story() -> None:
        odd, plain = dirty_log(tmp_path / "odd", batches=50), dirty_log(tmp_path / "plain")
        plain.topic_partition = TopicPartition("plain", 0)
        replicas: Any = Replicas(odd, plain)
        work = compaction(replicas, log_cleaner_threads="1")
        real = work.cleaner.begin

        def begin(*arguments: Any) -> Any:
            cleaning = real(*arguments)
            if cleaning is not None and cleaning.log is odd:

                def stumble(breathe: Any) -> None:
                    raise ZeroDivisionError

                cleaning.job = SimpleNamespace(run=stumble)
            return cleaning

        work.cleaner.begin = begin  # type: ignore[method-assign]
        work.start()
        await until(lambda: work.cleanings_done)
        await work.stop()
        assert (count(odd), count(plain)) == (50, 1)
        assert list(work.cleaner.uncleanable) == [odd.topic_partition]
        replicas.on_mended(odd)
        assert not work.cleaner.uncleanable

    asyncio.run(asyncio.wait_for(story(), 20))
