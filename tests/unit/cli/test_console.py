from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tidelog.cli.console import clusters_of
from tidelog.cli.main import main
from tidelog.cli.refusal import CommandFailed
from tidelog.console.web.starting import ClusterOption
from tidelog.http.passwords import is_right


def test_a_password_becomes_a_hash() -> None:
    result = CliRunner().invoke(main, ["console", "--hash-password"], input="secret\nsecret\n")
    assert result.exit_code == 0
    assert is_right("secret", result.stdout.strip().splitlines()[-1])


def test_a_console_that_would_be_open_is_not_started() -> None:
    result = CliRunner().invoke(main, ["console", "--bootstrap-server", "localhost:1", "--listen", "0.0.0.0:0"])
    assert result.exit_code == 1
    assert "--users" in result.stderr
    assert CliRunner().invoke(main, ["console"], env={"TIDELOG_BOOTSTRAP": ""}).exit_code == 1


def test_clusters_and_their_settings(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\n")
    assert clusters_of("h:1,h:2", None, ("test=h:3",), (f"test={file}",)) == [
        ClusterOption("main", "h:1,h:2", {}, None),
        ClusterOption("test", "h:3", {"security.protocol": "SSL"}, str(file)),
    ]
    assert clusters_of("h:1", str(file), (), ())[0].config_file == str(file)
    for further, configs in ((("test",), ()), (("main=h:1",), ()), ((), ("other=x",))):
        with pytest.raises(CommandFailed):
            clusters_of("h:1", None, further, configs)
