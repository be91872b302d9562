from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.oidc_provider import OidcProvider
from tests.unit.console.web.browser import users
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


def test_a_console_whose_provider_is_another_is_not_started(tmp_path: Path) -> None:
    with OidcProvider({}) as provider:
        provider.metadata = {"issuer": "https://evil.example"}
        file = {**json.loads(users()[0]), "oidc": provider.settings()}
        (tmp_path / "users.json").write_text(json.dumps(file))
        words = [
            "console",
            "--bootstrap-server",
            "localhost:1",
            "--listen",
            "127.0.0.1:0",
            "--users",
            str(tmp_path / "users.json"),
        ]
        result = CliRunner().invoke(main, words)
        assert (result.exit_code, "--public-url" in result.stderr) == (1, True)
        result = CliRunner().invoke(main, [*words, "--public-url", "http://localhost:8080"])
        assert (result.exit_code, "calls itself 'https://evil.example'" in result.stderr) == (1, True)
        assert CliRunner().invoke(main, [*words[:5], "--proxy", "a proxy"]).exit_code == 1


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
