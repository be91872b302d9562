"""Which members may commit and read offsets in a consumer group: by member epoch and by assignment epoch."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer_driver import topic_id
from tidelog.coordinator.group.consumer.consumer_group import ClassicMetadata, ConsumerGroup, ConsumerMember
from tidelog.coordinator.group.offsets.consumer_commit_check import commit_error, expired, fetch_error
from tidelog.coordinator.group.records import CommittedOffset
from tidelog.model.errors import ErrorCode as E

T = topic_id("t")


def group_of(*, classic: bool = False) -> ConsumerGroup:
    group = ConsumerGroup("g")
    group.update_member(
        ConsumerMember(
            "m",
            epoch=5,
            topics=("t",),
            assigned={T: {0: 3, 1: 5}},
            revoking={T: {2: 2}},
            classic=ClassicMetadata(1, (("range", b""),)) if classic else None,
        )
    )
    return group


@pytest.mark.parametrize(
    ("member", "epoch", "partitions", "error"),
    [
        ("m", 5, [0, 1, 9], None),
        ("m", 4, [0], None),
        ("m", 3, [0, 2], None),
        ("m", 2, [2], None),
        ("m", 4, [0, 1], E.STALE_MEMBER_EPOCH),
        ("m", 2, [0], E.STALE_MEMBER_EPOCH),
        ("m", 4, [9], E.STALE_MEMBER_EPOCH),
        ("m", 6, [0], E.STALE_MEMBER_EPOCH),
        ("m", -1, [0], E.STALE_MEMBER_EPOCH),
        ("x", 5, [0], E.UNKNOWN_MEMBER_ID),
        ("", -1, [0], E.UNKNOWN_MEMBER_ID),
    ],
)
def test_an_older_epoch_may_commit_what_the_member_has_had_since(
    member: str, epoch: int, partitions: list[int], error: E | None
) -> None:
    assert commit_error(group_of(), member, epoch, 9, [(T, number) for number in partitions]) is error
    told = E.ILLEGAL_GENERATION if error is E.STALE_MEMBER_EPOCH else error
    assert commit_error(group_of(classic=True), member, epoch, 2, [(T, number) for number in partitions]) is told


def test_an_empty_group_takes_commits_of_administrators() -> None:
    assert commit_error(ConsumerGroup("g"), "", -1, 9, [(T, 0)]) is None
    assert commit_error(ConsumerGroup("g"), "m", 1, 9, [(T, 0)]) is E.UNKNOWN_MEMBER_ID


def test_members_of_the_consumer_protocol_commit_with_version_nine_or_in_a_transaction() -> None:
    assert commit_error(group_of(), "m", 5, 8, []) is E.UNSUPPORTED_VERSION
    assert commit_error(group_of(), "m", 5, None, []) is None


def test_offsets_are_read_by_current_members_and_by_who_claims_no_membership() -> None:
    group = group_of()
    assert fetch_error(group, None, -1) is None
    assert fetch_error(group, "m", 5) is None
    assert fetch_error(group, "m", 4) is E.STALE_MEMBER_EPOCH
    assert fetch_error(group_of(classic=True), "m", 4) is E.ILLEGAL_GENERATION
    assert fetch_error(group, "x", 5) is fetch_error(group, "", -1) is fetch_error(group, None, 5) is E.UNKNOWN_MEMBER_ID


def test_offsets_of_topics_that_nobody_reads_expire_by_the_time_of_their_commit() -> None:
    commits = {place: CommittedOffset(1, -1, "", time) for place, time in ((("t", 0), 0), (("u", 0), 0), (("u", 1), 50))}
    assert expired(group_of(), commits, 100, 100) == [("u", 0)]
    assert expired(ConsumerGroup("g"), commits, 100, 100) == [("t", 0), ("u", 0)]
