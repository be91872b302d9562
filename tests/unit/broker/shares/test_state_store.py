"""StateStore: the coordinator elsewhere, its answers, and how long it is asked again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.broker.node_world import run
from tidelog.broker.shares.state_store import TRIES, StateStore
from tidelog.coordinator.share.coordinator import Answer, Found, Written
from tidelog.coordinator.share.records import ShareKey
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import SHARE_STATE_TOPIC, Uuid
from tidelog.protocol.messages import initialize_share_group_state as initializing
from tidelog.protocol.messages import read_share_group_state as reading
from tidelog.protocol.messages import write_share_group_state as writing
from tidelog.replication.share.record_state import RecordState, StateBatch

KEY = ShareKey("g", Uuid(b"1" * 16), 3)
BATCH = StateBatch(4, 9, RecordState.ACKNOWLEDGED, 2)


class Elsewhere:
    """Broker 2 coordinates everything; it answers what the test prepared."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.pauses: list[float] = []
        topics = SimpleNamespace(
            by_name={SHARE_STATE_TOPIC: SimpleNamespace(partitions=[SimpleNamespace(leader=2)])}, by_id={KEY.topic_id: None}
        )
        self.broker: Any = SimpleNamespace(
            node_id=1,
            image=SimpleNamespace(topics=topics),
            others=self,
            runtime=SimpleNamespace(sleep=self.sleep),
            config=SimpleNamespace(group_share_persister_class_name="DefaultStatePersister"),
        )

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def ask(self, broker_id: int, purpose: str, request: Any, timeout_ms: int) -> Any:
        assert broker_id == 2
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, ErrorCode):
            raise KafkaError(answer)
        return answer


def read_response(error: ErrorCode, *batches: StateBatch) -> reading.ReadShareGroupStateResponse:
    result = reading.PartitionResult(3, error, None, 7, 4, [reading.StateBatch(*each) for each in batches])
    return reading.ReadShareGroupStateResponse([reading.ReadStateResult(KEY.topic_id, [result])])


def test_the_state_is_read_from_another_broker() -> None:
    world = Elsewhere(read_response(ErrorCode.NONE, BATCH))
    assert run(StateStore(world.broker).read(KEY, 5)) == Answer(stored=Found(7, -1, 4, -1, (BATCH,)))
    (request,) = world.asked
    assert request.topics[0].partitions[0].leader_epoch == 5


def test_a_write_carries_all_that_changed() -> None:
    response = writing.WriteShareGroupStateResponse([writing.WriteStateResult(KEY.topic_id, [writing.PartitionResult(3)])])
    world = Elsewhere(response)
    assert run(StateStore(world.broker).write(KEY, Written(7, 5, 4, 6, (BATCH,)))) == Answer()
    partition = world.asked[0].topics[0].partitions[0]
    assert (partition.state_epoch, partition.leader_epoch, partition.start_offset, partition.delivery_complete_count) == (
        7,
        5,
        4,
        6,
    )
    assert partition.state_batches[0].last_offset == 9


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
def test_a_coordinator_that_moves_is_asked_again(error: ErrorCode) -> None:
    world = Elsewhere(ErrorCode.NETWORK_EXCEPTION, read_response(error), read_response(ErrorCode.NONE))
    assert run(StateStore(world.broker).read(KEY, 5)).stored is not None
    assert world.pauses == [0.2, 0.4]


def test_the_last_error_is_told() -> None:
    world = Elsewhere(*[ErrorCode.REQUEST_TIMED_OUT] * TRIES)
    assert run(StateStore(world.broker).read(KEY, 5)).error is ErrorCode.REQUEST_TIMED_OUT
    fenced = Elsewhere(read_response(ErrorCode.FENCED_LEADER_EPOCH))
    assert run(StateStore(fenced.broker).read(KEY, 5)).error is ErrorCode.FENCED_LEADER_EPOCH
    assert not fenced.pauses


def test_a_topic_that_is_gone_is_not_waited_for() -> None:
    world = Elsewhere(read_response(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    world.broker.image.topics.by_id.clear()
    assert run(StateStore(world.broker).read(KEY, 5)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not world.pauses


def test_an_answer_that_cannot_be_is_an_error() -> None:
    world = Elsewhere(initializing.InitializeShareGroupStateResponse([]))
    assert run(StateStore(world.broker).initialize(KEY, 1, -1)).error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_without_a_store_nothing_is_asked_and_nothing_kept() -> None:
    world = Elsewhere()
    world.broker.config.group_share_persister_class_name = ""
    store = StateStore(world.broker)
    assert run(store.initialize(KEY, 1, 7)).error is ErrorCode.NONE
    assert run(store.write(KEY, Written(7, 5, 4, 6, (BATCH,)))).error is ErrorCode.NONE
    assert run(store.read(KEY, 5)).stored == Found(0, 0, -1, -1, ())
    assert not world.asked
