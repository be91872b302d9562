"""Where single values come from; that every metric has a source is shown by test_monitoring."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.transactional import begin, find, init
from tidelog.coordinator.transaction.state import TransactionState
from tidelog.metrics import catalog
from tidelog.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tidelog.server.upkeep.node_metrics import (
    _PER_PARTITION,
    Authorizations,
    IdleShare,
    _fetchers,
    _partitions,
    _transactions,
    in_thread,
    on_loop,
)
from tidelog.testing import Broker


def test_the_idle_share_is_of_the_time_since_the_last_look() -> None:
    clock = SimpleNamespace(wall=100.0, busy=5.0)
    share = IdleShare(lambda: clock.wall, lambda: clock.busy)
    clock.wall, clock.busy = 110.0, 7.5
    assert share.look() == 0.75
    assert share.look() == 0.75, "no time passed: what was true stays true"
    clock.wall, clock.busy = 111.0, 9.0
    assert share.look() == 0.0, "never below nothing"


def test_authorizations_are_counted_over_the_last_minute() -> None:
    clock = SimpleNamespace(now=100.0)
    access: Any = SimpleNamespace(allowed=0, denied=0, acls=7)
    rates = Authorizations(access, lambda: clock.now)

    def look() -> list[float]:
        samples = rates.look()
        assert {labels for rows in samples for labels, _ in rows} == {("authorizer.class.name", "StandardAuthorizer")}
        return [rows[0][1] for rows in samples]

    clock.now, access.allowed, access.denied = 130.0, 20, 10
    assert look() == [60, 40, 20, 7]
    clock.now, access.allowed = 160.0, 40
    assert look() == [50, 40, 10, 7]
    clock.now = 200.0
    assert look() == [pytest.approx(20 / 70 * 60), pytest.approx(20 / 70 * 60), 0, 7], "since the look before the last minute"
    clock.now = 300.0
    assert look() == [0, 0, 0, 7]
    assert Authorizations(None, lambda: clock.now).look() == [[], [], [], []]


def test_free_space_is_told_of_dirs_that_are_there(tmp_path: Path) -> None:
    families = {family.metric: family.samples for family in in_thread([str(tmp_path), f"{tmp_path}/gone"]).collect()}
    ((labels, free),) = families[catalog.LOG_DIR_FREE]
    assert labels == (str(tmp_path),)
    assert free > 0


def test_disk_bytes_are_known_on_linux_and_left_out_elsewhere() -> None:
    families = {family.metric: family.samples for family in in_thread([]).collect()}
    assert len(families[catalog.DISK_WRITE]) == (1 if sys.platform == "linux" else 0)


def partition(**changes: object) -> SimpleNamespace:
    log = SimpleNamespace(log_start_offset=3, log_end_offset=9, high_watermark=8, last_stable_offset=6, segments=[1, 2])
    log.files = SimpleNamespace(segments=SimpleNamespace(size_bytes=500))
    fields = {"topic": "t", "index": 4, "log": log, "isr": (1, 2), "replicas": (1, 2, 3), "spare_in_sync": 0, "leader": 1}
    return SimpleNamespace(**(fields | changes))


def values(each: SimpleNamespace) -> dict[str, float]:
    samples = dict(zip(_PER_PARTITION, _partitions(iter([each])), strict=True))
    assert all(labels == ("t", "4") for rows in samples.values() for labels, _ in rows)
    return {metric.name: rows[0][1] for metric, rows in samples.items() if rows}


def test_a_partition_tells_its_offsets_sizes_and_replicas() -> None:
    assert values(partition()) == {
        "kafka_cluster_partition_laststableoffsetlag": 2,
        "kafka_log_log_size": 500,
        "kafka_log_log_logstartoffset": 3,
        "kafka_log_log_logendoffset": 9,
        "kafka_log_log_numlogsegments": 2,
        "kafka_topic_partition_current_offset": 8,
        "kafka_topic_partition_oldest_offset": 3,
        "kafka_cluster_partition_underminisr": 0,
        "kafka_cluster_partition_atminisr": 1,
        "kafka_cluster_partition_replicascount": 3,
        "kafka_topic_partition_replicas": 3,
        "kafka_topic_partition_in_sync_replica": 2,
        "kafka_topic_partition_leader": 1,
        "kafka_topic_partition_leader_is_preferred": 1,
        "kafka_topic_partition_under_replicated_partition": 1,
    }


def test_a_partition_on_a_failed_dir_tells_no_offsets() -> None:
    told = values(partition(log=None, leader=2, isr=(2,), spare_in_sync=-1))
    assert "kafka_log_log_size" not in told
    assert (told["kafka_cluster_partition_underminisr"], told["kafka_topic_partition_leader_is_preferred"]) == (1, 0)


def test_groups_and_requests_are_counted_on_a_running_node() -> None:
    with Broker() as broker:
        broker.produce("t", "a", "b", "c")
        talk = Talk(broker.port)
        talk.find("g")
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
        talk.ask(OffsetCommitRequest(group_id="g", topics=[topic]), 8)
        talk.close()
        node = broker._host.thread.running()
        families = {family.metric: family.samples for family in broker._host.thread.call(lambda: on_loop(node.parts).collect())}
    assert list(families[catalog.GROUP_OFFSET]) == [(("g", "t", "0"), 1)]
    assert list(families[catalog.GROUP_LAG]) == [(("g", "t", "0"), 2)]
    assert (("OffsetCommit", "8"), 1) in list(families[catalog.REQUESTS])


def test_transactions_are_counted_by_state_and_the_oldest_tells_its_age() -> None:
    with Broker(config={"transaction.state.log.num.partitions": 2}) as broker:
        broker.create_topic("t")
        talk = Talk(broker.port)
        find(talk, "open")
        begin(talk, "open", ("t", 0))
        init(talk, "idle")
        node = broker._host.thread.running()
        families = {
            family.metric: dict(family.samples) for family in broker._host.thread.call(lambda: on_loop(node.parts).collect())
        }
        talk.close()
    states = {labels[0]: count for labels, count in families[catalog.TRANSACTIONAL_IDS].items() if count}
    assert states == {"Ongoing": 1, "Empty": 1}
    assert families[catalog.OLDEST_TRANSACTION][()] >= 0 and families[catalog.MISSING_MARKERS][()] == 0


def test_a_transaction_is_no_older_where_the_clock_was_set_meanwhile() -> None:
    begun = SimpleNamespace(start_ms=5000, transactional_id="pay", at_rest=False, state=TransactionState.ONGOING)
    machine = SimpleNamespace(transactions={"pay": begun}, missing_markers=0)
    runtime = SimpleNamespace(even_ms=lambda: 8000, now_ms=lambda: 3_608_000)
    parts: Any = SimpleNamespace(
        broker=SimpleNamespace(transactions=SimpleNamespace(machines=lambda: [machine])), runtime=runtime
    )
    assert _transactions(parts)[1] == [((), 3.0)]


def test_followers_tell_how_far_they_are_behind() -> None:
    partition = SimpleNamespace(topic="t", index=3)
    machine = SimpleNamespace(lags=lambda: [(partition, 12)], failed_partitions=1)
    fetcher: Any = SimpleNamespace(number=0, leader=2, machine=machine)
    lags, greatest, failed = _fetchers([fetcher])
    assert lags == [(("ReplicaFetcherThread-0-2", "t", "3"), 12)]
    assert (greatest, failed) == ([(("Replica",), 12)], [(("Replica",), 1)])
