from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidelog.cli.tools.format import command
from tidelog.controller.activation import bootstrap_of
from tidelog.model.ids import uuid_to_text
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tidelog.server.disk import DiskFileSystem

CLUSTER = "5L6g3nShT-eMCtK--X86sw"


def write(directory: Path, **settings: str) -> Path:
    path = directory / "server.properties"
    values = {
        "process.roles": "broker,controller",
        "node.id": "3",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": f"{directory}/one,{directory}/two",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return path


def run(path: Path, *args: str) -> Result:
    return CliRunner().invoke(command, ["-c", str(path), *args])


def test_directories_are_formatted_for_a_quorum_of_one(tmp_path: Path) -> None:
    result = run(write(tmp_path), "-t", CLUSTER, "--standalone")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"Formatting dynamic metadata voter directory {tmp_path}/one with metadata.version 4.3-IV0.",
        f"Formatting data directory {tmp_path}/two with metadata.version 4.3-IV0.",
    ]
    assert f"cluster.id={CLUSTER}" in (tmp_path / "one" / "meta.properties").read_text()
    assert (tmp_path / "one" / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint").exists()
    assert not (tmp_path / "two" / "__cluster_metadata-0").exists()


def test_a_static_quorum_is_named_by_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, controller_quorum_voters="3@localhost:9093")
    assert "Formatting metadata directory" in run(path).stdout
    assert not (tmp_path / "one" / "__cluster_metadata-0").exists()


def test_formatted_directories_are_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path)
    run(path, "-s")
    before = (tmp_path / "one" / "meta.properties").read_bytes()
    assert "already formatted" in run(path, "-s").stderr
    assert run(path, "-s", "-g").stdout == "Nothing to do: every log directory is already formatted.\n"
    assert (tmp_path / "one" / "meta.properties").read_bytes() == before


def test_features_and_releases_are_taken(tmp_path: Path) -> None:
    assert "metadata.version 4.2-IV1" in run(write(tmp_path), "-s", "-r", "4.2").stdout
    other = tmp_path / "other"
    other.mkdir()
    assert "metadata.version 4.0-IV3" in run(write(other), "-s", "-f", "metadata.version=25").stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "say who votes"),
        (("-s", "-t", "short"), "--cluster-id"),
        (("-s", "-f", "group.version=2"), "group.version"),
        (("-s", "-r", "9.9"), "9.9"),
    ],
)
def test_what_cannot_be_formatted_says_why(tmp_path: Path, args: tuple[str, ...], says: str) -> None:
    result = run(write(tmp_path), *args)
    assert result.exit_code == 1
    assert says in result.stderr
    assert not (tmp_path / "one" / "meta.properties").exists()


def test_voters_are_named_once(tmp_path: Path) -> None:
    path = write(tmp_path, controller_quorum_voters="3@localhost:9093")
    assert "--standalone" in run(path, "-s").stderr


def test_a_new_cluster_gets_an_id_of_its_own(tmp_path: Path) -> None:
    run(write(tmp_path), "-s")
    text = (tmp_path / "one" / "meta.properties").read_text()
    assert f"cluster.id={uuid_to_text(bytes(16))}" not in text
    assert "cluster.id=" in text


def test_first_users_are_in_the_bootstrap_checkpoint(tmp_path: Path) -> None:
    users = ("SCRAM-SHA-256=[name=alice,password=canary]", "SCRAM-SHA-512=[name=alice,password=canary,iterations=8192]")
    result = run(write(tmp_path), "-t", CLUSTER, "--standalone", "--add-scram", users[0], "-S", users[1])
    assert result.exit_code == 0, result.stderr
    found = [each for each in bootstrap_of(DiskFileSystem(), f"{tmp_path}/one") if isinstance(each, UserScramCredentialRecord)]
    assert [(each.name, each.mechanism, each.iterations) for each in found] == [("alice", 1, 4096), ("alice", 2, 8192)]
    assert b"canary" not in (tmp_path / "one" / "bootstrap.checkpoint").read_bytes()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--add-scram", "SCRAM-SHA-256=[password=canary]"), "--add-scram: name is missing"),
        (("--add-scram", "SCRAM-SHA-256=[name=a,password=canary]") * 2, "--add-scram names a with SCRAM-SHA-256 twice"),
        (
            ("--add-scram", "SCRAM-SHA-256=[name=a,password=canary]", "--release-version", "3.4-IV0"),
            "--add-scram needs metadata.version 3.5-IV2",
        ),
    ],
)
def test_first_users_that_cannot_be_made_stop_the_format(tmp_path: Path, args: tuple[str, ...], says: str) -> None:
    result = run(write(tmp_path), "--standalone", *args)
    assert result.exit_code == 1
    assert says in result.stderr
    assert "canary" not in result.stderr
    assert not (tmp_path / "one" / "meta.properties").exists()


def test_a_key_store_that_cannot_be_read_is_warned_of(tmp_path: Path) -> None:
    store = tmp_path / "node.pem"
    tls = {
        "listeners": "SSL://:9092,CONTROLLER://:9093",
        "inter_broker_listener_name": "SSL",
        "listener_security_protocol_map": "SSL:SSL,CONTROLLER:PLAINTEXT",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(store),
    }
    for content in (None, "no key"):
        if content is not None:
            store.write_text(content)
        result = run(write(tmp_path, **tls), "-s", "--ignore-formatted")
        assert result.exit_code == 0
        assert "a node would not start with these settings: listener SSL" in result.stderr and "node.pem" in result.stderr
        assert (tmp_path / "one").exists()
