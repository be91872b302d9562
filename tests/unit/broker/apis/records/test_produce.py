from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.unit.broker.node_world import run
from tests.unit.replication.world import NOW_MS, Pending, World, batch, led_by_us, topic_id
from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Waiting
from tidelog.broker.apis.records.produce import produce
from tidelog.broker.request import Context
from tidelog.broker.transaction_verification import Operation
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID, TopicPartition, Uuid
from tidelog.protocol.fastpath import ProduceResult, ProduceView, encode_produce_response
from tidelog.protocol.framing import decode_response_header
from tidelog.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from tidelog.replication.marker_append import Marker, write_marker
from tidelog.replication.reads import read_partition
from tidelog.replication.replica import Caller
from tidelog.storage.log_config import LogConfig

PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
ELSEWHERE = PartitionImage((2,), (2,), 2, leader_epoch=4, directories=(b"C" * 16,))
FOLLOWED = PartitionImage((1, 2), (1, 2), 1, directories=(b"A" * 16, b"C" * 16))


def view(
    *asked: tuple[str, int, memoryview | None], version: int = 13, acks: int = 1, transactional_id: str | None = None
) -> ProduceView:
    """A request; each (topic, partition, records) becomes a topic of its own unless it follows the same."""
    topics: list[tuple[str | None, Uuid, list[tuple[int, memoryview | None]]]] = []
    for topic, index, records in asked:
        name, id = (None, topic_id(topic)) if version >= 13 else (topic, ZERO_UUID)
        if not topics or topics[-1][:2] != (name, id):
            topics.append((name, id, []))
        topics[-1][2].append((index, records))
    return ProduceView(transactional_id, acks, 1000, topics)


def decode(answer: Any, version: int) -> ProduceResponse:
    (frame,) = answer
    size = int.from_bytes(frame[:4], "big")
    assert size == len(frame) - 4
    correlation_id, position = decode_response_header(frame[4:], version >= 9)
    assert correlation_id == 42
    return ProduceResponse.decode(bytes(frame[4 + position :]), version)


def one(answer: Any, version: int = 13) -> PartitionProduceResponse:
    (topic,) = decode(answer, version).responses
    (partition,) = topic.partition_responses
    return partition


def send(world: World, request: ProduceView, version: int = 13, **options: Any) -> tuple[Context, Any]:
    ctx = world.context(version, **options)
    return ctx, produce(ctx, request)


@pytest.mark.parametrize("version", range(3, 14))
def test_one_batch_is_answered_with_its_offset_at_every_version(version: int) -> None:
    world = World()
    world.create("topic", led_by_us(), led_by_us())
    send(world, view(("topic", 1, batch(b"first")), version=version), version)
    _, answer = send(world, view(("topic", 1, batch(b"a", b"b")), version=version), version)
    response = decode(answer, version)
    partition = response.responses[0].partition_responses[0]
    assert (response.responses[0].name, response.responses[0].topic_id) in [("topic", ZERO_UUID), ("", topic_id("topic"))]
    assert (partition.index, partition.error_code, partition.base_offset) == (1, 0, 1)
    assert (partition.log_append_time_ms, partition.log_start_offset) == (-1, 0 if version >= 5 else -1)


@pytest.mark.parametrize("version", range(9, 14))
@pytest.mark.parametrize("topic", ["t", "a-rather-long-name-" * 12])
def test_the_answer_packed_at_once_is_the_answer_of_the_general_path(version: int, topic: str) -> None:
    world = World()
    world.create(topic, led_by_us(), id=topic_id(topic[:16]), config=LogConfig(message_timestamp_type="LogAppendTime"))
    request = view((topic[:16] if version >= 13 else topic, 0, batch()), version=version)
    _, packed = send(world, request, version)
    result = ProduceResult(0, base_offset=0, log_append_time_ms=NOW_MS, log_start_offset=0)
    named = (None, topic_id(topic[:16])) if version >= 13 else (topic, ZERO_UUID)
    assert bytes(packed[0]) == bytes(encode_produce_response(42, version, [(*named, [result])]))
    assert one(packed, version).log_append_time_ms == NOW_MS


