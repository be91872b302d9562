from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from tidelog.cli.connection_options import BOOTSTRAP_VARIABLE, bootstrap_option, target


def test_exactly_one_kind_of_address_is_given() -> None:
    assert target("b:1", None) == ("b:1", False)
    assert target(None, "c:1") == ("c:1", True)
    with pytest.raises(click.UsageError, match="Only one of"):
        target("b:1", "c:1")
    with pytest.raises(click.UsageError, match="bootstrap-server"):
        target(None, None)


def test_the_environment_names_the_servers_where_no_flag_does(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    @bootstrap_option
    def command(bootstrap_server: str) -> None:
        click.echo(bootstrap_server)

    monkeypatch.setenv(BOOTSTRAP_VARIABLE, "e:1")
    assert CliRunner().invoke(command, []).output == "e:1\n"
    assert CliRunner().invoke(command, ["--bootstrap-server", "f:1"]).output == "f:1\n"
    assert target(None, None) == ("e:1", False)
    assert target(None, "c:1") == ("c:1", True)
