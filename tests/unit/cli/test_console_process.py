from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from tidelog.cli import side_process
from tidelog.cli.console_process import ConsoleProcess, check, client_address, locked
from tidelog.cli.main import main
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError

Fake = Callable[[str], None]


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig({name.replace("_", "."): value for name, value in settings.items()})


def test_a_free_address_of_this_machine_is_taken() -> None:
    check("127.0.0.1:0")
    check("localhost:0")


def test_without_the_extra_the_refusal_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.cli.side_process.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"--console: it needs starlette and uvicorn: pip install 'tidelog\[console\]'"):
        check("127.0.0.1:0")


@pytest.mark.parametrize(
    ("listen", "reason"),
    [
        ("server.properties", "server.properties: its value is HOST:PORT. Give --console last, or write --console=HOST:PORT"),
        ("127.0.0.1:x", "must be host:port"),
        ("0.0.0.0:0", "tidelog console --bootstrap-server HOST:PORT --listen 0.0.0.0:0 --users FILE"),
        (":0", "can be reached from other machines"),
    ],
)
def test_an_address_that_cannot_be_is_refused(listen: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check(listen)
    assert reason in str(refused.value)


def test_an_address_in_use_is_refused_before_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConfigError, match=f"{where} cannot be listened on"):
            check(where)


@pytest.mark.parametrize(
    ("settings", "ports", "address"),
    [
        ({"listeners": "PLAINTEXT://:9092"}, {}, "localhost:9092"),
        ({"listeners": "PLAINTEXT://127.0.0.1:0"}, {"PLAINTEXT": 4711}, "127.0.0.1:4711"),
        ({"listeners": "SSL://h:1,PLAINTEXT://h:2"}, {}, "h:2"),
        ({"listeners": "PLAINTEXT://:1", "advertised_listeners": "PLAINTEXT://[::1]:2"}, {}, "[::1]:2"),
    ],
)
def test_the_console_takes_the_plain_listener(settings: dict[str, str], ports: Mapping[str, int], address: str) -> None:
    assert client_address(config(**settings), ports, "127.0.0.1:0") == address


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_listener_with_tls_or_a_login_is_refused_with_the_command_that_works(protocol: str) -> None:
    with pytest.raises(ConfigError) as refused:
        client_address(config(listeners=f"{protocol}://h:9093"), {}, "127.0.0.1:8080")
    assert str(refused.value).endswith("tidelog console --bootstrap-server h:9093 --command-config FILE --listen 127.0.0.1:8080")


def test_a_controller_has_no_console() -> None:
    alone = {
        "process.roles": "controller",
        "node.id": "1",
        "listeners": "CONTROLLER://h:1",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "h:1",
    }
    with pytest.raises(ConfigError, match="this node is a controller"):
        client_address(BrokerConfig(alone), {}, "127.0.0.1:0")


def test_the_refusal_names_the_settings_that_a_cluster_has() -> None:
    assert "--bootstrap-server a:1,b:2 --command-config admin.properties" in str(locked("a:1,b:2", "c:3", "admin.properties"))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Sets the program that runs in place of the console."""

    def program(text: str) -> None:
        path = tmp_path / "program"
        path.write_text(f"#!{sys.executable}\nimport os, sys\n{text}\n")
        path.chmod(0o755)
        monkeypatch.setattr(side_process.sys, "executable", str(path))

    return program


def run_to_its_end() -> list[str]:
    said: list[str] = []
    console = ConsoleProcess("h:1", "127.0.0.1:8080", said.append)
    console.start()
    assert console._watcher is not None
    console._watcher.join(60)
    console.wait()
    return said


AGAIN = "Nothing else has ended. To start it again: tidelog console --bootstrap-server h:1 --listen 127.0.0.1:8080"


def test_a_console_that_ends_by_itself_is_reported_with_its_reason(fake: Fake) -> None:
    fake("print('tidelog console: no room', file=sys.stderr); sys.exit(3)")
    assert run_to_its_end() == [
        "console: tidelog console: no room",
        f"the console ended with exit code 3: no room. {AGAIN}",
    ]


def test_a_console_that_is_killed_is_reported(fake: Fake) -> None:
    fake(f"os.kill(os.getpid(), {int(signal.SIGKILL)})")
    assert run_to_its_end() == [f"the console was ended by signal 9 (SIGKILL). {AGAIN}"]


def test_a_console_that_cannot_be_started_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_process.sys, "executable", "/no/such/program")
    said: list[str] = []
    console = ConsoleProcess("h:1", "127.0.0.1:8080", said.append)
    console.start()
    console.end()
    console.wait()
    assert said == [f"the console cannot be started: No such file or directory. {AGAIN}"]


def test_it_ends_when_its_stdin_is_closed_and_that_is_no_news(fake: Fake, tmp_path: Path) -> None:
    fake(f"open({str(tmp_path / 'words')!r}, 'w').write(' '.join(sys.argv[1:])); os.read(0, 1); sys.exit(1)")
    said: list[str] = []
    console = ConsoleProcess("h:1", "127.0.0.1:8080", said.append)
    console.start()
    console.end()
    console.wait()
    assert said == []
    words = (tmp_path / "words").read_text()
    assert words == "-m tidelog.cli.main console --bootstrap-server h:1 --listen 127.0.0.1:8080 --with-stdin"


def test_a_console_that_does_not_end_is_killed(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_process, "END_LIMIT_S", -1)
    fake("import threading; threading.Event().wait()")
    console = ConsoleProcess("h:1", "127.0.0.1:8080", lambda line: None)
    console.start()
    console.end()
    console.wait()
    assert console._process is not None
    assert console._process.returncode == -signal.SIGKILL


LOGINS = tuple(
    word
    for setting in (
        "listeners=SASL_PLAINTEXT://localhost:0",
        "security.inter.broker.protocol=SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
        "sasl.enabled.mechanisms=PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="ann" password="secret" user_ann="secret";',
    )
    for word in ("-o", setting)
)
"""A node whose clients log in."""


def imported(statements: str) -> set[str]:
    script = f"import sys\n{statements}\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split())


def test_a_node_imports_nothing_of_it_without_the_flag_and_nothing_of_the_extra_with_it() -> None:
    without = imported("import tidelog.cli.start")
    assert not {name for name in without if name.startswith(("tidelog.cli.console", "tidelog.console"))}
    found = imported("import tidelog.cli.start, tidelog.cli.console_process as c; c.check('127.0.0.1:0')")
    assert "tidelog.cli.console_process" in found
    assert not {name for name in found if name.split(".")[0] in {"starlette", "uvicorn", "anyio", "h11"}}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--console", "0.0.0.0:0"), "can be reached from other machines"),
        (("--console=0.0.0.0:0", "--processes", "2"), "can be reached from other machines"),
        (("--console=127.0.0.1:0", "--processes", "2", *LOGINS), "--command-config FILE"),
        (("--console=127.0.0.1:0", *LOGINS), "--command-config FILE"),
    ],
)
def test_start_refuses_before_it_writes_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["start", *words])
    assert (result.exit_code, reason in result.stderr) == (1, True), result.stderr
    assert list(tmp_path.iterdir()) == []
