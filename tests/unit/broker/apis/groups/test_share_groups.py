"""Share groups for administrators: description, offsets, deletion."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.share_talk import MEMBER, Member, configure, create, produce
from tests.unit.broker.node_world import run
from tidelog.broker.apis.groups import share_groups
from tidelog.broker.shares.state_store import StateStore
from tidelog.coordinator.group.share.share_service import Ordered
from tidelog.coordinator.share.coordinator import Answer
from tidelog.coordinator.share.records import ShareKey
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages import alter_share_group_offsets as altering
from tidelog.protocol.messages import delete_share_group_offsets as deleting
from tidelog.protocol.messages import describe_share_group_offsets as describing
from tidelog.protocol.messages.delete_groups import DeleteGroupsRequest
from tidelog.protocol.messages.list_groups import ListGroupsRequest
from tidelog.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from tidelog.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tidelog.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tidelog.testing import Broker

ACCEPT = [1]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {"share.coordinator.state.topic.num.partitions": 2, "group.share.assignment.interval.ms": 0}
    with Broker(config=config) as running:
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    talk = Talk(broker.port)
    yield talk
    talk.close()


@pytest.fixture(scope="module")
def topic_id(broker: Broker) -> bytes:
    talk = Talk(broker.port)
    made = create(talk, "t", 2)
    produce(talk, "t", 10)
    talk.close()
    return made


def joined(broker: Broker, talk: Talk, group: str) -> Member:
    configure(talk, group, share_auto_offset_reset="earliest")
    member = Member(broker, group)
    member.join("t")
    return member


def offsets(talk: Talk, group: str, *names: str) -> Any:
    topics = [describing.DescribeShareGroupOffsetsRequestTopic(name, [0, 1]) for name in names] if names else None
    asked = [describing.DescribeShareGroupOffsetsRequestGroup(group, topics)]
    return talk.ask(describing.DescribeShareGroupOffsetsRequest(asked), 1).groups[0]


def alter(talk: Talk, group: str, topic: str, *partitions: tuple[int, int]) -> Any:
    parts = [altering.AlterShareGroupOffsetsRequestPartition(*each) for each in partitions]
    return talk.ask(altering.AlterShareGroupOffsetsRequest(group, [altering.AlterShareGroupOffsetsRequestTopic(topic, parts)]), 0)


def delete(talk: Talk, group: str, topic: str) -> Any:
    return talk.ask(deleting.DeleteShareGroupOffsetsRequest(group, [deleting.DeleteShareGroupOffsetsRequestTopic(topic)]), 0)


def test_a_group_is_described_and_listed(broker: Broker, talk: Talk, topic_id: bytes) -> None:
    member = joined(broker, talk, "described")
    (found,) = talk.ask(ShareGroupDescribeRequest(["described"], include_authorized_operations=True), 1).groups
    assert (found.error_code, found.group_state, found.assignor_name) == (0, "Stable", "simple")
    assert [(each.member_id, each.subscribed_topic_names) for each in found.members] == [(MEMBER, ["t"])]
    assert [list(each.partitions) for each in found.members[0].assignment.topic_partitions] == [[0, 1]]
    assert found.authorized_operations > 0
    listed = talk.ask(ListGroupsRequest(types_filter=["share"]), 5).groups
    assert [(each.group_id, each.group_type, each.group_state) for each in listed if each.group_id == "described"] == [
        ("described", "share", "Stable")
    ]
    codes = [each.error_code for each in talk.ask(ShareGroupDescribeRequest(["nothing", ""]), 1).groups]
    assert codes == [E.GROUP_ID_NOT_FOUND, E.INVALID_GROUP_ID]
    member.close()


def test_offsets_and_lag_are_described(broker: Broker, talk: Talk, topic_id: bytes) -> None:
    member = joined(broker, talk, "lagging")
    member.records(topic_id, max_records=3, share_acquire_mode=1)
    assert member.acknowledge(topic_id, [(1, 2, ACCEPT)]).error_code == 0
    (found,) = offsets(talk, "lagging").topics
    assert [(each.partition_index, each.start_offset, each.lag) for each in found.partitions] == [(0, 0, 8), (1, -1, -1)]
    (unknown,) = offsets(talk, "lagging", "missing").topics
    assert [(each.start_offset, each.error_code) for each in unknown.partitions] == [(-1, 0)] * 2
    nothing = offsets(talk, "nothing")
    assert (nothing.error_code, nothing.topics) == (0, [])
    member.close()


def test_offsets_are_altered_and_the_delivery_begins_there(broker: Broker, talk: Talk, topic_id: bytes) -> None:
    member = joined(broker, talk, "altered")
    assert member.records(topic_id) == [(0, 9, 1)]
    assert alter(talk, "altered", "t", (0, 4)).error_code == E.NON_EMPTY_GROUP
    assert member.beat(-1).error_code == 0
    answer = alter(talk, "altered", "t", (0, 9), (7, 0), (0, 4))
    assert [each.error_code for each in answer.responses[0].partitions] == [0, E.UNKNOWN_TOPIC_OR_PARTITION, 0]
    late = member.acknowledge(topic_id, [(0, 9, ACCEPT)])
    assert late.responses[0].partitions[0].error_code == E.NOT_LEADER_OR_FOLLOWER, "the state was reset meanwhile"
    assert member.records(topic_id) == [(4, 9, 1)]
    assert [each.start_offset for each in offsets(talk, "altered", "t").topics[0].partitions] == [4, -1]
    assert alter(talk, "made", "t", (0, 7)).error_code == 0
    made = offsets(talk, "made", "t").topics[0].partitions
    assert [(each.start_offset, each.lag) for each in made] == [(7, 3), (-1, -1)], "the lag is known before a member reads"
    member.close()


def test_offsets_are_deleted(broker: Broker, talk: Talk, topic_id: bytes) -> None:
    member = joined(broker, talk, "deleted")
    assert delete(talk, "deleted", "t").error_code == E.NON_EMPTY_GROUP
    assert delete(talk, "nothing", "t").error_code == E.GROUP_ID_NOT_FOUND
    member.beat(-1)
    assert delete(talk, "deleted", "t").responses[0].error_code == 0
    assert delete(talk, "deleted", "t").responses[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert offsets(talk, "deleted").topics == []
    member.close()


def test_a_group_is_deleted_with_its_state(broker: Broker, talk: Talk, topic_id: bytes) -> None:
    member = joined(broker, talk, "gone")
    (refused,) = talk.ask(DeleteGroupsRequest(groups_names=["gone"]), 2).results
    assert refused.error_code == E.NON_EMPTY_GROUP
    member.beat(-1)
    (done,) = talk.ask(DeleteGroupsRequest(groups_names=["gone"]), 2).results
    assert done.error_code == 0
    assert offsets(talk, "gone").topics == []
    (described,) = talk.ask(ShareGroupDescribeRequest(group_ids=["gone"]), 1).groups
    assert described.error_code == E.GROUP_ID_NOT_FOUND
    member.close()


def test_without_the_feature_every_request_is_unsupported(talk: Talk, broker: Broker) -> None:
    with Broker() as other:
        alone = Talk(other.port)
        off = FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
        alone.ask(UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[off]), 1)
        member = Member(other, "g")
        code = E.UNSUPPORTED_VERSION
        assert alone.ask(ShareGroupHeartbeatRequest("g", MEMBER, 0, None, ["t"]), 1).error_code == code
        assert alone.ask(ShareGroupDescribeRequest(["g"]), 1).groups[0].error_code == code
        assert offsets(alone, "g").error_code == code
        assert alter(alone, "g", "t", (0, 0)).error_code == code
        assert delete(alone, "g", "t").error_code == code
        assert member.fetch(b"t" * 16).error_code == code
        assert member.acknowledge(b"t" * 16, []).error_code == code
        member.close()
        alone.close()


def test_a_reset_that_the_group_did_not_record_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def initialize(key: ShareKey, state_epoch: int, start_offset: int) -> Answer:
        return Answer()

    async def moved(*_: Any) -> E:
        return E.NOT_COORDINATOR

    monkeypatch.setattr(share_groups, "ask_shares", moved)
    store = SimpleNamespace(initialize=initialize)
    ctx: Any = SimpleNamespace(node=SimpleNamespace(share_partitions=SimpleNamespace(store=store)))
    key = ShareKey("g", b"t" * 16, 0)
    ordered = Ordered(5, {key.topic_id: frozenset({0})}, {})
    assert run(share_groups.initialize(ctx, "g", ordered, {key: 7})) == {key: E.NOT_COORDINATOR}


def test_a_partition_that_is_named_again_is_looked_up_once(broker: Broker, talk: Talk, topic_id: bytes) -> None:
    member = joined(broker, talk, "repeated")
    member.records(topic_id)
    assert member.acknowledge(topic_id, [(0, 2, ACCEPT)]).error_code == 0
    counts: list[int] = []
    store = StateStore.summary
    try:

        async def counted(self: StateStore, key: ShareKey) -> Any:
            counts.append(key.partition)
            return await store(self, key)

        StateStore.summary = counted  # type: ignore[method-assign]
        topic = describing.DescribeShareGroupOffsetsRequestTopic("t", [0] * 50 + [1, 0])
        group = describing.DescribeShareGroupOffsetsRequestGroup("repeated", [topic])
        (found,) = talk.ask(describing.DescribeShareGroupOffsetsRequest([group]), 1).groups
    finally:
        StateStore.summary = store  # type: ignore[method-assign]
    assert [each.partition_index for each in found.topics[0].partitions] == [0] * 50 + [1, 0]
    assert {each.start_offset for each in found.topics[0].partitions if each.partition_index == 0} == {0}
    assert counts == [0, 1]
    member.close()


def test_a_start_offset_far_below_zero_has_a_lag_that_can_be_written(broker: Broker, talk: Talk, topic_id: bytes) -> None:
    member = joined(broker, talk, "absurd")
    member.records(topic_id)
    assert member.acknowledge(topic_id, [(0, 2, ACCEPT)]).error_code == 0
    store = StateStore.summary
    try:

        async def absurd(self: StateStore, key: ShareKey) -> Any:
            answer = await store(self, key)
            return answer if answer.stored is None else answer._replace(stored=answer.stored._replace(start_offset=-(2**63)))

        StateStore.summary = absurd  # type: ignore[method-assign]
        (found,) = offsets(talk, "absurd").topics
    finally:
        StateStore.summary = store  # type: ignore[method-assign]
    assert (found.partitions[0].start_offset, found.partitions[0].lag) == (-(2**63), 2**63 - 1)
    member.close()
