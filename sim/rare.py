"""Branches that most runs of a cluster never take, counted while a run lasts: a run that reaches none of them shows little."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tidelog.controller import leader_moves, partition_change, replica_directories
from tidelog.controller import result as controller_result
from tidelog.coordinator.transaction import transitions
from tidelog.coordinator.transaction.metadata import TransactionMetadata
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord
from tidelog.raft import log_changes
from tidelog.replication import follower_log
from tidelog.server.replication.repairing import Repairing
from tidelog.storage import recovery
from tidelog.storage import unified_log as storage_log
from tidelog.storage.log_table import LogTable
from tidelog.storage.producer_state import ProducerStateManager
from tidelog.storage.segment import LogSegment
from tidelog.testing.simulation.patching import Patch, patched

Seen = Callable[..., str | None]
"""What a call was: told its result and its arguments; None for nothing worth counting."""


def _calls(what: str) -> Seen:
    return lambda result, *_args, **_named: what


def _change(result: PartitionChangeRecord | None, _id: bytes, _number: int, partition: PartitionImage, *_: Any) -> str | None:
    """What the controller made of a partition."""
    if result is None:
        return None
    if result.leader_recovery_state == partition_change.RECOVERING:
        return "unclean elections"
    if result.leader is not None and result.leader >= 0 and result.leader in (partition.elr or ()):
        return "leaders elected out of the eligible replicas"
    if result.isr is not None:
        return "ISRs shrunk" if len(result.isr) < len(partition.isr) else "ISRs grown"
    return None


def _cut(_result: None, partition: Any, *_args: Any, **_named: Any) -> str:
    return "logs cut where histories part"


def _fenced(result: Any, *_args: Any, **_named: Any) -> str | None:
    return "producers fenced" if result in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH) else None


def _refused(result: Any, *_args: Any, **_named: Any) -> str | None:
    return "damaged batches refused by followers" if result.error is ErrorCode.CORRUPT_MESSAGE else None


def _recovered(result: int, *_args: Any, **_named: Any) -> str | None:
    return "log ends cut in recovery" if result else None


def _timed_out(result: bool, *_args: Any, **_named: Any) -> str | None:
    return "transactions timed out" if result else None


LOOKED_AT: tuple[tuple[Any, str, Seen], ...] = (
    *((module, "change_partition", _change) for module in (replica_directories, leader_moves, controller_result)),
    (follower_log, "truncate", _cut),
    (follower_log, "start_over", _calls("logs begun anew behind the leader's start")),
    (log_changes, "truncate", _calls("metadata logs cut where histories part")),
    (log_changes.IncomingSnapshot, "finish", _calls("metadata snapshots fetched")),
    (LogTable, "fail_dir", _calls("log dirs failed")),
    (LogSegment, "_index_again", _calls("indexes made anew")),
    (recovery, "recover_segment", _recovered),
    (storage_log, "validate_replicated", _refused),
    (Repairing, "_mended", _calls("damaged ranges mended")),
    (ProducerStateManager, "check", _fenced),
    (ProducerStateManager, "check_marker", _fenced),
    (transitions, "init", _fenced),
    (transitions, "end", _fenced),
    (transitions, "add_partitions", _fenced),
    (TransactionMetadata, "timed_out", _timed_out),
)
"""Where, which function, and what a call of it was."""


@contextmanager
def counted(into: collections.Counter[str]) -> Iterator[None]:
    """Whatever of ``LOOKED_AT`` happens meanwhile is counted."""

    def watching(function: Callable[..., Any], seen: Seen) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            result = function(*args, **named)
            what = seen(result, *args, **named)
            if what is not None:
                into[what] += 1
            return result

        return call

    patches: list[Patch] = [(where, name, watching(vars(where)[name], seen)) for where, name, seen in LOOKED_AT]
    with patched(patches):
        yield
