"""``tidelog pipeline``: the commands that need no Spark, and what the others say without one."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from tidelog.cli.main import main


def test_what_init_writes_is_right_and_not_written_twice(tmp_path: Path) -> None:
    file = str(tmp_path / "p.yaml")
    run = CliRunner().invoke(main, ["pipeline", "init", file, "--topic", "orders"])
    assert run.exit_code == 0 and f"tidelog pipeline run {file} --once" in run.output
    assert "is there already" in CliRunner().invoke(main, ["pipeline", "init", file]).output
    run = CliRunner().invoke(main, ["pipeline", "validate", file])
    # Without PySpark, a line after it says that SQL was not parsed.
    assert run.exit_code == 0 and run.output.startswith(f"orders -> orders_table\n{file} is right.\n")
    run = CliRunner().invoke(main, ["pipeline", "lineage", file])
    assert '"outputs": [{"namespace": "file", "name": "lake/orders"}' in run.output


def test_a_wrong_key_ends_every_command_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    CliRunner().invoke(main, ["pipeline", "init", str(file)])
    file.write_text(file.read_text().replace("topics:", "topisc:"))
    for name in ("validate", "run", "status"):
        run = CliRunner().invoke(main, ["pipeline", name, str(file)])
        assert run.exit_code == 1
        assert f"Error: {file}, line 9: sources.events.topisc: this key is not known here. Did you mean topics?" in run.output


def test_once_and_continuous_exclude_each_other() -> None:
    assert CliRunner().invoke(main, ["pipeline", "run", "--once", "--continuous"]).exit_code == 2
