"""ShareFetch and ShareAcknowledge, as a member sends them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.share_talk import Member, configure, create, produce
from tidelog.broker.shares import share_sessions
from tidelog.model.errors import ErrorCode as E
from tidelog.records.batch import iter_headers
from tidelog.testing import Broker

ACCEPT, RELEASE, REJECT, RENEW = [1], [2], [3], [4]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {"share.coordinator.state.topic.num.partitions": 2, "group.share.assignment.interval.ms": 0}
    with Broker(config=config) as running:
        yield running


class Group:
    """A topic of its own with a share group that reads it from the start."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.broker = broker
        self.name = name
        self.members: list[Member] = []
        talk = Talk(broker.port)
        self.topic_id = create(talk, name)
        configure(talk, name, share_auto_offset_reset="earliest")
        self.talk = talk
        self.first = self.member()
        self.first.join(name)

    def member(self, member_id: str = "AAAAAAAAAAAAAAAAAAAAAQ") -> Member:
        member = Member(self.broker, self.name, member_id)
        self.members.append(member)
        return member

    def produce(self, count: int) -> None:
        produce(self.talk, self.name, count)


@pytest.fixture
def group(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Group]:
    made = Group(broker, f"t{abs(hash(request.node.name))}")
    yield made
    for member in made.members:
        member.close()
    made.talk.close()


