from dataclasses import replace

import pytest

from tidelog.controller.partitions import change_for, elect, has_online_dir, unclean_allowed
from tidelog.metadata.image import EMPTY_IMAGE, BrokerImage, ClusterImage, PartitionImage
from tidelog.model.ids import LOST_DIR, UNASSIGNED_DIR, ZERO_UUID, Uuid
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord

TOPIC = Uuid(b"t" * 16)
DIR = Uuid(b"d" * 16)


def partition(**changes: object) -> PartitionImage:
    return replace(PartitionImage((1, 2, 3), (1, 2), 1, directories=(DIR,) * 3), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "isr", "up", "unclean_ok", "leader", "unclean"),
    [
        ({}, (1, 2), {1, 2, 3}, False, 1, False),
        ({"leader": 2}, (1, 2), {1, 2, 3}, False, 2, False),
        ({}, (2,), {1, 2, 3}, False, 2, False),
        ({}, (1, 2), {2, 3}, False, 2, False),
        ({"leader": -1}, (1, 2), {3}, False, -1, False),
        ({"leader": -1}, (1, 2), {3}, True, 3, True),
        ({"leader": -1}, (1, 2), set(), True, -1, False),
        ({"leader": -1, "elr": (3,)}, (), {2, 3}, False, 3, False),
        ({"leader": -1, "elr": (3,)}, (1,), {3}, False, -1, False),
    ],
)
def test_who_leads(
    state: dict[str, object], isr: tuple[int, ...], up: set[int], unclean_ok: bool, leader: int, unclean: bool
) -> None:
    election = elect(partition(**state), isr, up.__contains__, unclean_allowed=unclean_ok)
    assert (election.leader, election.unclean) == (leader, unclean)


def change(state: PartitionImage, isr: tuple[int, ...], up: set[int], *, unclean: bool = False) -> PartitionChangeRecord | None:
    return change_for(TOPIC, 4, state, isr=isr, acceptable=up.__contains__, unclean_allowed=unclean)


def test_no_record_is_written_when_nothing_changes() -> None:
    assert change(partition(), (1, 2), {1, 2}) is None


def test_a_shrunk_isr_alone_names_no_leader() -> None:
    record = change(partition(), (1,), {1})
    assert record is not None
    assert (record.partition_id, record.topic_id, record.isr, record.leader) == (4, TOPIC, [1], -2)


def test_a_moved_leadership_names_leader_and_isr() -> None:
    record = change(partition(), (2,), {2})
    assert record is not None
    assert (record.leader, record.isr) == (2, [2])


def test_the_last_member_of_the_isr_stays_in_it_without_leading() -> None:
    record = change(partition(isr=(1,)), (), set())
    assert record is not None
    assert (record.leader, record.isr) == (-1, None)


def test_an_unclean_leader_is_the_whole_isr_and_recovers() -> None:
    record = change(partition(leader=-1), (1, 2), {3}, unclean=True)
    assert record is not None
    assert (record.leader, record.isr, record.leader_recovery_state) == (3, [3], 1)


def test_an_eligible_leader_becomes_the_isr() -> None:
    record = change(partition(leader=-1, isr=(), elr=(2,)), (), {2})
    assert record is not None
    assert (record.leader, record.isr, record.leader_recovery_state) == (2, [2], -1)


@pytest.mark.parametrize(
    ("directory", "online"), [(DIR, True), (UNASSIGNED_DIR, True), (ZERO_UUID, True), (LOST_DIR, False), (Uuid(b"x" * 16), False)]
)
def test_a_replica_in_a_directory_that_is_gone_cannot_lead(directory: Uuid, online: bool) -> None:
    broker = BrokerImage(1, 0, DIR, {}, {}, None, False, False, (DIR,))
    assert has_online_dir(broker, directory) is online


def test_unclean_election_is_allowed_by_topic_then_cluster_then_file() -> None:
    name = "unclean.leader.election.enable"
    assert unclean_allowed(EMPTY_IMAGE, "t", True)
    cluster = ClusterImage(configs={(4, ""): {name: "false"}})
    assert not unclean_allowed(cluster, "t", True)
    topic = ClusterImage(configs={(4, ""): {name: "false"}, (2, "t"): {name: "TRUE"}})
    assert unclean_allowed(topic, "t", False)
    assert not unclean_allowed(topic, "u", True)
