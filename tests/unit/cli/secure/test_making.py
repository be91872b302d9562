"""The folder of a secured cluster: what is in it, who may read it, and that nothing is overwritten or left half made."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.unit.server.loops import finish
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.secure import making
from tidelog.cli.secure.making import make, write_private
from tidelog.config.properties import parse
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.activation import bootstrap_of
from tidelog.model.errors import ConfigError
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tidelog.server.disk import DiskFileSystem
from tidelog.server.runtime import LoopRuntime, new_event_loop
from tidelog.server.serving.node_tls import NodeTls
from tidelog.storage.checkpoints import read_meta_properties

SECRET = {"authority/authority.key", "admin.properties", "admin.conf", "admin.json", "node-1/node.pem", "node-2/node.pem"}
HOSTS = ("localhost",)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_secrets_are_for_their_owner_alone_and_in_no_other_file(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "secured"
    _, login = make(str(folder), 2, HOSTS, 9092, "admin", 90)
    for name, content in contents(folder).items():
        mode = stat.S_IMODE((folder / name).stat().st_mode)
        if name in SECRET:
            assert mode == 0o600, name
        else:
            assert login.password.encode() not in content, name
            assert b"PRIVATE KEY" not in content, name
    assert set(contents(folder)) >= SECRET
    assert sum(login.password.encode() in content for content in contents(folder).values()) == 3


def test_the_folders_of_nodes_and_of_the_authority_are_for_their_owner_alone(tmp_path: Path) -> None:
    """The metadata log in a node's folder holds salts and keys of SCRAM, by which passwords can be tried."""
    folder = tmp_path / "secured"
    make(str(folder), 2, HOSTS, 9092, "admin", 90)
    for name in ("node-1", "node-2", "authority"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o700, name


def test_each_node_can_open_its_listeners_and_reach_the_others(tmp_path: Path) -> None:
    runtime = LoopRuntime(new_event_loop())
    folder = tmp_path / "secured"
    nodes, _ = make(str(folder), 3, HOSTS, 9092, "admin", 90)
    for node in nodes:
        config = BrokerConfig.from_properties(parse((folder / node.folder / "server.properties").read_text()))
        tls = NodeTls(config, runtime, {})
        for name in ("CLIENTS", "NODES", "CONTROLLER"):
            assert tls.listener(name) is not None
            certificate = tls.slots[name].loaded.certificate
            assert certificate is not None
            assert certificate.subject == f"CN=node-{node.id}"
            assert tls.towards(name) is not None
    finish(runtime)


def test_log_dirs_are_formatted_for_one_cluster_with_the_administrator(tmp_path: Path) -> None:
    folder = tmp_path / "secured"
    make(str(folder), 3, HOSTS, 9092, "root", 90)
    fs = DiskFileSystem()
    metas = [read_meta_properties(fs, str(folder / f"node-{number}" / "data")) for number in (1, 2, 3)]
    assert [meta.node_id for meta in metas if meta is not None] == [1, 2, 3]
    assert len({meta.cluster_id for meta in metas if meta is not None}) == 1
    for number in (1, 2, 3):
        records = [each for each in bootstrap_of(fs, str(folder / f"node-{number}" / "data")) if each is not None]
        assert [each.name for each in records if isinstance(each, UserScramCredentialRecord)] == ["root"]


def test_what_is_there_stays(tmp_path: Path) -> None:
    folder = tmp_path / "secured"
    make(str(folder), 1, HOSTS, 9092, "admin", 90)
    before = contents(folder)
    with pytest.raises(CommandFailed, match="is there already"):
        make(str(folder), 1, HOSTS, 9092, "admin", 90)
    assert contents(folder) == before
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CommandFailed, match="is there already"):
        make(str(tmp_path / "file"), 1, HOSTS, 9092, "admin", 90)


def test_an_empty_folder_is_filled_and_two_clusters_share_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first, second = (make(str(tmp_path / name), 1, HOSTS, 9092, "admin", 90)[1] for name in ("a", "b"))
    assert first.password != second.password
    assert first.authority != second.authority


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(making, "librdkafka_file", fails)
    with pytest.raises(CommandFailed, match="No space left"):
        make(str(tmp_path / "secured"), 1, HOSTS, 9092, "admin", 90)
    with pytest.raises(ConfigError, match="no host name"):
        make(str(tmp_path / "secured"), 1, ("bücher.example",), 9092, "admin", 90)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", 'a"b', "a,b", "a b", "User:a;b"])
def test_names_that_settings_cannot_hold_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="--admin"):
        make(str(tmp_path / "secured"), 1, HOSTS, 9092, name, 90)


def test_a_secret_is_never_written_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "there", "secret")
    assert (tmp_path / "there").read_text() == "mine"
