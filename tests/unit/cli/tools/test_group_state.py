"""Groups of both protocols in one form."""

from tests.unit.client.scripted import Table, answered
from tidelog.cli.columns import table
from tidelog.cli.tools import group_report, group_state
from tidelog.client.admin.groups import assigned, describe
from tidelog.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from tidelog.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from tidelog.protocol.messages.list_groups import ListedGroup


def test_a_group_of_the_consumer_protocol_shows_epochs_and_targets():
    now = Assignment(
        topic_partitions=[TopicPartitions(topic_name="b", partitions=[1]), TopicPartitions(topic_name="a", partitions=[0, 2])]
    )
    target = Assignment(topic_partitions=[TopicPartitions(topic_name="a", partitions=[0])])
    member = Member(member_id="m", client_id="c", client_host="/h", member_epoch=4, assignment=now, target_assignment=target)
    found = DescribedGroup(
        group_id="g", group_state="Stable", group_epoch=6, assignment_epoch=5, assignor_name="uniform", members=[member]
    )
    group = answered(describe("g"), Table(ConsumerGroupDescribeResponse(groups=[found])))
    assert (group.state, group.assignor, group.epoch, group.target_epoch) == ("Stable", "uniform", 6, 5)
    columns, rows = group_report.members(None, group, True)
    assert table(columns, rows).splitlines()[1].split() == ["g", "m", "/h", "c", "3", "4", "a:0,2;b:1", "5", "a:0"]


def test_an_assignment_of_the_classic_protocol_is_read_whatever_its_version():
    value = ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic="t", partitions=[1, 0])])
    assert assigned(b"\0\1" + value.encode(1)) == (("t", 0), ("t", 1))
    assert assigned(b"\0\x63" + value.encode(3)) == (("t", 0), ("t", 1))


def test_assignments_that_are_none_are_empty():
    assert assigned(b"") == assigned(b"\0\0\xff\xff\xff") == ()


def test_the_groups_of_consumers_are_those_of_both_protocols_and_those_that_only_keep_offsets(monkeypatch):
    rows = [
        ListedGroup(group_id="new", group_type="consumer", protocol_type="consumer"),
        ListedGroup(group_id="old", group_type="classic", protocol_type="consumer"),
        ListedGroup(group_id="offsets", group_type="classic", protocol_type=""),
        ListedGroup(group_id="connect", group_type="classic", protocol_type="connect"),
        ListedGroup(group_id="share", group_type="share", protocol_type="share"),
    ]
    monkeypatch.setattr(group_state, "list_groups", lambda session: rows)
    assert [group.group_id for group in group_state.consumer_groups(None)] == ["new", "old", "offsets"]
