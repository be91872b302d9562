from __future__ import annotations

from typing import Any

import pytest

from tests.unit.replication.world import DIRECTORY_IDS, NOW_MS, World, batch, topic_id
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.fastpath.follower_fetch import PlainAnswer
from tidelog.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tidelog.records.batch import assign_offsets, read_header
from tidelog.replication import follower_log
from tidelog.replication.fetcher import (
    BRIEF_MS,
    CALM_MS,
    Append,
    Diverged,
    FetcherSettings,
    OutOfRange,
    PlainRequest,
    ReplicaFetcher,
)
from tidelog.replication.partition import Partition


class Story:
    """Broker 2 follows ``count`` partitions at broker 1."""

    def __init__(self, count: int = 3) -> None:
        self.now_ms = NOW_MS
        self.world = World(broker_id=2)
        self.epochs = [0] * count
        self._place()
        self.fetcher = ReplicaFetcher(2, 1, FetcherSettings(backoff_ms=1000))
        for index in range(count):
            self.fetcher.follow(self.partition(index))

    def _place(self) -> None:
        images = [
            PartitionImage((1, 2), (1, 2), 1, leader_epoch=epoch, partition_epoch=epoch, directories=(DIRECTORY_IDS[0],) * 2)
            for epoch in self.epochs
        ]
        self.world.create("t", *images)

    def partition(self, index: int) -> Partition:
        return self.world.partition("t", index)

    def elect(self, index: int) -> None:
        """The leader stays, with a new epoch."""
        self.epochs[index] += 1
        self._place()
        self.fetcher.follow(self.partition(index))

    def ask(self) -> FetchRequest:
        request = self.fetcher.request(self.now_ms, 77)
        assert request is not None
        return request

    def named(self) -> list[int]:
        """The partitions that the next request names."""
        return [each.partition for topic in self.ask().topics for each in topic.partitions]

    def answer(self, *parts: PartitionData, session: int = 9, error: int = 0) -> list[Any]:
        topics = [FetchableTopicResponse(topic_id=topic_id("t"), partitions=list(parts))] if parts else []
        return self.fetcher.answered(FetchResponse(session_id=session, error_code=error, responses=topics), self.now_ms)

    def append(self, task: Append) -> None:
        follower_log.append(
            task.followed.partition, self.world.logs, memoryview(task.records), task.followed.leader_epoch, self.now_ms
        )


def data(index: int, records: bytes | None = b"", **fields: Any) -> PartitionData:
    return PartitionData(partition_index=index, records=records, **{"high_watermark": 0, "log_start_offset": 0, **fields})


def test_the_first_request_asks_for_a_session_and_names_everything() -> None:
    story = Story()
    request = story.ask()
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (2, 77)
    (topic,) = request.topics
    first = topic.partitions[0]
    assert [each.partition for each in topic.partitions] == [0, 1, 2]
    assert (first.fetch_offset, first.last_fetched_epoch, first.log_start_offset, first.current_leader_epoch) == (0, -1, 0, 0)
    assert topic.topic_id == topic_id("t")


def test_after_that_only_what_changed_is_named() -> None:
    story = Story()
    story.ask()
    records = batch(b"a", b"b")
    assign_offsets(records, read_header(records), 0, 0)
    (task,) = story.answer(data(1, bytes(records)))
    assert isinstance(task, Append)
    story.append(task)
    request = story.ask()
    assert (request.session_id, request.session_epoch) == (9, 1)
    ((named,),) = [topic.partitions for topic in request.topics]
    assert (named.partition, named.fetch_offset, named.last_fetched_epoch) == (1, 2, 0)
    story.answer(data(2, high_watermark=0))
    assert story.named() == [], "only a watermark moved"


def test_a_partition_in_a_new_epoch_is_named_again_and_an_answer_of_the_old_one_is_passed_over() -> None:
    story = Story(1)
    story.ask()
    story.elect(0)
    assert story.answer(data(0, bytes(batch()))) == []
    request = story.ask()
    assert request.topics[0].partitions[0].current_leader_epoch == 1 and request.forgotten_topics_data == []
    assert len(story.answer(data(0))) == 1


def test_a_partition_that_became_ours_is_passed_over_even_before_it_is_dropped() -> None:
    story = Story(1)
    story.ask()
    story.partition(0).update_metadata(
        PartitionImage((1, 2), (2,), 2, leader_epoch=1, partition_epoch=1, directories=(DIRECTORY_IDS[0],) * 2), NOW_MS
    )
    assert story.answer(data(0, bytes(batch()))) == []


def test_what_is_followed_no_more_is_forgotten_once() -> None:
    story = Story()
    story.ask()
    story.answer()
    story.fetcher.drop(story.partition(2))
    assert [(each.topic_id, each.partitions) for each in story.ask().forgotten_topics_data] == [(topic_id("t"), [2])]
    story.answer()
    assert story.ask().forgotten_topics_data == []
    assert len(story.fetcher) == 2 and story.answer(data(2, bytes(batch()))) == []


