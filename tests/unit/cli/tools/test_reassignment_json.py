"""Files of reassign-partitions: what they say, and what is wrong with others."""

import json

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.reassignment_json import as_json, parse_proposal, parse_topics


def rows(*partitions: dict) -> str:
    return json.dumps({"version": 1, "partitions": list(partitions)})


def test_a_proposal_has_replicas_and_the_log_dirs_that_matter():
    found = parse_proposal(rows({"topic": "a", "partition": 0, "replicas": [2, 1], "log_dirs": ["any", "/d"]}))
    assert found.replicas == {("a", 0): (2, 1)}
    assert found.log_dirs == {("a", 0, 1): "/d"}


def test_what_is_written_is_read_again_in_order():
    text = as_json({("b", 0): (1,), ("a", 1): (3, 1)}, {("a", 1, 3): "/d3"})
    assert text == (
        '{"version":1,"partitions":[{"topic":"a","partition":1,"replicas":[3,1],"log_dirs":["/d3","any"]},'
        '{"topic":"b","partition":0,"replicas":[1],"log_dirs":["any"]}]}'
    )
    assert parse_proposal(text).replicas == {("b", 0): (1,), ("a", 1): (3, 1)}


A0 = {"topic": "a", "partition": 0, "replicas": [1, 2]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{bad", "not JSON"),
        ("[]", "JSON, but not an object"),
        ('{"version": 2, "partitions": []}', "Not supported version field value 2"),
        (rows(), "reassigns nothing"),
        (rows({**A0, "replicas": []}), "a-0 has no replicas"),
        (rows({**A0, "replicas": [1, 1]}), "a-0 lists a broker more than once: 1"),
        (rows({**A0, "replicas": "1,2"}), "must be a list of broker ids"),
        (rows(A0, A0), "a-0 is in the file twice"),
        (rows({"topic": "a"}), "No such field exists: `partition`"),
        (rows({**A0, "partition": "x"}), "must be a number"),
        (rows({**A0, "log_dirs": ["any"]}), "names 1 log dirs for 2 replicas"),
        ('{"partitions": [1]}', "must be a list of objects"),
    ],
)
def test_what_is_no_proposal_is_told(text: str, says: str):
    with pytest.raises(CommandFailed, match=says):
        parse_proposal(text)


def test_topics_to_move_are_named_once():
    assert parse_topics('{"topics": [{"topic": "a"}, {"topic": "b"}]}') == ["a", "b"]
    with pytest.raises(CommandFailed, match="more than once: a"):
        parse_topics('{"topics": [{"topic": "a"}, {"topic": "a"}]}')
