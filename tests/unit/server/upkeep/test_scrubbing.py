"""The scrub on real files: passes, pace, metrics, and what it leaves of the page cache."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sim.workload import PARTITION, TOPIC_ID, append, batch
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ErrorCode
from tidelog.server.disk import DiskFileSystem
from tidelog.server.runtime import LoopRuntime
from tidelog.server.upkeep.scrubbing import PassingFile, Scrubbing
from tidelog.storage import reading
from tidelog.storage.checkpoints import MetaProperties, replace_file
from tidelog.storage.known_damage import read_damaged
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_creation import create_log
from tidelog.storage.log_dir import LogDir
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.unified_log import UnifiedLog

RATE = "tidelog.scrub.max.bytes.per.second"


def stored(path: Path) -> UnifiedLog:
    log = create_log(DiskFileSystem(), str(path / str(PARTITION)), PARTITION, TOPIC_ID, LogConfig(segment_bytes=1000), 0)
    for number in range(8):
        append(log, batch(2, value=bytes(150), producer=(7, 0, number * 2)))
    log.flush()
    return log


def scrubbing(runtime: LoopRuntime, log: UnifiedLog, *dirs: LogDir, **options: str) -> Scrubbing:
    logs = SimpleNamespace(logs=lambda: iter([log]), get={PARTITION: log}.get, online_dirs=lambda: dirs)
    replicas: Any = SimpleNamespace(logs=logs)
    return Scrubbing(replicas, BrokerConfig.from_properties({RATE: "1000000000", **options}), runtime)


def test_a_pass_finds_what_was_damaged_and_counts_it(runtime: LoopRuntime, tmp_path: Path) -> None:
    log = stored(tmp_path)
    scrub = scrubbing(runtime, log)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert (scrub.passes, scrub.bytes, scrub.found, scrub.damaged) == (1, log.files.segments.size_bytes, 0, 0)
    path = Path(log.segments[1].path(".log"))
    data = bytearray(path.read_bytes())
    data[200] ^= 16
    path.write_bytes(data)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert (scrub.passes, scrub.found, scrub.damaged) == (2, 1, 1)
    assert reading.read(log, 4, 100, upto=16, min_one=True).error is ErrorCode.CORRUPT_MESSAGE
    runtime.loop.run_until_complete(scrub.run_pass())
    assert (scrub.found, scrub.damaged, scrub.ended_ms > 0) == (1, 1, True)
    assert read_damaged(log.fs, log.dir) == {log.segments[1].base_offset}


def test_a_pass_finds_flips_in_small_files_and_writes_them_again(runtime: LoopRuntime, tmp_path: Path) -> None:
    log = stored(tmp_path)
    log.segments[0].rotten = (RottenRange(0, 10, 0, 2),)
    log_dir = LogDir(log.fs, str(tmp_path))
    log_dir.meta = MetaProperties("c1", 1, bytes(16))
    replace_file(log.fs, f"{tmp_path}/meta.properties", log_dir.meta.encode())
    log_dir.note_recovered()
    scrub = scrubbing(runtime, log, log_dir)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert scrub.found == 0
    files = [tmp_path / "meta.properties", *(Path(log.dir, name) for name in ("partition.metadata", "tidelog-damaged"))]
    right = [path.read_bytes() for path in files]
    for path, data in zip(files, right, strict=True):
        path.write_bytes(data[:20] + bytes([data[20] ^ 2]) + data[21:] if len(data) > 20 else b"x" + data[1:])
    runtime.loop.run_until_complete(scrub.run_pass())
    assert (scrub.found, [path.read_bytes() for path in files]) == (3, right)


def test_a_file_that_goes_meanwhile_does_not_end_the_pass(runtime: LoopRuntime, tmp_path: Path) -> None:
    log = stored(tmp_path)
    log.files.close_files()
    Path(log.segments[0].path(".log")).unlink()
    scrub = scrubbing(runtime, log)
    runtime.loop.run_until_complete(scrub.run_pass())
    assert scrub.passes == 1


def test_a_rate_of_zero_turns_it_off(runtime: LoopRuntime, tmp_path: Path) -> None:
    scrub = scrubbing(runtime, stored(tmp_path), **{RATE: "0"})
    scrub.start()
    assert scrub._worker is None
    scrub.stop()


def test_it_can_be_stopped_while_it_waits(runtime: LoopRuntime, tmp_path: Path) -> None:
    scrub = scrubbing(runtime, stored(tmp_path))
    scrub.start()
    worker = scrub._worker
    assert worker is not None
    scrub.stop()
    runtime.loop.run_until_complete(runtime.loop.create_task(_ended(worker)))
    assert worker.cancelled()


async def _ended(worker: Any) -> None:
    import asyncio

    await asyncio.wait([worker])


def test_only_what_was_cold_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100_000))
    given: list[tuple[int, int]] = []
    monkeypatch.setattr("os.posix_fadvise", lambda fd, position, length, advice: given.append((position, length)))
    resident = iter([50_000, 10_000])
    monkeypatch.setattr("tidelog.server.upkeep.scrubbing.resident_length", lambda opened, position, length: next(resident))
    file = PassingFile(DiskFileSystem().open(str(path)))
    assert (len(file.read(0, 50_000)), len(file.read(50_000, 50_000)), file.size()) == (50_000, 50_000, 100_000)
    assert given == [(50_000, 50_000)]