@pytest.mark.parametrize("error", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH])
def test_a_lost_session_is_opened_anew_at_once(error: ErrorCode) -> None:
    story = Story()
    story.ask()
    story.answer()
    story.ask()
    assert story.answer(error=error, session=0) == []
    request = story.ask()
    assert (request.session_id, request.session_epoch) == (0, 0) and len(request.topics[0].partitions) == 3


def test_a_leader_without_room_for_a_session_is_told_everything_each_time() -> None:
    story = Story()
    story.ask()
    story.answer(session=0)
    request = story.ask()
    assert request.session_epoch == 0 and len(request.topics[0].partitions) == 3


def test_an_interrupted_poll_closes_its_session_with_the_next_request_and_a_failed_one_names_none() -> None:
    story = Story()
    story.ask()
    story.answer()
    story.ask()
    story.fetcher.interrupted()
    request = story.ask()
    assert (request.session_id, request.session_epoch, len(request.topics[0].partitions)) == (9, 0, 3)
    story.fetcher.failed()
    assert story.ask().session_id == 0


def test_metadata_that_the_leader_lacks_is_asked_for_again_soon_and_ever_later() -> None:
    story = Story(2)
    story.ask()
    waits = []
    for _ in range(8):
        story.answer(data(0, None, error_code=ErrorCode.UNKNOWN_LEADER_EPOCH))
        assert 0 not in story.named()
        story.answer()
        due = story.fetcher.next_due_ms()
        assert due is not None
        waits.append(due - story.now_ms)
        story.now_ms = due
        assert story.named() == [0]
    assert waits == [20, 40, 80, 160, 320, 640, 1000, 1000]


def test_a_delayed_partition_leaves_the_session_and_comes_back() -> None:
    story = Story(2)
    story.ask()
    story.answer(data(0, None, error_code=ErrorCode.KAFKA_STORAGE_ERROR))
    assert [each.partitions for each in story.ask().forgotten_topics_data] == [[0]]
    story.answer()
    assert story.fetcher.next_due_ms() == story.now_ms + 1000
    story.now_ms += 1000
    assert story.named() == [0]
    story.answer(data(0))
    assert story.fetcher.next_due_ms() is None


def test_with_nothing_to_ask_for_there_is_no_request() -> None:
    story = Story(1)
    story.ask()
    story.answer(data(0, None, error_code=ErrorCode.KAFKA_STORAGE_ERROR))
    assert story.fetcher.request(story.now_ms, 77) is None
    story.fetcher.drop(story.partition(0))
    assert story.fetcher.request(story.now_ms + 5000, 77) is None
    assert story.fetcher.next_due_ms() is None


def test_divergence_and_an_offset_out_of_range_are_told_and_the_second_waits_outside_of_the_session() -> None:
    story = Story(2)
    story.ask()
    first, second = story.answer(
        data(0, diverging_epoch=EpochEndOffset(epoch=3, end_offset=12)),
        data(1, None, error_code=ErrorCode.OFFSET_OUT_OF_RANGE),
    )
    assert isinstance(first, Diverged) and (first.leader_epoch, first.end_offset) == (3, 12)
    assert isinstance(second, OutOfRange)
    assert 1 not in story.named()
    story.answer(data(0))
    story.fetcher.end(second.followed)
    assert story.named() == [1]


def test_a_refusal_of_the_whole_request_delays_everything() -> None:
    story = Story(2)
    story.ask()
    story.answer(error=ErrorCode.UNKNOWN_SERVER_ERROR, session=0)
    assert story.fetcher.request(story.now_ms, 77) is None
    story.now_ms += 20
    assert story.named() == [0, 1]


def test_an_answer_about_what_nobody_asked_for_is_passed_over() -> None:
    story = Story(1)
    story.ask()
    assert story.answer(data(55, bytes(batch()))) == []
    assert list(story.fetcher.partitions()) == [story.partition(0)]


def test_how_far_each_partition_is_behind_is_known_from_the_last_answer() -> None:
    story = Story(2)
    story.ask()
    (task,) = story.answer(data(0, high_watermark=7))
    assert [lag for _, lag in story.fetcher.lags()] == [7, 0]
    assert story.fetcher.failed_partitions == 0
    story.fetcher.refuse(task.followed, story.now_ms)
    assert story.fetcher.failed_partitions == 1 and story.fetcher.next_due_ms() == story.now_ms + 1000


def test_a_poll_ends_when_a_delayed_partition_is_due() -> None:
    story = Story(2)
    story.ask()
    story.answer(data(0))
    story.now_ms += CALM_MS
    assert story.ask().max_wait_ms == 500
    story.answer(data(0, None, error_code=ErrorCode.UNKNOWN_LEADER_EPOCH))
    assert story.ask().max_wait_ms == 20


