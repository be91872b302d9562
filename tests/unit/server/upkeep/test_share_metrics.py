"""Metrics of share groups, with members at work, without any, and on a node that has no share group."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.share_talk import Member, configure, create, produce
from tests.unit.broker.shares.test_log_reading import partition
from tidelog.broker.shares.share_partitions import ShareCounts
from tidelog.coordinator.share.records import ShareKey
from tidelog.metrics import catalog
from tidelog.model.errors import ErrorCode
from tidelog.replication.share.record_state import Acknowledgement
from tidelog.server.upkeep import share_metrics
from tidelog.server.upkeep.node_metrics import on_loop
from tidelog.server.upkeep.share_metrics import ShareMetrics, timestamp_at
from tidelog.testing import Broker

IN_FLIGHT, BATCHES, TIMEOUTS, LAG, AGE = catalog.SHARE_PARTITIONS


def collected(broker: Broker) -> dict[catalog.Metric, Any]:
    node = broker._host.thread.running()
    found = broker._host.thread.call(lambda: on_loop(node.parts).collect())
    return {family.metric: family.summaries or dict(family.samples) for family in found}


def test_a_group_at_work_and_after_it() -> None:
    at = ("g", "t", "0")
    with Broker(config={"share.coordinator.state.topic.num.partitions": 1, "group.share.assignment.interval.ms": 0}) as broker:
        assert not any(collected(broker)[metric] for metric in catalog.SHARES), "nothing where no group is"
        talk = Talk(broker.port)
        topic_id = create(talk, "t")
        configure(talk, "g", share_auto_offset_reset="earliest")
        member = Member(broker, "g")
        member.join("t")
        produce(talk, "t", 5)
        produce(talk, "t", 5)
        assert member.records(topic_id, max_records=5, batch_size=5) == [(0, 4, 1)]
        assert member.acknowledge(topic_id, [(0, 1, [1]), (2, 3, [1, 3])]).error_code == 0
        found = collected(broker)
        assert (found[LAG][at], found[IN_FLIGHT][at], found[BATCHES][at], found[TIMEOUTS][at]) == (6, 1, 1, 0)
        assert 0 < found[AGE][at] < 3600
        assert found[catalog.SHARE_ACKNOWLEDGEMENTS] == {("Accept",): 3, ("Release",): 0, ("Reject",): 1, ("Renew",): 0}
        assert [found[metric][()] for metric in catalog.SHARE_SESSIONS] == [1, 1, 0]
        assert found[catalog.SHARE_REBALANCES][()] >= 1
        assert found[catalog.SHARE_GROUPS] == {("Empty",): 0, ("Stable",): 1}
        assert [found[metric] for metric in catalog.SHARE_REQUESTS] == [{("t",): count} for count in (1, 0, 1, 0)]
        (loads,) = found[catalog.SHARE_LOAD_TIME]
        assert loads.total == 1
        assert member.acknowledge(topic_id, [(0, 1, [1])]).error_code == 0
        assert collected(broker)[catalog.SHARE_REQUESTS[3]] == {("t",): 0}, "what lies below the start is ignored"
        member.fetch(topic_id, partitions=(7,), max_wait_ms=1)
        assert collected(broker)[catalog.SHARE_REQUESTS[1]] == {("t",): 1}
        assert member.records(topic_id, partitions=(), max_wait_ms=1) == []
        assert collected(broker)[catalog.SHARE_EXPIRES][()] >= 1
        assert member.acknowledge(topic_id, [], epoch=-1).error_code == 0
        found = collected(broker)
        assert found[IN_FLIGHT] == {}, "the last session took it along"
        assert found[LAG][at] == 6, "as it is stored"
        assert found[AGE][at] > 0
        member.close()
        talk.close()


def test_the_first_time_of_the_batch_is_found_without_loading_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    log = partition(5, 5).log
    assert log is not None
    assert [timestamp_at(log, offset) for offset in (0, 7, 9)] == [1, 1, 1]
    assert timestamp_at(log, 10) is None
    monkeypatch.setattr(share_metrics.reading, "may_block", lambda log, offset: True)
    assert timestamp_at(log, 0) is None


def broker_with(count: int, start: int) -> Any:
    """A broker whose coordinator has stored so many share partitions."""
    led = partition(5, 5)
    keys = [ShareKey(f"g{index}", b"t" * 16, 0) for index in range(count)]
    machine = SimpleNamespace(offsets=lambda: ((key, start, 0) for key in keys))
    return SimpleNamespace(
        runtime=SimpleNamespace(now_ms=lambda: 5001),
        share_partitions=(),
        shares=SimpleNamespace(machines=lambda: [machine]),
        replicas=SimpleNamespace(by_id=lambda topic_id, index: led),
    )


def test_a_scrape_reads_a_bounded_number_of_headers_and_later_ones_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    real = share_metrics.timestamp_at
    monkeypatch.setattr(share_metrics, "LOOKS", 3)
    monkeypatch.setattr(share_metrics, "timestamp_at", lambda log, offset: reads.append(offset) or real(log, offset))
    metrics = ShareMetrics(broker_with(5, 2))
    assert [len(metrics.partitions()[4]) for _ in range(3)] == [3, 5, 5]
    assert reads == [2] * 5
    assert metrics.partitions()[4][0][1] == 5.0
    assert [value for _, value in metrics.partitions()[3]] == [8] * 5


def test_a_group_that_is_done_has_no_age_and_one_without_a_start_no_lag() -> None:
    assert ShareMetrics(broker_with(1, 10)).partitions()[3:] == [[(("g0", "t", "0"), 0)], [(("g0", "t", "0"), 0)]]
    assert ShareMetrics(broker_with(1, -1)).partitions()[3:] == [[], []]
    gone = broker_with(1, 2)
    gone.replicas.by_id = lambda topic_id, index: ErrorCode.UNKNOWN_TOPIC_ID
    assert ShareMetrics(gone).partitions()[3:] == [[], []]


def test_acknowledgements_are_counted_by_record() -> None:
    counts = ShareCounts()
    counts.acknowledge([Acknowledgement(0, 9, (1,)), Acknowledgement(10, 12, (2, 3, 3))])
    assert counts.acknowledged == {1: 10, 2: 1, 3: 2}


def test_topics_that_were_deleted_are_forgotten() -> None:
    counts = ShareCounts()
    counts.fetched("t", failed=False)
    counts.answered("gone", failed=True)
    image = SimpleNamespace(topics=SimpleNamespace(by_name={"t": object()}))
    broker: Any = SimpleNamespace(share_partitions=SimpleNamespace(counts=counts), image=image)
    assert ShareMetrics(broker).requests() == [[(("t",), 1)], [(("t",), 0)], [(("t",), 0)], [(("t",), 0)]]
    assert list(counts.topics) == ["t"]
