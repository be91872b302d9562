from __future__ import annotations

from dataclasses import replace

from tidelog.client.admin.results import (
    LogDir,
    PartitionDescription,
    QuorumDescription,
    QuorumReplica,
    Reassignment,
    TransactionDescription,
)
from tidelog.console.asking.health import Facts, troubles
from tidelog.console.asking.overview import BrokerAddress, Overview, TopicState

CLEAN = PartitionDescription(0, 1, 0, (1, 2), (1, 2), ())
NOW = 1_000_000


def facts(part: PartitionDescription = CLEAN, brokers: tuple[int, ...] = (1, 2), **changes: object) -> Facts:
    topic = TopicState("orders", b"", False, (part,))
    there = Overview("c", {each: BrokerAddress(each, "h", 1, None) for each in brokers}, {"orders": topic})
    return replace(Facts(NOW, there), **changes)  # type: ignore[arg-type]


def kinds(found: Facts) -> list[str]:
    return [each.kind for each in troubles(found)[0]]


def test_a_clean_cluster_has_no_findings_and_says_what_is_fine() -> None:
    quorum = QuorumDescription(1, 1, 100, (QuorumReplica(1, 100, -1, -1), QuorumReplica(2, 100, NOW, NOW)), ())
    found, fine = troubles(facts(quorum=quorum, log_dirs={1: [LogDir("/d", 100, 50, {}, None)]}))
    assert found == []
    assert "each partition has a leader" in fine


def test_the_worst_comes_first() -> None:
    lost = replace(CLEAN, leader=None, in_sync=())
    moves = {("orders", 0): Reassignment((1, 2, 3), (3,), (1,))}
    assert kinds(facts(lost, moves=moves)) == ["leaderless", "reassigning"]


def test_partitions_below_at_and_above_min_isr() -> None:
    short = replace(CLEAN, in_sync=(1,))
    assert kinds(facts(short, min_in_sync={"orders": 2})) == ["under_min_isr", "under_replicated"]
    assert kinds(facts(short, min_in_sync={"orders": 1})) == ["at_min_isr", "under_replicated"]
    assert kinds(facts(CLEAN, min_in_sync={"orders": 2})) == []


def test_a_leader_that_is_not_preferred_is_a_note() -> None:
    assert kinds(facts(replace(CLEAN, leader=2))) == ["not_preferred"]


def test_a_broker_that_is_down_is_named_by_the_replicas_it_holds() -> None:
    found = troubles(facts(replace(CLEAN, in_sync=(1,)), brokers=(1,)))[0]
    assert [each.kind for each in found] == ["broker_down", "under_replicated"]
    assert (found[0].evidence, found[0].link) == (("broker 2: 1 replica",), ("broker", "2"))


def test_disks() -> None:
    assert kinds(facts(log_dirs={1: [LogDir("/d", 1000, 50, {}, None)]})) == ["disk_full"]
    assert kinds(facts(log_dirs={1: [LogDir("/d", -1, -1, {}, None)]})) == []
    assert kinds(facts(log_dirs={1: [LogDir("/d", -1, -1, {}, "KAFKA_STORAGE_ERROR")]})) == ["offline_dir"]


def test_the_quorum() -> None:
    late = QuorumReplica(2, 40, NOW, NOW - 60_000)
    assert kinds(facts(quorum=QuorumDescription(1, 1, 100, (QuorumReplica(1, 100, -1, -1), late), ()))) == ["quorum_lag"]
    assert kinds(facts(quorum=QuorumDescription(-1, 1, 100, (), ()))) == ["no_controller"]


def test_a_transaction_over_its_timeout() -> None:
    open_one = TransactionDescription("tx", 1, 7, 0, "Ongoing", 60_000, NOW - 1000, (("orders", 0),))
    assert kinds(facts(transactions=(open_one,))) == []
    assert kinds(facts(transactions=(replace(open_one, started_ms=NOW - 61_000),))) == ["hanging_transaction"]


def test_a_finding_as_the_browser_gets_it() -> None:
    (found,) = troubles(facts(replace(CLEAN, leader=None, in_sync=())))[0]
    row = found.as_json(lambda command: f"{command} --bootstrap-server h:1")
    assert row["link"] == {"page": "topic", "topic": "orders", "group": None, "broker": None, "id": None}
    assert row["command"].endswith("--bootstrap-server h:1")
    assert row["evidence"] == ["orders-0: replicas 1, 2, in sync none"]
