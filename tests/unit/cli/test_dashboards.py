from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from tidelog.cli.dashboards import ALERT_FILE, command


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(command, [str(each) for each in words])


def test_the_files_are_written_and_named(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    result = run("--out", out)
    assert result.exit_code == 0
    assert sorted(map(Path, result.stdout.split())) == sorted(out.iterdir())
    assert {each.suffix for each in out.iterdir()} == {".json", ".yml"}
    assert json.loads((out / "tidelog-cluster.json").read_text())["title"] == "tidelog: cluster"
    assert 'up{job=\\"tidelog\\"}' in (out / ALERT_FILE).read_text()


def test_a_changed_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    assert run("--out", tmp_path).exit_code == 0
    assert run("--out", tmp_path).exit_code == 0
    (tmp_path / ALERT_FILE).write_text("groups: []\n")
    (tmp_path / "tidelog-node.json").unlink()
    result = run("--out", tmp_path)
    assert result.exit_code == 1
    assert f"{tmp_path / ALERT_FILE} exists with other contents" in result.stderr
    assert "--force" in result.stderr
    assert not (tmp_path / "tidelog-node.json").exists()
    assert run("--out", tmp_path, "--force", "--job", "kafka").exit_code == 0
    assert 'up{job=\\"kafka\\"}' in (tmp_path / ALERT_FILE).read_text()


def test_a_folder_that_cannot_be_made_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("--out", tmp_path / "file" / "out")
    assert result.exit_code == 1
    assert "cannot be written: Not a directory" in result.stderr
    assert "Traceback" not in result.output
