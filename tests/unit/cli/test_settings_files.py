"""Settings of nodes and clients whose values come from files and the environment of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.cli import refusal
from tidelog.cli.broker_connection import client_settings as connection_settings
from tidelog.cli.client_settings import gather
from tidelog.cli.settings_files import ThisMachine, client_settings, node_config
from tidelog.model.errors import ConfigError

PROVIDERS = """\
config.providers=file,env
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
"""
LOGIN = """\
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.username=${env:WHO}
sasl.password=${file:%s:password}
"""


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the password, which its owner alone can read, and the user in the environment."""
    path = tmp_path / "secrets.properties"
    path.write_text("password=hunter2\n")
    path.chmod(0o600)
    monkeypatch.setenv("WHO", "ann")
    return path


@pytest.mark.parametrize(
    ("path", "folders", "within"),
    [
        ("/run/secrets/a", ("/run/secrets",), True),
        ("/run/secrets/a", ("/opt", "/run/"), True),
        ("/run/secrets", ("/run/secrets",), True),
        ("/run/secrets-of-others/a", ("/run/secrets",), False),
        ("/run/secrets/../../etc/shadow", ("/run/secrets",), False),
        ("/run/./secrets//a", ("/run/secrets",), True),
        ("secrets/a", ("/run/secrets",), False),
        ("/etc/shadow", ("/",), True),
    ],
)
def test_a_folder_holds_what_is_below_it(path: str, folders: tuple[str, ...], within: bool) -> None:
    assert ThisMachine().is_within(path, folders) is within


def test_tools_log_in_with_what_the_references_stand_for(
    secrets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "client.properties"
    path.write_text(PROVIDERS + LOGIN % secrets)
    sasl = connection_settings("localhost:1", str(path), "me").sasl
    assert sasl is not None
    assert (sasl.username, sasl.password) == ("ann", "hunter2")
    settings = gather([str(path)], ["sasl.username=${env:WHO}-${env:WHO}"])
    assert settings == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann-ann",
        "sasl.password": "hunter2",
    }
    assert capsys.readouterr().err == ""


def test_a_file_with_secrets_that_every_user_can_read_is_named(secrets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secrets.chmod(0o644)
    client_settings({"a": "x"})
    assert capsys.readouterr().err == ""
    names = [line.partition("=") for line in PROVIDERS.splitlines()]
    found = client_settings({name: value for name, _, value in names} | {"a": f"${{file:{secrets}:password}}"})
    assert found.settings == {"a": "hunter2"}
    assert f"WARNING: {secrets} holds secrets" in capsys.readouterr().err


def test_errors_of_tools_name_the_setting_and_not_its_value(
    secrets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "client.properties"
    path.write_text(PROVIDERS + f"request.timeout.ms=${{file:{secrets}:password}}\n")
    with pytest.raises(ConfigError, match=r"client.properties: request.timeout.ms is '\[hidden\]'") as refused:
        connection_settings("localhost:1", str(path), "me")
    assert refused.value.__suppress_context__
    path.write_text(PROVIDERS + f"request.timeout.ms=${{file:{secrets}:nope}}\n")
    with pytest.raises(ConfigError, match="has no key nope"):
        connection_settings("localhost:1", str(path), "me")
    path.write_text(PROVIDERS + f"linger.ms=${{file:{secrets}:password}}\n")
    with pytest.raises(SystemExit), refusal.one_line("Error: "):
        settings = gather([str(path)], [])
        raise refusal.CommandFailed(f"librdkafka refuses linger.ms={settings['linger.ms']}")
    assert capsys.readouterr().err == "Error: librdkafka refuses linger.ms=[hidden]\n"


def test_a_nodes_file_is_read_by_format_and_storage_as_by_start(secrets: Path, tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(PROVIDERS + f"log.dirs={tmp_path}/${{env:WHO}}\nnum.partitions=${{file:{secrets}:password}}\n")
    with pytest.raises(ConfigError, match=r"num.partitions is '\[hidden\]'"):
        node_config(str(path))
    secrets.write_text("password=3\n")
    config = node_config(str(path))
    assert (config.log_dirs, config.num_partitions) == ((f"{tmp_path}/ann",), 3)
    assert config.provided == {"log.dirs", "num.partitions"}
