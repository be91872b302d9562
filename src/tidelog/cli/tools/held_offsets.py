"""Finds the open transaction that holds back a partition's last stable offset, and with it read_committed consumers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.cli.admin_session import AdminSession, Partition
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import transaction_state
from tidelog.client.connection import UnsupportedByBroker
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LATEST_TIMESTAMP

READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class Holder:
    """``offset`` is the last stable offset. ``transactional_id`` is None when no coordinator knows the transaction: it hangs."""

    offset: int
    transactional_id: str | None
    producer_id: int
    producer_epoch: int


def holders(session: AdminSession, ends: Mapping[Partition, int]) -> dict[Partition, Holder]:
    """An entry for each partition whose last stable offset is below its end. Empty when brokers do not support the requests."""
    try:
        return _holders(session, ends)
    except (CommandFailed, UnsupportedByBroker):
        return {}  # additional information only: the main output must not fail without it


def _holders(session: AdminSession, ends: Mapping[Partition, int]) -> dict[Partition, Holder]:
    if not ends:
        return {}
    stable = session.list_offsets(dict.fromkeys(ends, LATEST_TIMESTAMP), isolation_level=READ_COMMITTED)
    held = {
        partition: answer.offset
        for partition, answer in stable.items()
        if answer.error_code == ErrorCode.NONE and answer.offset < ends[partition]
    }
    if not held:
        return {}
    first = {
        each.partition: each for each in transaction_state.producers(session, held) if each.start_offset == held[each.partition]
    }
    ids = sorted({each.producer_id for each in first.values()})
    listed = transaction_state.list_transactions(session, producer_ids=ids) if ids else []
    names = {each.producer_id: each.transactional_id for each in listed}
    return {
        partition: Holder(held[partition], names.get(each.producer_id), each.producer_id, each.epoch)
        for partition, each in first.items()
    }
