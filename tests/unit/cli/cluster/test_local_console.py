from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tidelog.cli.cluster import local_console
from tidelog.cli.cluster.local_layout import new_cluster, save
from tidelog.cli.main import main
from tidelog.model.errors import ConfigError

LISTEN = "127.0.0.1:0"


def test_a_cluster_that_is_new_or_open_may_have_one(tmp_path: Path) -> None:
    local_console.check(LISTEN, str(tmp_path), 9092, secure=False)
    save(str(tmp_path), new_cluster("c", 1, 9092, (), {}))
    local_console.check(LISTEN, str(tmp_path), 9092, secure=False)


def test_a_secured_cluster_is_refused_with_the_command_that_works(tmp_path: Path) -> None:
    save(str(tmp_path), replace(new_cluster("c", 2, 9092, (), {}), client_file="admin.properties"))
    with pytest.raises(ConfigError) as refused:
        local_console.check(LISTEN, str(tmp_path), 9092, secure=False)
    assert "--bootstrap-server localhost:9092,localhost:9093 --command-config admin.properties" in str(refused.value)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("3", "--secure", f"--console={LISTEN}"), "--bootstrap-server localhost:9092 --command-config FILE"),
        (("--console", "3"), "Give --console last"),
        (("3", "--console", "0.0.0.0:1"), "can be reached from other machines"),
    ],
)
def test_it_is_refused_before_anything_is_made(tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    result = CliRunner().invoke(main, ["cluster", "--dir", str(tmp_path / "c"), *words])
    assert (result.exit_code, reason in result.stderr) == (1, True), result.stderr
    assert not (tmp_path / "c").exists()
