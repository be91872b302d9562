"""A sample with what nodes' pages say; one that is down hides nothing of the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.console.group_samples import AT, HEALTHY, SAMPLE
from tidelog.cli.facts.endpoint import Access, Page, Reader
from tidelog.cli.node_pages import nodes_at, with_nodes
from tidelog.cli.refusal import CommandFailed
from tidelog.console.group_facts import SHARE, Sample, ShareProgress

FACTS: Page = {"node": {"id": 1}, "loop": {"busy": 0.25}, "clients": None}
SHARES = Sample(0, "Stable", SHARE, partitions={AT: replace(HEALTHY, committed=40, share=ShareProgress(True, None, 40, 60))})


class Pages(Reader):
    """Nodes by endpoint."""

    def __init__(self, nodes: dict[str, list[Page]]) -> None:
        super().__init__(Access())
        self.nodes = nodes
        self.asked: list[tuple[Any, ...]] = []

    def read(self, endpoint: str) -> list[Page]:
        if endpoint not in self.nodes:
            raise CommandFailed(f"{endpoint} cannot be read")
        return self.nodes[endpoint]

    def metrics(self, endpoint: str) -> str:
        return "kafka_server_sharesessioncache_sharesessionscount 2\n"

    def share_record(self, *asked: Any) -> list[Page]:
        self.asked.append(asked)
        return [{"node": {"id": 1}, "leader": {"share": None}}]


def with_pages(found: Sample, group: str, endpoints: tuple[str, ...], reader: Reader) -> Sample:
    return with_nodes(found, group, endpoints, reader, nodes_at(endpoints, reader))


def test_no_endpoint_changes_nothing() -> None:
    assert with_pages(SAMPLE, "g", (), Pages({})) == SAMPLE


def test_a_node_that_is_down_is_named_and_the_others_are_read() -> None:
    found = with_pages(SAMPLE, "g", ("a:1", "b:1"), Pages({"b:1": [FACTS]}))
    assert found.unread == ("a:1 cannot be read",)
    assert [(node.node_id, node.busy) for node in found.nodes] == [(1, 0.25)]


def test_leaders_are_asked_about_share_partitions_at_their_start() -> None:
    pages = Pages({"b:1": [FACTS]})
    share = with_pages(SHARES, "g", ("b:1",), pages).partitions[AT].share
    assert pages.asked == [("b:1", "g", *AT, 40)]
    assert share is not None and share.leader_seen


def test_metrics_of_several_processes_are_left_out() -> None:
    found = with_pages(SAMPLE, "g", ("b:1",), Pages({"b:1": [FACTS, FACTS]}))
    assert [node.metrics for node in found.nodes] == [None, None]


def test_a_page_of_something_else_is_named() -> None:
    assert "something else" in with_pages(SAMPLE, "g", ("b:1",), Pages({"b:1": [{}]})).unread[0]
