"""Which partitions ``get-offsets`` takes a rule to mean."""

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.get_offsets import rule


@pytest.mark.parametrize(
    ("text", "indexes"),
    [("t", [0, 1, 2, 3]), ("t:", [0, 1, 2, 3]), ("t:2", [2]), ("t:1-3", [1, 2]), ("t:2-", [2, 3]), ("t:-2", [0, 1]), (":1", [1])],
)
def test_a_range_ends_before_its_second_number(text, indexes):
    assert [index for index in range(4) if rule(text)("t", index)] == indexes


def test_topics_are_patterns_for_the_whole_name():
    assert rule("or.*:0")("orders", 0)
    assert not rule("or:0")("orders", 0)


@pytest.mark.parametrize("text", ["t:x", "t:1-2-3", "t:1:2", "[:1"])
def test_other_rules_are_refused(text):
    with pytest.raises(CommandFailed):
        rule(text)


def test_the_name_of_a_topic_means_that_topic_alone():
    existing = ["orders.eu", "ordersXeu"]
    assert [name for name in existing if rule("orders.eu", existing)(name, 0)] == ["orders.eu"]
    assert [name for name in existing if rule("orders.e.", existing)(name, 0)] == existing
