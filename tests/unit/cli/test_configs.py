"""Settings as ``configs --add-config`` takes them."""

import pytest

from tidelog.cli.configs import additions
from tidelog.cli.refusal import CommandFailed


def test_brackets_hold_commas_and_values_may_be_empty():
    text = "cleanup.policy=[compact,delete], retention.ms=5,listener.name=,x=a=b"
    assert additions(text, None) == {"cleanup.policy": "compact,delete", "retention.ms": "5", "listener.name": "", "x": "a=b"}


@pytest.mark.parametrize("text", ["retention.ms", "a=1,b", "=1", "a=[1,2"])
def test_what_is_no_pair_is_refused(text):
    with pytest.raises(CommandFailed, match="key=val"):
        additions(text, None)


def test_a_file_is_a_properties_file(tmp_path):
    file = tmp_path / "topic.properties"
    file.write_text("retention.ms = 5\n# comment\ncleanup.policy=compact,delete\n")
    assert additions(None, str(file)) == {"retention.ms": "5", "cleanup.policy": "compact,delete"}
