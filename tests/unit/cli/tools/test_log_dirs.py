"""Which brokers are asked."""

from types import SimpleNamespace

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.log_dirs import _brokers

SESSION = SimpleNamespace(brokers=lambda: {1: None, 2: None})


def test_all_brokers_are_asked_unless_some_are_named():
    assert _brokers(SESSION, "") == [1, 2]
    assert _brokers(SESSION, " 2 ") == [2]


@pytest.mark.parametrize(("text", "message"), [("1,7", "does not have: 7. It has 1,2"), ("one", "are numbers")])
def test_brokers_that_are_not_there_are_named(text, message):
    with pytest.raises(CommandFailed, match=message):
        _brokers(SESSION, text)
