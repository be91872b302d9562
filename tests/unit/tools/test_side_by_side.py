"""Commands run at the same time; none of them hides what another did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.side_by_side import main


def test_commands_run_at_the_same_time_and_each_line_says_whose_it_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each waits for a line of the other, so that one after the other would never end."""
    there, back = tmp_path / "there", tmp_path / "back"
    for pipe in (there, back):
        pipe.touch()

    def turn(own: Path, other: Path) -> str:
        return f"echo hello > {own}; until grep -q hello {other}; do :; done; cat {other}; echo wrong >&2"

    assert main([f"a: {turn(there, back)}", f"b: {turn(back, there)}"]) == 0
    said = capfd.readouterr().out.splitlines()
    assert sorted(line for line in said if " | " in line) == ["a | hello", "a | wrong", "b | hello", "b | wrong"]
    assert sorted(line.partition(" after ")[0] for line in said if " | " not in line) == ["a: done", "b: done"]


@pytest.mark.parametrize("failing", [0, 1])
def test_one_failure_fails_all_and_stops_none(failing: int, capfd: pytest.CaptureFixture[str]) -> None:
    commands = ["a: echo here", "b: echo here"]
    commands[failing] = commands[failing].replace("echo here", "exit 3")
    assert main(commands) == 1
    said = capfd.readouterr().out
    assert f"{'ab'[failing]}: ended with 3 after" in said
    assert f"{'ba'[failing]} | here" in said


@pytest.mark.parametrize("arguments", [[], ["without a name"], ["empty:"]])
def test_what_is_no_command_is_refused(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "usage" in capfd.readouterr().err
