"""The flags of the tool, before any broker is asked."""

import pytest
from click.testing import CliRunner

from tidelog.cli.tools.groups import command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Add --list"),
        (["--list", "--consumer", "--protocol", "x"], "--consumer and --protocol both select"),
        (["--list", "--share", "--streams"], "--share and --streams both select"),
    ],
)
def test_flags_that_make_no_command_are_refused(words, message):
    done = CliRunner().invoke(command, ["--bootstrap-server", "b:1", *words])
    assert done.exit_code == 2
    assert message in done.output
