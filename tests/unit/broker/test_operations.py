from __future__ import annotations

from tidelog.broker.operations import CLUSTER_OPERATIONS, GROUP_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS


def test_the_sets_are_those_that_kafka_answers_without_an_authorizer() -> None:
    assert TOPIC_OPERATIONS == 0b1101_1111_1000
    assert CLUSTER_OPERATIONS == 0b1_1111_1010_0000
    assert GROUP_OPERATIONS == 0b1101_0100_1000


def test_not_asked_is_the_schemas_default() -> None:
    assert NOT_ASKED == -2147483648
