"""Kafka's command names in a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from tidelog.cli.link_commands import command, kafka_commands, link
from tidelog.cli.refusal import CommandFailed


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir()
    for name in ("kafka-a", "kafka-b"):
        (folder / name).write_text("#!/bin/sh\necho $0\n")
        (folder / name).chmod(0o755)
    return folder


def test_each_command_has_its_name_and_its_name_with_sh(scripts: Path, tmp_path: Path) -> None:
    bin_ = tmp_path / "new" / "bin"
    made = link(bin_, ["kafka-a", "kafka-b"], scripts, force=False)
    assert sorted(path.name for path in made) == ["kafka-a", "kafka-a.sh", "kafka-b", "kafka-b.sh"]
    assert subprocess.run([bin_ / "kafka-a.sh"], check=True, capture_output=True).returncode == 0


def test_it_can_be_repeated_and_leaves_files_of_others_alone(scripts: Path, tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    link(bin_, ["kafka-a"], scripts, force=False)
    link(bin_, ["kafka-a"], scripts, force=False)
    (bin_ / "kafka-b.sh").write_text("mine")
    with pytest.raises(CommandFailed, match=r"kafka-b\.sh exists already"):
        link(bin_, ["kafka-b"], scripts, force=False)
    assert not (bin_ / "kafka-b").exists()
    link(bin_, ["kafka-b"], scripts, force=True)
    assert (bin_ / "kafka-b.sh").readlink() == scripts / "kafka-b"


def test_a_command_that_is_not_installed_links_nothing(scripts: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="kafka-c does not exist"):
        link(tmp_path / "bin", ["kafka-a", "kafka-c"], scripts, force=False)
    assert not (tmp_path / "bin").exists()


def test_the_commands_of_this_installation_are_linked(tmp_path: Path) -> None:
    assert "kafka-topics" in kafka_commands()
    done = CliRunner().invoke(command, [str(tmp_path / "bin")])
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "bin").iterdir())) == 2 * len(kafka_commands())
    version = subprocess.run([tmp_path / "bin" / "kafka-topics.sh", "--help"], check=True, capture_output=True, text=True)
    assert "--bootstrap-server" in version.stdout