def test_a_fetch_that_opens_a_session_does_not_wait_since_nobody_could_end_its_wait() -> None:
    story = Story(2)
    assert story.fetcher.opens_session and story.ask().max_wait_ms == 0
    story.answer(data(0))
    story.now_ms += CALM_MS
    assert not story.fetcher.opens_session and story.ask().max_wait_ms == 500
    story.fetcher.interrupted()
    assert story.fetcher.opens_session and story.ask().max_wait_ms == 0


def test_a_leader_without_room_for_sessions_is_polled_and_not_asked_over_and_over() -> None:
    story = Story(2)
    story.ask()
    story.answer(data(0), session=0)
    assert not story.fetcher.opens_session
    story.now_ms += CALM_MS
    request = story.ask()
    assert (request.session_epoch, request.max_wait_ms) == (0, 500)
    story.answer(data(0), session=8)
    assert (story.ask().session_epoch, story.fetcher.opens_session) == (1, False)


def test_after_partitions_came_polls_are_brief_for_others_may_follow_them() -> None:
    story = Story(2)
    assert story.ask().max_wait_ms == 0 and story.fetcher.answers_soon
    story.answer(data(0))
    assert story.ask().max_wait_ms == BRIEF_MS and story.fetcher.answers_soon
    story.answer(data(0))
    story.now_ms += CALM_MS
    assert story.ask().max_wait_ms == 500 and not story.fetcher.answers_soon
    story.answer(data(0))
    story.elect(1)
    assert story.ask().max_wait_ms == BRIEF_MS
    story.now_ms += CALM_MS
    story.answer(data(0))
    story.fetcher.interrupted()
    assert story.ask().max_wait_ms == 0
    story.answer(data(0))
    assert story.ask().max_wait_ms == 500, "a session that is opened anew brings nobody new"


def plain(*indices: int, session: int = 9, records: bytes = b"") -> PlainAnswer:
    return PlainAnswer(session, [(topic_id("t"), index, 5, 0, memoryview(records)) for index in indices])


def quiet(count: int = 2) -> Story:
    """In a session, and no partition has arrived lately."""
    story = Story(count)
    story.ask()
    story.answer(*[data(index) for index in range(count)])
    story.now_ms += CALM_MS
    return story


def test_a_request_that_only_continues_the_session_is_plain_and_names_what_moved() -> None:
    story = quiet()
    assert story.fetcher.plain_request(story.now_ms) == PlainRequest(500, 9, 1, [])
    records = batch(b"a", b"b")
    assign_offsets(records, read_header(records), 0, 0)
    tasks = story.fetcher.answered_plainly(plain(1, records=bytes(records)))
    assert tasks is not None and [(each.followed.partition.index, each.high_watermark) for each in tasks] == [(1, 5)]
    story.append(tasks[0])
    assert story.fetcher.plain_request(story.now_ms) == PlainRequest(500, 9, 2, [(topic_id("t"), 1, 0, 2, 0, 0)])
    assert [lag for _, lag in story.fetcher.lags()] == [0, 3]
    assert story.named() == [], "the leader was told"


@pytest.mark.parametrize("case", ["no session", "a new partition", "one that left", "a back-off", "an arrival just before"])
def test_nothing_has_changed_when_a_request_is_not_plain(case: str) -> None:
    story = quiet(3)
    if case == "no session":
        story.fetcher.interrupted()
    elif case == "a new partition":
        story.elect(1)
    elif case == "one that left":
        story.fetcher.drop(story.partition(1))
    elif case == "a back-off":
        story.answer(data(1, None, error_code=ErrorCode.UNKNOWN_LEADER_EPOCH))
    else:
        story.now_ms -= 1
    assert story.fetcher.plain_request(story.now_ms) is None
    request = story.ask()
    expected = {
        "no session": (0, [0, 1, 2], []),
        "a new partition": (1, [1], []),
        "one that left": (1, [], [1]),
        "a back-off": (2, [], [1]),
        "an arrival just before": (1, [], []),
    }[case]
    named = [each.partition for topic in request.topics for each in topic.partitions]
    assert (request.session_epoch, named, [n for each in request.forgotten_topics_data for n in each.partitions]) == expected


def test_while_all_partitions_are_busy_there_is_no_plain_request() -> None:
    story = quiet(1)
    (task,) = story.answer(data(0, None, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert isinstance(task, OutOfRange) and story.fetcher.plain_request(story.now_ms) is None


def test_a_plain_answer_of_another_session_changes_nothing() -> None:
    story = quiet(1)
    assert story.fetcher.plain_request(story.now_ms) is not None
    assert story.fetcher.answered_plainly(plain(0, session=0)) is None
    assert story.fetcher.answered_plainly(plain(0, session=8)) is None
    assert story.ask().session_epoch == 1
    story.fetcher.interrupted()
    assert story.fetcher.answered_plainly(plain(0)) is None


def test_a_plain_answer_passes_over_what_is_not_followed_any_more() -> None:
    story = quiet(2)
    assert story.fetcher.plain_request(story.now_ms) is not None
    story.elect(0)
    story.fetcher.drop(story.partition(1))
    assert story.fetcher.answered_plainly(plain(0, 1, 55)) == []
