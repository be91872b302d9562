from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidelog.cli.processes import preparing
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError


def test_processes_with_data_are_found_by_their_folders(tmp_path: Path) -> None:
    assert preparing.others_with_data([str(tmp_path)]) == set()
    for name in ("2", "3", "supervisor.lock"):
        (tmp_path / "processes" / name).mkdir(parents=True)
    assert preparing.others_with_data([str(tmp_path), str(tmp_path / "none")]) == {2, 3}
    config = BrokerConfig({"log.dirs": str(tmp_path)})
    with pytest.raises(ConfigError, match="nodes 2, 3, and --processes is 1"):
        preparing.check_alone(config)
    assert (preparing.enough(config, 2), preparing.enough(config, 8)) == (3, 8)


def test_a_supervisor_that_runs_keeps_the_next_one_away(tmp_path: Path) -> None:
    held = preparing.lock(str(tmp_path))
    with pytest.raises(ConfigError, match=f"in use by the installation of process {os.getpid()}"):
        preparing.lock(str(tmp_path))
    held.supervisor.close()
    held.processes.close()
    for each in preparing.lock(str(tmp_path)):
        each.close()


def test_processes_whose_supervisor_has_ended_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    held = preparing.lock(str(tmp_path))
    descriptor = held.processes.fileno()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(descriptor,)) as process:
        held.supervisor.close()
        held.processes.close()
        monkeypatch.setattr(preparing, "WAIT_S", -1.0)
        with pytest.raises(ConfigError, match="whose supervisor has ended, and which do not stop"):
            preparing.lock(str(tmp_path))
        monkeypatch.undo()
        monkeypatch.setattr(preparing.time, "sleep", lambda _: process.communicate(b"\n"))
        for each in preparing.lock(str(tmp_path)):
            each.close()
    assert "waiting for them" in caplog.text


def test_too_little_memory_is_refused_with_what_would_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "free_memory", lambda: 100 << 20)
    config = BrokerConfig({"log.dirs": str(tmp_path)})
    with pytest.raises(ConfigError, match="--processes 3 needs at least 120 MiB of memory, 40 for each process, and 100 are"):
        preparing._check_size(config, (str(tmp_path),), 3)
    preparing._check_size(config, (str(tmp_path),), 2)
