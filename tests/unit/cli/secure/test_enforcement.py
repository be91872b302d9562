from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.secure.enforcement import refuse_dry_runs
from tidelog.model.errors import ConfigError


def settings(folder: Path, number: int, text: str) -> None:
    (folder / f"node-{number}").mkdir(exist_ok=True)
    (folder / f"node-{number}" / "server.properties").write_text(text)


def test_nodes_that_enforce_their_acls_are_accepted(tmp_path: Path) -> None:
    refuse_dry_runs(str(tmp_path))
    settings(tmp_path, 1, "node.id=1\n# tidelog.authorizer.dry.run=true\n")
    settings(tmp_path, 2, "node.id=2\ntidelog.authorizer.dry.run=false\n")
    refuse_dry_runs(str(tmp_path))


@pytest.mark.parametrize("line", ["tidelog.authorizer.dry.run=true", "tidelog.authorizer.dry.run : True "])
def test_a_node_in_a_dry_run_is_refused_by_its_file(tmp_path: Path, line: str) -> None:
    settings(tmp_path, 1, "node.id=1\n")
    settings(tmp_path, 2, f"node.id=2\n{line}\n")
    with pytest.raises(CommandFailed, match=r"node-2/server\.properties sets"):
        refuse_dry_runs(str(tmp_path))


def test_settings_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    settings(tmp_path, 1, "a=\\u12")
    with pytest.raises(ConfigError):
        refuse_dry_runs(str(tmp_path))
    (tmp_path / "node-1" / "server.properties").unlink()
    (tmp_path / "node-1" / "server.properties").mkdir()
    with pytest.raises(CommandFailed, match="cannot be read"):
        refuse_dry_runs(str(tmp_path))
