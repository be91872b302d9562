"""What serves beside a node: which processes, with which words. ``test_console_process`` has the life of one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from queue import Queue

import pytest
from click.testing import CliRunner

from tidelog.cli import side_process
from tidelog.cli.main import main
from tidelog.cli.side_process import CONSOLE, REGISTRY, SideProcess, check, start
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError

CONFIG = BrokerConfig({"listeners": "PLAINTEXT://localhost:9092"})


def words_of(listens: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of the programs that start, in order."""
    path = tmp_path / "program"
    path.write_text(f"#!{sys.executable}\nimport os, sys\nprint(*sys.argv[3:], file=sys.stderr, flush=True)\nos.read(0, 1)\n")
    path.chmod(0o755)
    monkeypatch.setattr(side_process.sys, "executable", str(path))
    said: Queue[str] = Queue()
    sides = start(listens, CONFIG, {}, said.put)
    found = [said.get(timeout=60) for _ in sides]
    for each in reversed(sides):
        each.end()
    for each in sides:
        each.wait()
    return sorted(found, reverse=True)


def test_a_registry_and_a_console_that_knows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = words_of({"console": "127.0.0.1:1", "registry": "127.0.0.1:2"}, tmp_path, monkeypatch)
    common = "--bootstrap-server localhost:9092 --listen 127.0.0.1"
    assert found == [
        f"registry: registry {common}:2 --with-stdin",
        f"console: console {common}:1 --schema-registry http://127.0.0.1:2 --with-stdin",
    ]


def test_a_console_is_not_told_a_port_that_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = words_of({"console": "127.0.0.1:0", "registry": "127.0.0.1:0"}, tmp_path, monkeypatch)
    assert "--schema-registry" not in " ".join(found)


def test_each_is_checked_before_the_node_starts() -> None:
    check({}, CONFIG)
    check({"registry": "127.0.0.1:0", "console": "127.0.0.1:0"}, CONFIG)
    with pytest.raises(ConfigError, match=r"--registry 0\.0\.0\.0:0 can be reached .* tidelog registry --bootstrap-server"):
        check({"registry": "0.0.0.0:0"}, CONFIG)
    secure = BrokerConfig({"listeners": "SSL://localhost:9093"})
    with pytest.raises(ConfigError, match="tidelog registry --bootstrap-server localhost:9093 --command-config FILE"):
        check({"registry": "127.0.0.1:0"}, secure)


def test_what_is_missing_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert REGISTRY.missing() is CONSOLE.missing() is None
    monkeypatch.setattr(side_process, "find_spec", lambda name: None)
    assert REGISTRY.missing() == "it needs uvicorn: pip install 'tidelog[registry]'"


def test_a_registry_that_ends_by_itself_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_process.sys, "executable", "/no/such/program")
    said: list[str] = []
    SideProcess(REGISTRY, "h:1", "127.0.0.1:2", said.append).start()
    again = "tidelog registry --bootstrap-server h:1 --listen 127.0.0.1:2"
    assert said == [
        f"the registry cannot be started: No such file or directory. Nothing else has ended. To start it again: {again}"
    ]


def test_a_process_stops_when_its_stdin_is_closed() -> None:
    script = (
        "import sys, threading; from tidelog.cli.side_process import end_with_stdin; ended = threading.Event();"
        "threading.Thread(target=end_with_stdin, args=(ended.set,), daemon=True).start(); print('up', flush=True); ended.wait();"
        "print('ended')"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    assert process.communicate()[0] == "ended\n"
    assert process.returncode == 0


def test_a_process_that_does_not_stop_is_ended() -> None:
    script = (
        "import threading; from tidelog.cli import side_process; side_process.END_LIMIT_S = 0;"
        "side_process.end_with_stdin(lambda: None); threading.Event().wait()"
    )
    done = subprocess.run([sys.executable, "-c", script], stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--registry", "0.0.0.0:0"), "can be reached from other machines"),
        (("--registry=127.0.0.1:0", "--processes", "2"), "--registry is for one process"),
    ],
)
def test_start_refuses_before_it_writes_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["start", *words])
    assert (result.exit_code, reason in result.stderr) == (1, True), result.stderr
    assert list(tmp_path.iterdir()) == []
