"""The file that ``delete-records`` takes."""

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.delete_records import FORM, offsets


def test_the_form_that_is_shown_is_read():
    assert offsets(FORM) == {("foo", 1): 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "not of the form"),
        ("{", "not of the form"),
        ('{"partitions": [{"topic": "t"}]}', "not of the form"),
        ('{"partitions": [], "version": 2}', "version"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "offset": 1}, {"topic": "t", "partition": 0, "offset": 2}]}',
            "more than once: t-0",
        ),
    ],
)
def test_other_files_are_refused(text, message):
    with pytest.raises(CommandFailed, match=message):
        offsets(text)
