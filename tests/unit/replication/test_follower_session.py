from __future__ import annotations

from tests.unit.replication.world import DIRECTORY_IDS, NOW_MS, World, topic_id
from tidelog.metadata.image import PartitionImage
from tidelog.protocol.messages.fetch import FetchTopic
from tidelog.replication.followed_partition import Followed
from tidelog.replication.follower_session import MAX_EPOCH, FollowerSession


class Story:
    """Two followed partitions and a session with their leader."""

    def __init__(self) -> None:
        world = World(broker_id=2)
        image = PartitionImage((1, 2), (1, 2), 1, directories=(DIRECTORY_IDS[0],) * 2)
        world.create("t", image, image)
        self.entries = [Followed(world.partition("t", index)) for index in range(2)]
        self.session = FollowerSession(1000)

    def named(self) -> list[int]:
        return indexes(self.session.name(self.entries))

    def forgotten(self) -> list[int]:
        return [index for topic in self.session.take_forgotten() for index in topic.partitions]


def indexes(topics: list[FetchTopic]) -> list[int]:
    return [part.partition for topic in topics for part in topic.partitions]


def test_a_full_request_names_everything_and_the_next_only_what_moved() -> None:
    story = Story()
    assert story.session.opens
    (topic,) = story.session.name(story.entries)
    assert (topic.topic_id, indexes([topic])) == (topic_id("t"), [0, 1])
    assert {part.partition_max_bytes for part in topic.partitions} == {1000}
    assert story.named() == [0, 1], "full until the leader answers"
    story.session.answered(9)
    assert (story.session.id, story.session.epoch, story.session.opens) == (9, 1, False)
    assert story.named() == []
    log = story.entries[1].partition.log
    assert log is not None
    log.truncate_fully_and_start_at(5, NOW_MS)
    assert story.named() == [1]


def test_a_partition_that_left_is_forgotten_once_unless_it_is_named_again() -> None:
    story = Story()
    story.named()
    story.session.answered(9)
    for entry in story.entries:
        story.session.leave(entry)
        story.session.leave(entry)
    assert indexes(story.session.name(story.entries[:1])) == [0]
    assert story.forgotten() == [1]
    assert story.forgotten() == []
    story.session.leave(story.entries[1])
    assert story.forgotten() == [], "it was not in the session"


def test_a_full_request_forgets_nothing() -> None:
    story = Story()
    story.named()
    story.session.answered(9)
    story.session.leave(story.entries[0])
    story.session.interrupted()
    assert (story.session.id, story.session.epoch, story.session.opens) == (9, 0, True), "the id closes the old session"
    assert story.forgotten() == []
    assert story.named() == [0, 1]


def test_a_lost_session_has_no_id() -> None:
    story = Story()
    story.named()
    story.session.answered(9)
    story.session.failed()
    assert (story.session.id, story.session.epoch) == (0, 0)
    assert story.named() == [0, 1]


def test_without_room_at_the_leader_each_request_is_full_and_opens_nothing() -> None:
    story = Story()
    story.named()
    story.session.answered(0)
    assert (story.session.epoch, story.session.opens) == (0, False)
    assert story.named() == [0, 1]
    story.session.answered(9)
    assert story.session.epoch == 1


def test_the_epoch_after_the_largest_is_one() -> None:
    story = Story()
    story.session.epoch = MAX_EPOCH
    story.session.answered(9)
    assert story.session.epoch == 1