def test_several_partitions_are_answered_together_each_for_itself() -> None:
    world = World()
    world.create("a", led_by_us(), led_by_us())
    world.create("b", ELSEWHERE)
    corrupt = batch(b"x")
    corrupt[-1] ^= 1
    _, answer = send(world, view(("a", 0, batch()), ("a", 1, corrupt), ("b", 0, batch()), ("c", 0, batch())))
    response = decode(answer, 13)
    errors = [(topic.topic_id, [p.error_code for p in topic.partition_responses]) for topic in response.responses]
    assert errors == [(topic_id("a"), [0, 2]), (topic_id("b"), [6]), (topic_id("c"), [100])]
    leader = response.responses[1].partition_responses[0].current_leader
    assert (leader.leader_id, leader.leader_epoch) == (2, 4)
    assert [(node.node_id, node.host, node.port) for node in response.node_endpoints] == [(2, "host2", 9092)]


def test_the_new_leader_is_told_even_when_only_one_partition_is_asked_for() -> None:
    world = World()
    world.create("b", ELSEWHERE)
    _, answer = send(world, view(("b", 0, batch()), version=10), 10)
    assert one(answer, 10).current_leader.leader_id == 2
    _, answer = send(world, view(("b", 0, batch()), version=9), 9)
    assert one(answer, 9).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_acks_that_do_not_exist_are_refused_without_an_append() -> None:
    world = World()
    world.create("a")
    for acks in (2, -2, 5):
        _, answer = send(world, view(("a", 0, batch()), acks=acks))
        assert one(answer).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert world.partition("a").log.log_end_offset == 0  # type: ignore[union-attr]


def test_acks_zero_is_not_answered_and_an_error_closes_the_connection() -> None:
    world = World()
    world.create("a", led_by_us(), led_by_us())
    assert send(world, view(("a", 0, batch()), acks=0))[1] is NO_RESPONSE
    assert world.partition("a").log.log_end_offset == 1  # type: ignore[union-attr]
    assert send(world, view(("a", 0, batch()), ("a", 7, batch()), acks=0))[1] is CLOSE_CONNECTION
    assert world.partition("a").log.log_end_offset == 2, "the good partition was appended to"  # type: ignore[union-attr]


def test_a_partition_named_twice_is_appended_to_once() -> None:
    world = World()
    world.create("a")
    _, answer = send(world, view(("a", 0, batch()), ("a", 0, batch())))
    assert [p.error_code for p in decode(answer, 13).responses[0].partition_responses] == [0, ErrorCode.INVALID_RECORD]


def test_null_records_are_an_invalid_record() -> None:
    world = World()
    world.create("a")
    assert one(send(world, view(("a", 0, None)))[1]).error_code == ErrorCode.INVALID_RECORD


def test_internal_topics_are_written_by_nobody_but_the_admin_client() -> None:
    world = World()
    world.create("__consumer_offsets", id=topic_id("__consumer_o"))
    request = view(("__consumer_o", 0, batch()))
    assert one(send(world, request)[1]).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert one(send(world, request, client_id="__admin_client")[1]).error_code == 0


