from __future__ import annotations

from typing import Any

from tests.unit.broker.allowing import Allowing, Permission
from tests.unit.replication.world import World, batch, topic_id
from tidelog.broker.apis.records.writable import denial, refusals
from tidelog.broker.node import BrokerContext
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID
from tidelog.protocol.fastpath import ProduceView

MAY_WRITE = (AclOperation.WRITE, ResourceType.TOPIC, "t")
MAY_USE = (AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")
NONE, DENIED = ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED
TXN_DENIED, MIXED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.INVALID_PRODUCER_ID_MAPPING


def context(*permissions: Permission) -> tuple[BrokerContext, Allowing]:
    world = World()
    world.create("t")
    world.access = Allowing(set(permissions))
    return world.context(13), world.access


def transactional(producer_id: int = 7) -> memoryview:
    options: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    return batch(b"v", **options)


def view(*topics: tuple[str, memoryview | None], id: str | None = None) -> ProduceView:
    return ProduceView(id, 1, 1_000, [(name, ZERO_UUID, [(0, records)]) for name, records in topics])


def test_one_batch_needs_write_on_its_topic_and_in_a_transaction_on_the_id() -> None:
    plain = batch(b"v")
    assert denial(context(MAY_WRITE)[0], view(("t", plain)), "t", plain) is NONE
    assert denial(context()[0], view(("t", plain)), "t", plain) is DENIED
    assert denial(context(MAY_WRITE)[0], view(("t", None)), "t", None) is NONE
    grouped = transactional()
    for id, permissions, error in (
        ("x", (MAY_WRITE, MAY_USE), NONE),
        ("x", (MAY_USE,), DENIED),
        ("x", (MAY_WRITE,), TXN_DENIED),
        (None, (MAY_WRITE, MAY_USE), TXN_DENIED),
    ):
        assert denial(context(*permissions)[0], view(("t", grouped), id=id), "t", grouped) is error


def test_a_plain_batch_with_a_transactional_id_needs_nothing_on_the_id() -> None:
    ctx, access = context(MAY_WRITE)
    assert refusals(ctx, view(("t", batch(b"v")), id="x")) == (NONE, [NONE])
    assert access.loud == [MAY_WRITE]


def test_each_topic_is_decided_alone_and_an_unknown_id_not_here() -> None:
    ctx, access = context(MAY_WRITE)
    request = view(("t", batch(b"v")), ("u", batch(b"v")), ("t", batch(b"v")))
    request.topics.append((None, topic_id("t"), [(0, batch(b"v"))]))
    request.topics.append((None, topic_id("none"), [(0, batch(b"v"))]))
    assert refusals(ctx, request) == (NONE, [NONE, DENIED, NONE, NONE, NONE])
    assert sorted(access.loud) == [MAY_WRITE, (AclOperation.WRITE, ResourceType.TOPIC, "u")]


def test_the_transactional_bit_anywhere_needs_the_id() -> None:
    ctx, _ = context(MAY_WRITE)
    assert refusals(ctx, view(("t", batch(b"v")), ("u", transactional()), id="x"))[0] is TXN_DENIED
    assert refusals(ctx, view(("t", batch(b"v")), ("u", transactional())))[0] is TXN_DENIED


def test_only_batches_that_may_be_written_must_have_one_producer() -> None:
    ctx, _ = context(MAY_WRITE, MAY_USE)
    assert refusals(ctx, view(("t", transactional(7)), ("u", transactional(8)), id="x")) == (NONE, [NONE, DENIED])
    ctx, _ = context(MAY_WRITE, MAY_USE, (AclOperation.WRITE, ResourceType.TOPIC, "u"))
    assert refusals(ctx, view(("t", transactional(7)), ("u", transactional(8)), id="x")) == (NONE, [MIXED, MIXED])
