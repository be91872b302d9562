"""Deleting the states of a group: what the share coordinator refuses stays recorded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.broker.node_world import run
from tidelog.broker.apis.groups import share_deletion
from tidelog.coordinator.group.share.share_service import Ordered
from tidelog.coordinator.share.coordinator import Answer
from tidelog.model.errors import ErrorCode

T, U = b"t" * 16, b"u" * 16


@pytest.mark.parametrize(
    ("error", "told", "forgotten"),
    [
        (ErrorCode.NONE, ErrorCode.NONE, {T, U}),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE, {T, U}),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR, {U}),
    ],
)
def test_states_are_deleted_and_then_forgotten(
    monkeypatch: pytest.MonkeyPatch, error: ErrorCode, told: ErrorCode, forgotten: set[bytes]
) -> None:
    forgot: list[set[bytes]] = []

    async def delete(key: Any) -> Answer:
        return Answer(error if key.topic_id == T else ErrorCode.NONE)

    def forget(token: object, group_id: str, topic_ids: Any) -> ErrorCode:
        forgot.append(set(topic_ids))
        return ErrorCode.NONE

    ordered = Ordered(1, {T: frozenset({0, 1}), U: frozenset({0})}, {T: "t", U: "u"})
    machine = SimpleNamespace(shares=SimpleNamespace(begin_deletion=lambda *_: ordered, forget=forget))

    async def ask_shares(ctx: Any, group_id: str, call: Any) -> Any:
        return call(machine, 1)

    monkeypatch.setattr(share_deletion, "ask_shares", ask_shares)
    ctx: Any = SimpleNamespace(node=SimpleNamespace(share_partitions=SimpleNamespace(store=SimpleNamespace(delete=delete))))
    assert run(share_deletion.delete_states(ctx, "g", None)) == {T: told, U: ErrorCode.NONE}
    assert forgot == [forgotten]