class Coordinator:
    """Answers what a test wants to every question about a transaction, and writes the questions down."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answer = ErrorCode.NONE
        self.asked: list[tuple[str, int, int, list[str], Operation]] = []
        self.meanwhile: Callable[[], object] = lambda: None
        monkeypatch.setattr("tidelog.broker.apis.records.produce.verify_or_add", self.verify_or_add)

    async def verify_or_add(
        self, ctx: Context, name: str, producer: int, epoch: int, partitions: Sequence[TopicPartition], operation: Operation
    ) -> dict[TopicPartition, ErrorCode]:
        self.asked.append((name, producer, epoch, [str(partition) for partition in partitions], operation))
        self.meanwhile()
        return dict.fromkeys(partitions, self.answer)


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    return Coordinator(monkeypatch)


def transactional(sequence: int = 0, producer: int = 7, epoch: int = 0, **options: Any) -> memoryview:
    return batch(producer_id=producer, producer_epoch=epoch, base_sequence=sequence, transactional=True, **options)


def in_world(*topics: str) -> World:
    world = World()
    for topic in topics:
        world.create(topic)
    return world


def told(world: World, *asked: tuple[str, int, memoryview | None], version: int = 13, name: str | None = "pay") -> list[int]:
    """The errors of a transactional request."""
    _, answer = send(world, view(*asked, version=version, transactional_id=name), version)
    if not isinstance(answer, list):
        answer = run(answer)
    return [part.error_code for topic in decode(answer, version).responses for part in topic.partition_responses]


def test_a_transactional_batch_needs_a_transactional_id() -> None:
    world = in_world("a", "b")
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert told(world, ("a", 0, transactional()), name=None) == [refused]
    assert told(world, ("a", 0, transactional()), ("b", 0, batch()), name=None) == [refused, refused]
    assert world.partition("b").log is not None and world.partition("b").log.log_end_offset == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("version", "operation"),
    [(3, Operation.VERIFY_OLD), (10, Operation.VERIFY_OLD), (11, Operation.VERIFY), (12, Operation.ADD), (13, Operation.ADD)],
)
def test_the_first_batch_of_a_transaction_asks_the_coordinator_and_the_next_does_not(
    coordinator: Coordinator, version: int, operation: Operation
) -> None:
    world = in_world("a")
    assert told(world, ("a", 0, transactional()), version=version) == [0]
    assert told(world, ("a", 0, transactional(1)), version=version) == [0]
    assert coordinator.asked == [("pay", 7, 0, ["a-0"], operation)]
    assert world.partition("a").last_stable_offset == 0


def test_all_partitions_of_a_request_are_asked_about_at_once(coordinator: Coordinator) -> None:
    world = in_world("a", "b")
    assert told(world, ("a", 0, transactional()), ("b", 0, transactional()), ("c", 0, transactional())) == [0, 0, 100]
    assert coordinator.asked == [("pay", 7, 0, ["a-0", "b-0"], Operation.ADD)]


@pytest.mark.parametrize(
    ("version", "said", "expected"),
    [
        (9, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (11, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (12, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_what_the_coordinator_does_not_confirm_is_not_appended(
    coordinator: Coordinator, version: int, said: ErrorCode, expected: ErrorCode
) -> None:
    world = in_world("a")
    coordinator.answer = said
    assert told(world, ("a", 0, transactional()), version=version) == [expected]
    log = world.partition("a").log
    assert log is not None and log.log_end_offset == 0
    assert world.partition("a").stats.failed_produce_requests == 1
    asks_again = expected in {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS}
    assert len(log.producers.verifications) == asks_again


def test_producers_that_the_coordinator_does_not_know_leave_nothing_behind(coordinator: Coordinator) -> None:
    world = in_world("a")
    coordinator.answer = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    for producer in range(50):
        assert told(world, ("a", 0, transactional(producer=producer))) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    log = world.partition("a").log
    assert log is not None and len(log.producers.verifications) == 0


def test_a_marker_between_the_question_and_the_append_refuses_the_batch(coordinator: Coordinator) -> None:
    world = in_world("a")
    coordinator.meanwhile = lambda: write_marker(world.partition("a"), Marker(7, 0, False, 0), NOW_MS, NOW_MS + 1)
    assert told(world, ("a", 0, transactional()), version=11) == [ErrorCode.INVALID_TXN_STATE]
    assert world.partition("a").last_stable_offset == 1
    coordinator.meanwhile = lambda: None
    assert told(world, ("a", 0, transactional()), version=11) == [0]


def test_a_leader_that_may_have_a_successor_sends_a_producer_there_whose_sequence_does_not_follow() -> None:
    """It continued at the successor, and came back: that is no reason to give up."""
    world = World()
    world.create("t", FOLLOWED, FOLLOWED)
    gap = {**PRODUCER, "transactional": False, "base_sequence": 5}
    first = {**gap, "base_sequence": 0}

    def answered(**batch_of: Any) -> PartitionProduceResponse:
        return one(send(world, view(("t", 0, batch(**batch_of)), version=10), 10)[1], 10)

    assert answered(**first).error_code == 0
    assert answered(**gap).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    world.in_touch = False
    doubted = answered(**gap)
    assert (doubted.error_code, doubted.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert answered(**first).error_code == 0, "what it has it still knows"


def test_a_producer_that_bumps_its_epoch_begins_at_zero(coordinator: Coordinator) -> None:
    world = in_world("a")
    assert told(world, ("a", 0, transactional(5)), version=11) == [0]
    write_marker(world.partition("a"), Marker(7, 1, True, 0, 2), NOW_MS, NOW_MS + 1)
    assert told(world, ("a", 0, transactional(6, epoch=1))) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert told(world, ("a", 0, transactional(0, epoch=1))) == [0]
    assert told(world, ("a", 0, transactional(0, producer=8)), ("b", 0, batch())) == [0, ErrorCode.UNKNOWN_TOPIC_ID]


def test_a_broker_that_does_not_verify_still_adds(coordinator: Coordinator) -> None:
    world = in_world("a")

    def say(sequence: int, version: int) -> Any:
        ctx = world.context(version)
        ctx.node.config.transaction_partition_verification_enable = False
        name = "a"
        return produce(ctx, view((name, 0, transactional(sequence)), version=version, transactional_id="pay"))

    assert one(say(0, 11), 11).error_code == 0 and coordinator.asked == []
    write_marker(world.partition("a"), Marker(7, 0, True, 0), NOW_MS, NOW_MS + 1)
    assert one(run(say(1, 12)), 12).error_code == 0 and len(coordinator.asked) == 1


def test_transactional_batches_of_two_producers_are_no_request() -> None:
    world = in_world("a", "b")
    answers = told(world, ("a", 0, transactional()), ("b", 0, transactional(producer=8)))
    assert answers == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


def test_transactional_batches_of_one_producer_at_two_epochs_are_no_request(coordinator: Coordinator) -> None:
    """The coordinator is asked about one epoch; the other batch would lie in a transaction that no marker can end."""
    world = in_world("a", "b")
    answers = told(world, ("a", 0, transactional()), ("b", 0, transactional(epoch=1)))
    assert answers == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    assert coordinator.asked == []
    assert told(world, ("a", 0, transactional()), ("b", 0, batch(producer_id=7, producer_epoch=1, base_sequence=0))) == [0, 0]


def test_a_batch_without_a_sequence_does_not_count_as_the_first_one(coordinator: Coordinator) -> None:
    world = in_world("a")
    assert told(world, ("a", 0, transactional(-1))) == [ErrorCode.INVALID_RECORD]
    assert coordinator.asked == []
    assert told(world, ("a", 0, transactional(0))) == [0]


def test_a_fenced_instance_does_not_take_away_what_the_next_one_appends_by(coordinator: Coordinator) -> None:
    world = in_world("a")

    def an_older_one_asks_as_well() -> None:
        coordinator.meanwhile = lambda: None
        coordinator.answer = ErrorCode.INVALID_PRODUCER_EPOCH
        assert told(world, ("a", 0, transactional(epoch=0)), version=11) == [ErrorCode.INVALID_PRODUCER_EPOCH]
        coordinator.answer = ErrorCode.NONE

    coordinator.meanwhile = an_older_one_asks_as_well
    assert told(world, ("a", 0, transactional(epoch=1)), version=11) == [0]


def test_a_late_batch_of_the_transaction_before_is_not_in_the_way_of_the_next_one(coordinator: Coordinator) -> None:
    """Kafka remembers its sequence as the lowest one, and calls the right one out of order."""
    world = in_world("a")
    for sequence in range(3):
        assert told(world, ("a", 0, transactional(sequence)), version=9) == [0]
    write_marker(world.partition("a"), Marker(7, 0, True, 0), NOW_MS, NOW_MS + 1)
    coordinator.answer = ErrorCode.INVALID_TXN_STATE
    assert told(world, ("a", 0, transactional(1)), version=9) == [ErrorCode.INVALID_TXN_STATE]
    coordinator.answer = ErrorCode.NONE
    assert told(world, ("a", 0, transactional(3)), version=9) == [0]


def test_the_question_of_a_client_that_goes_away_is_not_under_way_any_more(coordinator: Coordinator) -> None:
    world = in_world("a")

    def gone() -> None:
        raise asyncio.CancelledError

    coordinator.meanwhile = gone
    with pytest.raises(asyncio.CancelledError):
        told(world, ("a", 0, transactional()))
    log = world.partition("a").log
    assert log is not None
    proof = log.producers.verifications.get(7)
    assert proof is not None and proof.asking == 0


def test_a_question_of_another_instance_does_not_disturb_an_open_transaction(coordinator: Coordinator) -> None:
    world = in_world("a")
    assert told(world, ("a", 0, transactional(0, epoch=1)), version=9) == [0]

    def the_open_one_goes_on() -> None:
        coordinator.meanwhile = lambda: None
        assert told(world, ("a", 0, transactional(1, epoch=1)), version=9) == [0]

    coordinator.meanwhile = the_open_one_goes_on
    coordinator.answer = ErrorCode.INVALID_PRODUCER_EPOCH
    assert told(world, ("a", 0, transactional(0, epoch=0)), version=9) == [ErrorCode.INVALID_PRODUCER_EPOCH]


def test_a_transactional_batch_without_a_producer_or_a_whole_header_is_refused_for_that() -> None:
    world = in_world("a")
    assert told(world, ("a", 0, batch(transactional=True))) == [ErrorCode.INVALID_RECORD]
    assert told(world, ("a", 0, transactional()[:40])) == [ErrorCode.INVALID_RECORD]


def test_a_batch_that_has_to_be_walked_keeps_its_proof(coordinator: Coordinator) -> None:
    world = World()
    world.create("a", config=LogConfig(cleanup_policy=frozenset({"compact"})))
    values = [b"v"] * 200
    ctx, coroutine = send(world, view(("a", 0, batch(*values, **PRODUCER)), transactional_id="pay"))
    pending = Pending(ctx, coroutine)
    assert pending.blocking is not None
    pending.go_on()
    assert one(pending.answer).error_code == 0


def test_zstd_needs_version_seven() -> None:
    world = World()
    world.create("a")
    assert one(send(world, view(("a", 0, batch(codec=4)), version=6), 6)[1], 6).error_code == 76
    assert one(send(world, view(("a", 0, batch(codec=4)), version=7), 7)[1], 7).error_code == 0


def test_a_duplicate_is_success_with_the_original_offset() -> None:
    world = World()
    world.create("a")
    for _ in range(2):
        records = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0)
        _, answer = send(world, view(("a", 0, records)))
        assert (one(answer).error_code, one(answer).base_offset) == (0, 0)


def test_records_without_a_key_are_named_one_by_one() -> None:
    world = World()
    world.create("a", config=LogConfig(cleanup_policy=frozenset({"compact"})))
    answer = send(world, view(("a", 0, batch(b"1", b"2", b"3", keys=[b"k", None, None]))))[1]
    assert one(answer).error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in one(answer).record_errors] == [1, 2]
    assert one(answer).error_message


def test_a_long_walk_over_records_is_done_in_a_thread() -> None:
    world = World()
    world.create("a", config=LogConfig(cleanup_policy=frozenset({"compact"})))
    ctx, coroutine = send(world, view(("a", 0, batch(*[b"v"] * 1000))))
    pending = Pending(ctx, coroutine)
    assert pending.blocking is not None and not pending.done
    pending.go_on()
    assert one(pending.answer).base_offset == 0
    assert world.partition("a").log.log_end_offset == 1000  # type: ignore[union-attr]


def test_acks_all_waits_for_the_replicas_in_sync_and_acks_one_does_not() -> None:
    world = World()
    world.create("a", FOLLOWED)
    assert one(send(world, view(("a", 0, batch())))[1]).error_code == 0
    ctx, coroutine = send(world, view(("a", 0, batch()), acks=-1))
    pending = Pending(ctx, coroutine)
    assert not pending.done and pending.parked is not None and pending.parked.deadline_ms == NOW_MS + 1000
    world.partition("a").update_metadata(PartitionImage((1, 2), (1,), 1, partition_epoch=1), NOW_MS + 60_000)
    pending.go_on()
    assert (one(pending.answer).error_code, one(pending.answer).base_offset) == (0, 1)


@pytest.mark.parametrize("set_by_ms", [3_600_000, -3_600_000])
def test_a_wall_clock_that_is_set_while_acks_all_waits_shrinks_no_isr_and_exposes_nothing_early(set_by_ms: int) -> None:
    world = World()
    world.create("a", FOLLOWED)
    partition = world.partition("a")
    read_partition(partition, 0, 100, min_one=True, caller=Caller(2, 5, NOW_MS))
    pending = Pending(*send(world, view(("a", 0, batch(b"1")), acks=-1)))
    world.clock_set_by_ms = set_by_ms
    behind = Pending(*send(world, view(("a", 0, batch(b"2")), acks=-1)))
    assert behind.parked is not None and behind.parked.deadline_ms == NOW_MS + set_by_ms + 1000
    world.manager.isr_step(world.now_ms)
    assert not world.manager.isr_changes.ready and not pending.done and not behind.done
    read_partition(partition, 2, 100, min_one=True, caller=Caller(2, 5, NOW_MS))
    pending.go_on()
    behind.go_on()
    assert (one(pending.answer).error_code, one(behind.answer).base_offset) == (0, 1)


def test_a_leader_alone_in_its_isr_waits_for_a_close_follower_by_the_even_clock() -> None:
    world = World()
    world.create("a", PartitionImage((1, 2), (1,), 1, directories=(b"A" * 16, b"C" * 16)))
    partition = world.partition("a")
    read_partition(partition, 0, 100, min_one=True, caller=Caller(2, 5, NOW_MS))
    assert partition.leadership is not None
    partition.leadership.settle((1,))  # the controller refused the follower for now
    world.clock_set_by_ms = 3_600_000
    pending = Pending(*send(world, view(("a", 0, batch()), acks=-1)))
    assert not pending.done and partition.log is not None and partition.log.high_watermark == 0
    world.now_ms += 30_001
    send(world, view(("a", 0, batch())))
    assert partition.log.high_watermark == 2, "the follower has lagged for longer than allowed"


def test_a_clock_that_is_set_while_a_batch_is_walked_leaves_its_timeout_as_it_was() -> None:
    world = World()
    world.create("a", FOLLOWED, config=LogConfig(cleanup_policy=frozenset({"compact"})))
    pending = Pending(*send(world, view(("a", 0, batch(*[b"v"] * 1000)), acks=-1)))
    assert pending.blocking is not None
    world.clock_set_by_ms = 3_600_000
    world.now_ms += 400
    pending.go_on()
    assert pending.parked is not None and pending.parked.deadline_ms == NOW_MS + 3_600_000 + 1000


def test_a_produce_that_waits_for_replicas_lets_the_connection_go_on_and_is_answered_as_itself() -> None:
    world = World()
    world.create("a", FOLLOWED)
    _, first = send(world, view(("a", 0, batch(b"1")), acks=-1))
    assert isinstance(first, Waiting) and first.lets_next_in
    behind = world.context(9)
    behind.correlation_id = 43
    second = produce(behind, view(("a", 0, batch(b"2")), version=9, acks=-1))
    assert isinstance(second, Waiting)
    read_partition(world.partition("a"), 2, 100, min_one=True, caller=Caller(2, -1, NOW_MS))
    assert first.parked.done and second.parked.done
    assert one(first.go_on(), 13).base_offset == 0
    (frame,) = second.go_on()
    assert int.from_bytes(frame[4:8], "big") == 43
    assert one([frame[:4] + (42).to_bytes(4, "big") + frame[8:]], 9).base_offset == 1


def test_acks_all_times_out() -> None:
    world = World()
    world.create("a", FOLLOWED)
    pending = Pending(*send(world, view(("a", 0, batch()), acks=-1)))
    pending.expire()
    assert one(pending.answer).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_an_isr_that_shrinks_below_the_minimum_while_waiting_is_told_after_the_append() -> None:
    world = World()
    world.create("a", FOLLOWED, config=LogConfig(min_insync_replicas=2))
    pending = Pending(*send(world, view(("a", 0, batch()), acks=-1)))
    read_partition(world.partition("a"), 1, 100, min_one=True, caller=Caller(2, -1, NOW_MS))
    world.partition("a").update_metadata(PartitionImage((1, 2), (1,), 1, partition_epoch=1))
    pending.go_on()
    assert one(pending.answer).error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert one(send(world, view(("a", 0, batch()), acks=-1))[1]).error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_a_leadership_lost_while_waiting_is_told() -> None:
    world = World()
    world.create("a", FOLLOWED)
    pending = Pending(*send(world, view(("a", 0, batch()), acks=-1)))
    world.partition("a").update_metadata(PartitionImage((1, 2), (1, 2), 2, leader_epoch=1))
    pending.go_on()
    assert one(pending.answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledgement_waits_for_the_flush_that_the_topic_demands(acks: int) -> None:
    world = World()
    world.create("a", led_by_us(), led_by_us(), config=LogConfig(flush_messages=1))
    pending = Pending(*send(world, view(("a", 0, batch()), ("a", 1, batch()), acks=acks)))
    job, done = world.jobs.pop(0)
    job()
    done(NOW_MS)
    assert pending.parked is not None and not pending.parked.done, "the other partition is not flushed yet"
    world.run_jobs()
    pending.go_on()
    assert [p.error_code for p in decode(pending.answer, 13).responses[0].partition_responses] == [0, 0]


def test_a_flush_that_fails_is_told_to_everybody_who_waits_for_it() -> None:
    world = World()
    world.create("a", config=LogConfig(flush_messages=1))
    pending = Pending(*send(world, view(("a", 0, batch()))))
    world.disk.broken.append(("/data0", "sync"))
    world.run_jobs()
    pending.go_on()
    assert one(pending.answer).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_client_that_goes_away_leaves_nothing_behind() -> None:
    world = World()
    world.create("a", FOLLOWED)
    pending = Pending(*send(world, view(("a", 0, batch()), acks=-1)))
    assert world.partition("a").watchers
    pending.abandon()
    assert not world.partition("a").watchers
