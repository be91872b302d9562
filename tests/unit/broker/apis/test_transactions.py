from __future__ import annotations

from collections.abc import Coroutine

import pytest

from tests.unit.broker.node_world import NodeWorld, run
from tidelog.broker.apis.transactions import init_producer_id, init_producer_id_refused
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

IDEMPOTENT = InitProducerIdRequest(transactional_id=None)


def ask(world: NodeWorld, request: InitProducerIdRequest = IDEMPOTENT) -> InitProducerIdResponse:
    answer = init_producer_id(world.context(4), request)
    return run(answer) if isinstance(answer, Coroutine) else answer


def test_every_producer_gets_an_id_of_its_own_at_epoch_zero() -> None:
    world = NodeWorld()
    answers = [ask(world) for _ in range(5)]
    assert [answer.producer_epoch for answer in answers] == [0] * 5
    assert len({answer.producer_id for answer in answers}) == 5


def test_the_next_block_is_fetched_before_the_first_is_used_up() -> None:
    world = NodeWorld()
    ids = [ask(world).producer_id for _ in range(900)]
    assert len(world.runtime.spawned) == 1
    world.runtime.run_spawned()
    ids += [ask(world).producer_id for _ in range(500)]
    assert ids == list(range(1400))


def test_without_a_controller_the_producer_is_asked_to_come_again() -> None:
    world = NodeWorld()
    world.controller.refuses = KafkaError(ErrorCode.NOT_CONTROLLER)
    with pytest.raises(KafkaError) as refused:
        ask(world)
    answer = init_producer_id_refused(IDEMPOTENT, refused.value)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.broker.producer_ids.requested == 0


def test_a_broker_that_is_not_registered_gives_no_ids() -> None:
    world = NodeWorld()
    world.broker.node_id = 9
    with pytest.raises(KafkaError):
        ask(world)


def test_transactions_are_refused_in_words_that_no_client_retries() -> None:
    world = NodeWorld()
    assert ask(world, InitProducerIdRequest(transactional_id="t")).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert ask(world, InitProducerIdRequest(transactional_id="")).error_code == ErrorCode.INVALID_REQUEST
