"""New certificates: by the same authority, for the same names, all of them or none."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest

from tests.certificates import Authority as OtherAuthority
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.secure.making import make
from tidelog.cli.secure.rotation import replace_private, rotate
from tidelog.config.key_store_formats import certificates_of
from tidelog.model.errors import ConfigError
from tidelog.security.certificates import parse_certificate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make(str(tmp_path / "secured"), 11, ("localhost,node.example.com",), 9092, "admin", 30)
    return tmp_path / "secured"


def stores(folder: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text() for path in folder.glob("node-*/node.pem")}


def test_every_node_gets_another_key_for_the_same_names(folder: Path) -> None:
    before = stores(folder)
    renewed = rotate(str(folder), 60)
    after = stores(folder)
    assert [each.folder for each in renewed] == [f"node-{number}" for number in range(1, 12)]
    for each in renewed:
        old, new = (parse_certificate(certificates_of(texts[each.folder])[0]) for texts in (before, after))
        assert (new.subject, new.alternative_names) == (old.subject, old.alternative_names) == (each.name, old.alternative_names)
        assert new.not_after_ms == each.not_after_ms > old.not_after_ms
        assert before[each.folder] != after[each.folder]
        path = folder / each.folder / "node.pem"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path)
    assert not list(folder.glob("node-*/*.new"))


def test_one_that_cannot_be_renewed_leaves_all_as_they_are(folder: Path) -> None:
    (folder / "node-7" / "node.pem").write_text(OtherAuthority().issue("node-7", "localhost").both)
    before = stores(folder)
    with pytest.raises(ConfigError, match=r"node-7/node\.pem: it holds no certificate that this authority has signed"):
        rotate(str(folder), 60)
    assert stores(folder) == before


def test_a_folder_without_an_authority_or_without_nodes_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"authority\.pem is not there"):
        rotate(str(tmp_path), 60)
    for path in folder.glob("node-*/server.properties"):
        path.unlink()
    with pytest.raises(CommandFailed, match="to renew"):
        rotate(str(folder), 60)


def test_an_interrupted_rotation_does_not_stop_the_next(folder: Path) -> None:
    (folder / "node-1" / "node.pem.new").write_text("half")
    replace_private(folder / "node-1" / "node.pem", "whole")
    assert (folder / "node-1" / "node.pem").read_text() == "whole"
    assert not (folder / "node-1" / "node.pem.new").exists()


def test_a_node_in_a_dry_run_is_refused_and_nothing_changes(folder: Path) -> None:
    with (folder / "node-3" / "server.properties").open("a") as settings:
        settings.write("tidelog.authorizer.dry.run = TRUE\n")
    before = stores(folder)
    with pytest.raises(CommandFailed, match=r"node-3/server\.properties sets tidelog\.authorizer\.dry\.run=true"):
        rotate(str(folder), 60)
    assert stores(folder) == before