def codes(answer: object) -> list[int]:
    return [
        getattr(each, "acknowledge_error_code", 0) or each.error_code
        for topic in answer.responses  # type: ignore[attr-defined]
        for each in topic.partitions
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_delivered_and_acknowledged(group: Group, version: int) -> None:
    group.produce(5)
    group.produce(5)
    answer = group.first.fetch(group.topic_id, version=version)
    (part,) = answer.responses[0].partitions
    assert [(each.first_offset, each.last_offset, each.delivery_count) for each in part.acquired_records] == [(0, 9, 1)]
    assert [header.base_offset for header in iter_headers(bytes(part.records))] == [0, 5]
    assert answer.acquisition_lock_timeout_ms == (30_000 if version >= 1 else 0)
    group.produce(3)
    assert group.first.records(group.topic_id, [(0, 9, ACCEPT)]) == [(10, 12, 1)]
    assert codes(group.first.acknowledge(group.topic_id, [(10, 12, ACCEPT)])) == [0]


def test_a_fetch_waits_for_records(group: Group) -> None:
    member = group.first
    assert member.records(group.topic_id, max_wait_ms=1) == []
    other = group.member("B")
    assert other.records(group.topic_id, max_wait_ms=1) == []
    group.produce(2)
    assert member.records(group.topic_id) == [(0, 1, 1)]
    assert member.records(group.topic_id, max_wait_ms=1) == []
    assert member.acknowledge(group.topic_id, [(0, 1, RELEASE)]).error_code == 0
    assert other.records(group.topic_id) == [(0, 1, 2)]


def test_each_record_may_have_its_own_type(group: Group) -> None:
    group.produce(4)
    group.first.records(group.topic_id)
    assert group.first.records(group.topic_id, [(0, 3, [1, 2, 3, 0])]) == [(1, 1, 2)]


def test_exactly_as_many_as_asked_for(group: Group) -> None:
    group.produce(10)
    assert group.first.records(group.topic_id, max_records=4, share_acquire_mode=1) == [(0, 3, 1)]
    other = group.member("B")
    assert other.records(group.topic_id, max_records=4, share_acquire_mode=1) == [(4, 7, 1)]


def test_a_closed_session_and_a_lost_connection_release_records(group: Group) -> None:
    group.produce(4)
    assert group.first.records(group.topic_id) == [(0, 3, 1)]
    other = group.member("B")
    assert other.records(group.topic_id, max_wait_ms=1) == []
    assert group.first.fetch(group.topic_id, epoch=-1, partitions=()).error_code == 0
    assert other.records(group.topic_id) == [(0, 3, 2)]
    third = group.member("C")
    assert third.records(group.topic_id, max_wait_ms=1) == []
    other.close()
    assert third.records(group.topic_id) == [(0, 3, 3)]
    assert third.acknowledge(group.topic_id, [(0, 1, ACCEPT)], epoch=-1).error_code == 0
    fourth = group.member("D")
    assert fourth.records(group.topic_id) == [(2, 2, 4)], "records that were delivered often go out in smaller parts"


def test_a_renewal_fetches_nothing(group: Group) -> None:
    group.produce(4)
    group.first.records(group.topic_id)
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    assert group.first.fetch(group.topic_id, [(0, 3, RENEW)], is_renew_ack=True).error_code == E.INVALID_REQUEST
    assert group.first.records(group.topic_id, [(0, 3, RENEW)], is_renew_ack=True, **nothing) == []
    assert codes(group.first.acknowledge(group.topic_id, [(0, 3, RENEW)], renew=True)) == [0]
    assert codes(group.first.acknowledge(group.topic_id, [(0, 3, RENEW)])) == [E.INVALID_REQUEST]


@pytest.mark.parametrize(
    ("acks", "error"),
    [
        ([(0, 99, ACCEPT)], E.INVALID_REQUEST),
        ([(3, 2, ACCEPT)], E.INVALID_REQUEST),
        ([(0, 3, [1, 1])], E.INVALID_REQUEST),
        ([(0, 3, [])], E.INVALID_REQUEST),
        ([(0, 3, [7])], E.INVALID_REQUEST),
        ([(2, 3, ACCEPT), (0, 1, ACCEPT)], E.INVALID_REQUEST),
        ([(0, 3, ACCEPT)], E.INVALID_RECORD_STATE),
    ],
)
def test_acknowledgements_that_cannot_be_are_refused(group: Group, acks: list[tuple[int, int, list[int]]], error: E) -> None:
    group.produce(4)
    assert group.first.records(group.topic_id) == [(0, 3, 1)]
    member = group.first
    if error is E.INVALID_RECORD_STATE:
        member = group.member("B")
        member.records(group.topic_id, max_wait_ms=1)
    assert codes(member.acknowledge(group.topic_id, acks)) == [error]
    assert codes(group.first.acknowledge(group.topic_id, [(0, 3, ACCEPT)])) == [0]


def test_sessions_have_epochs(group: Group) -> None:
    member = group.first
    assert member.fetch(group.topic_id, epoch=1).error_code == E.SHARE_SESSION_NOT_FOUND
    assert member.acknowledge(group.topic_id, [], epoch=0).error_code == E.INVALID_SHARE_SESSION_EPOCH
    member.records(group.topic_id, max_wait_ms=1)
    assert member.fetch(group.topic_id, epoch=5).error_code == E.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(group.topic_id, partitions=(), max_wait_ms=1).error_code == 0
    again = member.fetch(group.topic_id, [(0, 0, ACCEPT)], epoch=0, max_wait_ms=1)
    assert again.error_code == E.INVALID_REQUEST, "nothing is acknowledged where a session begins"


def test_a_member_that_begins_another_session_keeps_what_it_holds(group: Group) -> None:
    """As after a lost answer: the client is still at work on the records, and acknowledges them in the new session."""
    group.produce(4)
    assert group.first.records(group.topic_id) == [(0, 3, 1)]
    other = group.member("B")
    assert other.records(group.topic_id, max_wait_ms=1) == []
    group.first.epoch = 0
    assert group.first.records(group.topic_id, max_wait_ms=1) == []
    assert other.records(group.topic_id, max_wait_ms=1) == []
    assert codes(group.first.acknowledge(group.topic_id, [(0, 3, ACCEPT)])) == [0]


@pytest.mark.parametrize("member_id", ["", "x" * 37])
def test_a_member_needs_an_id(group: Group, member_id: str) -> None:
    assert group.member(member_id).fetch(group.topic_id).error_code == E.INVALID_REQUEST


def test_partitions_that_cannot_be_served_are_named(group: Group) -> None:
    assert codes(group.first.fetch(b"\7" * 16)) == [E.UNKNOWN_TOPIC_ID]
    assert codes(group.member("B").fetch(group.topic_id, partitions=(9,))) == [E.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_group_without_an_initialized_state_is_an_error(group: Group) -> None:
    stranger = Member(group.broker, "never-joined")
    group.members.append(stranger)
    assert codes(stranger.fetch(group.topic_id)) == [E.UNKNOWN_SERVER_ERROR]


def test_a_session_that_begins_again_costs_the_member_no_records(group: Group) -> None:
    group.produce(4)
    assert group.first.records(group.topic_id) == [(0, 3, 1)]
    assert group.first.records(group.topic_id, epoch=0, max_wait_ms=1) == []
    group.first.epoch = 1
    assert codes(group.first.acknowledge(group.topic_id, [(0, 3, ACCEPT)])) == [0]


def test_a_session_that_names_too_much_is_refused_before_anything_is_done(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    group.produce(4)
    assert group.first.records(group.topic_id) == [(0, 3, 1)]
    monkeypatch.setattr(share_sessions, "MOST_PLACES", 2)
    answer = group.first.fetch(group.topic_id, [(0, 3, ACCEPT)], partitions=(0, 1, 2))
    assert (answer.error_code, answer.responses) == (E.INVALID_REQUEST, [])
    group.first.epoch += 1
    assert codes(group.first.acknowledge(group.topic_id, [(0, 3, ACCEPT)])) == [0]
