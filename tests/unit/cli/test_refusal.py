"""How a command ends that cannot be done."""

import importlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from tidelog.cli.refusal import CommandFailed, check, error_text, one_line, text_of
from tidelog.model.errors import ConfigError, ErrorCode


def test_what_is_expected_to_fail_is_one_line_and_exit_code_1(capsys):
    with pytest.raises(SystemExit) as ended, one_line("Error: "):
        raise CommandFailed("no such thing")
    assert ended.value.code == 1
    assert capsys.readouterr().err == "Error: no such thing\n"


def test_a_bug_is_not_hidden():
    with pytest.raises(ZeroDivisionError), one_line("Error: "):
        raise ZeroDivisionError


def test_errors_of_responses_have_kafkas_name_and_the_brokers_words_or_ours():
    assert error_text(ErrorCode.INVALID_CONFIG, "retention.ms is odd") == "INVALID_CONFIG: retention.ms is odd"
    assert error_text(ErrorCode.INVALID_CONFIG) == f"INVALID_CONFIG: {ErrorCode.INVALID_CONFIG.text}"
    check(ErrorCode.NONE)
    with pytest.raises(CommandFailed, match="NOT_CONTROLLER"):
        check(ErrorCode.NOT_CONTROLLER)


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("", None),
        ("start", ["FILE"]),
        ("format", ["-c", "FILE", "-t", "AAAAAAAAAAAAAAAAAAAAAw"]),
        ("topics", ["--bootstrap-server", "h:1", "--list", "--command-config", "FILE"]),
        ("configs", ["--bootstrap-server", "h:1", "--alter", "--topic", "t", "--add-config-file", "FILE"]),
        ("console_consumer", ["--bootstrap-server", "h:1", "--topic", "t", "--command-config", "FILE"]),
        ("delete_records", ["--bootstrap-server", "h:1", "--offset-json-file", "FILE"]),
    ],
)
def test_a_file_that_is_no_text_is_one_line_whatever_reads_it(tmp_path: Path, tool: str, args: list[str] | None) -> None:
    file = tmp_path / "latin"
    file.write_bytes("# hôte\n".encode("latin-1"))
    if args is None:
        with pytest.raises(ConfigError, match="latin is not text in UTF-8: the byte at 3"):
            text_of(str(file))
        with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
            text_of(str(tmp_path))
        return
    module = importlib.import_module(f"tidelog.cli.{tool}" if tool == "start" else f"tidelog.cli.tools.{tool}")
    result = CliRunner().invoke(module.command, [str(file) if each == "FILE" else each for each in args])
    assert (result.exit_code, type(result.exception)) == (1, SystemExit)
    assert f"{file} is not text in UTF-8" in result.stderr
    assert result.stderr.count("\n") == 1
