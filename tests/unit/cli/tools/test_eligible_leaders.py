"""Who else could lead: asked in pages, where brokers tell."""

from __future__ import annotations

from typing import Any

from tests.unit.cli.cluster_stand_in import StandIn
from tidelog.cli.tools.eligible_leaders import PAGE_PARTITIONS, Eligible, columns, eligible_leaders
from tidelog.client.connection import UnsupportedByBroker
from tidelog.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)


class Pages(StandIn):
    """A broker that answers one partition at a time."""

    def __init__(self) -> None:
        super().__init__({DescribeTopicPartitionsRequest: self.page})

    def version_of(self, api_key: int) -> int:
        return 0

    def page(self, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
        index = request.cursor.partition_index if request.cursor is not None else 0
        part = DescribeTopicPartitionsResponsePartition(
            partition_index=index, eligible_leader_replicas=[2, 3] if index else None, last_known_elr=[index]
        )
        topic = DescribeTopicPartitionsResponseTopic(name="a", partitions=[part])
        return DescribeTopicPartitionsResponse(
            topics=[topic], next_cursor=ResponseCursor(topic_name="a", partition_index=index + 1) if index < 2 else None
        )


def test_all_pages_are_asked_for() -> None:
    pages: Any = Pages()
    found = eligible_leaders(pages, ["a"])
    assert found == {("a", 0): Eligible((), (0,)), ("a", 1): Eligible((2, 3), (1,)), ("a", 2): Eligible((2, 3), (2,))}
    assert len(pages.asked) == 3
    assert columns(found, ("a", 1)) == "\tElr: 2,3\tLastKnownElr: 1"
    assert columns(found, ("b", 0)) == "\tElr: \tLastKnownElr: "
    assert eligible_leaders(pages, []) == {}
    assert {request.response_partition_limit for _, request in pages.asked} == {PAGE_PARTITIONS}
    eligible_leaders(pages, ["a"], 7)
    assert pages.asked[-1][1].response_partition_limit == 7


def test_brokers_that_do_not_know_of_it_are_not_asked() -> None:
    class Older(Pages):
        def version_of(self, api_key: int) -> int:
            raise UnsupportedByBroker("not served")

    older: Any = Older()
    assert eligible_leaders(older, ["a"]) is None
    assert older.asked == []
    assert columns(None, ("a", 0)) == "\tElr: N/A\tLastKnownElr: N/A"
