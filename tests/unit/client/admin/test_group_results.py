from __future__ import annotations

from tidelog.client.admin.group_results import Group, Member


def test_members_and_groups_of_the_classic_protocol_have_no_epochs() -> None:
    member = Member("m", None, "c", "h", (("t", 0),))
    group = Group("g", "Stable", "range", (member,))
    assert (member.epoch, member.target, group.epoch, group.target_epoch) == (None, None, None, None)
