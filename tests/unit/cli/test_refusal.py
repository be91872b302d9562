"""How a command ends that cannot be done."""

import pytest

from tidelog.cli.refusal import CommandFailed, check, error_text, one_line
from tidelog.model.errors import ErrorCode


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
