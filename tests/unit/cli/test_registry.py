"""``tidelog registry``: its flags. The registry itself runs in tests/node/test_registry.py."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from tidelog.cli.registry import LEVELS, command
from tidelog.registry.levels import LEVELS as KNOWN
from tidelog.registry.serving.users import Users, parse_users


def run(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(command, list(words), input=stdin)


def test_the_levels_of_the_flag_are_those_of_the_registry() -> None:
    assert LEVELS == KNOWN


def test_a_hashed_password_is_a_line_of_the_file_of_users() -> None:
    result = run("--hash-password", "ann", stdin="tea time\n")
    assert result.exit_code == 0
    assert Users(parse_users(result.stdout)).checked(b"Basic YW5uOnRlYSB0aW1l") is not None
    assert "tea" not in result.stdout
    assert run("--hash-password", "ann").exit_code == 1


def test_mistakes_are_errors_of_one_line(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann: write, tea\n")
    for words, part in (
        (["--listen", "nowhere"], "--listen"),
        (["--listen", "0.0.0.0:0"], "--insecure"),
        (["--users", str(users)], "Line 1"),
        (["--tls-certificate", str(users)], "--tls-key"),
    ):
        result = run("--bootstrap-server", "localhost:1", *words)
        assert result.exit_code == 1, words
        assert part in result.stderr
        assert result.stderr.count("\n") == 1
    assert run().exit_code == 2
