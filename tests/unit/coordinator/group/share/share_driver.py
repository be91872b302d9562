"""The driver of a GroupCoordinator with members of share groups; initializations are answered when the test says so."""

from __future__ import annotations

from typing import Any

from tests.unit.coordinator.group.consumer_driver import ConsumerDriver, topic_id
from tidelog.coordinator.group.share.share_group import ShareGroup
from tidelog.coordinator.group.share.share_heartbeat import Initialize, ShareBeat
from tidelog.model.machine import Outcome
from tidelog.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

ANN, BOB, CID = "ann", "bob", "cid"


class ShareDriver(ConsumerDriver):
    """Topic ``t`` has three partitions."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        self.orders: list[Initialize] = []
        super().__init__(*args, **fields)

    def run(self, outcome: Outcome) -> None:
        self.orders += outcome.sends
        super().run(outcome._replace(sends=()))

    def share_beat(
        self, member: str, epoch: int, topics: list[str] | None = None, group: str = "g"
    ) -> ShareGroupHeartbeatResponse:
        token = self.token()
        request = ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics)
        self.run(self.machine.shares.heartbeat(ShareBeat(token, "c", "/127.0.0.1", request), self.now))
        answer = self.answers[token]
        assert isinstance(answer, ShareGroupHeartbeatResponse)
        return answer

    def join(self, member: str, *topics: str, group: str = "g") -> ShareGroupHeartbeatResponse:
        """The first heartbeat of a member."""
        return self.share_beat(member, 0, list(topics or ("t",)), group)

    def settle(self, *, done: bool = True) -> None:
        """Answers the oldest order."""
        order = self.orders.pop(0)
        partitions = {each: found for each, (_, found) in order.topics.items()}
        self.run(self.machine.shares.settle(order.group_id, partitions if done else {}, {} if done else partitions))

    def shared(self, group: str = "g") -> ShareGroup:
        found = self.machine.groups[group]
        assert isinstance(found, ShareGroup)
        return found

    def told(self, answer: ShareGroupHeartbeatResponse) -> dict[str, list[int]] | None:
        """What an answer assigns, by topic."""
        if answer.assignment is None:
            return None
        return {each.topic_id.rstrip(b".").decode(): list(each.partitions) for each in answer.assignment.topic_partitions}


def parts(**topics: list[int]) -> dict[bytes, frozenset[int]]:
    return {topic_id(name): frozenset(partitions) for name, partitions in topics.items()}
