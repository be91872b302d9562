"""DescribeGroups, ListGroups and OffsetFetch: read-only views of groups."""

from __future__ import annotations

from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.group_kind import Group
from tidelog.coordinator.partition_for_key import table_order
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from tidelog.protocol.messages.list_groups import ListedGroup

UNKNOWN_IS_AN_ERROR_FROM = 6


def describe(coordinator: GroupCoordinator, group_id: str, version: int) -> DescribedGroup:
    """Describes one group. An unknown group is Dead, and since v6 an error as well. Member metadata are shown once a protocol
    is chosen."""
    known, group = coordinator.groups.get(group_id), coordinator.classic_group(group_id)
    if known is None and coordinator.offsets.stored.exist(group_id):
        group = ClassicGroup(group_id, 0)
    if group is None:
        if version >= UNKNOWN_IS_AN_ERROR_FROM:
            text = (
                f"Group {group_id} not found."
                if known is None
                else f"Group {group_id} uses the consumer protocol: ask with ConsumerGroupDescribe."
            )
            return DescribedGroup(
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=text,
                group_id=group_id,
                group_state=GroupState.DEAD.value,
            )
        return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    agreed = group.protocol if group.state is GroupState.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=agreed or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(agreed) if agreed is not None else b"",
                # Between two generations it is that of the previous one.
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def list_groups(coordinator: GroupCoordinator, states: list[str], types: list[str]) -> list[ListedGroup]:
    """Groups in one of the states and of one of the types; case-insensitive, empty means any."""
    wanted_states = [state.lower() for state in states]
    wanted_types = [kind.lower() for kind in types]
    # A group that only ever stored offsets is listed as well.
    groups: dict[str, Group] = {group_id: ClassicGroup(group_id, 0) for group_id in coordinator.offsets.stored.group_ids()}
    groups.update(coordinator.groups)
    listed = []
    for group_id in table_order(groups):
        group = groups[group_id]
        kind = coordinator.kind_of(group)
        state = kind.state_name(group)
        if (not wanted_types or kind.name in wanted_types) and (not wanted_states or state.lower() in wanted_states):
            protocol_type = kind.protocol_type(group)
            listed.append(ListedGroup(group_id=group_id, protocol_type=protocol_type, group_state=state, group_type=kind.name))
    return listed
