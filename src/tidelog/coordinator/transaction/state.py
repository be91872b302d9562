"""The states of a transactional id, their names and numbers in Kafka, and which may follow which.

    Empty ---> Ongoing ---> PrepareCommit ---> CompleteCommit
      |           |                                 |
      |           +-------> PrepareAbort ----> CompleteAbort
      +---------------------^ (KIP-890)
    CompleteCommit and CompleteAbort go on as Empty does; Empty and both Complete end in Dead when the id is forgotten.

PrepareEpochFence stands for an abort that the coordinator itself began, before its record is made. It is a name that clients may
filter by and that files may not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class TransactionState(IntEnum):
    """Numbers are those in the log (``TransactionStatus``)."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


NAMES: Mapping[TransactionState, str] = {
    TransactionState.EMPTY: "Empty",
    TransactionState.ONGOING: "Ongoing",
    TransactionState.PREPARE_COMMIT: "PrepareCommit",
    TransactionState.PREPARE_ABORT: "PrepareAbort",
    TransactionState.COMPLETE_COMMIT: "CompleteCommit",
    TransactionState.COMPLETE_ABORT: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
"""The spelling in DescribeTransactions and ListTransactions."""

BY_NAME: Mapping[str, TransactionState] = {name: state for state, name in NAMES.items()}

_AT_REST = (
    TransactionState.EMPTY,
    TransactionState.ONGOING,
    TransactionState.PREPARE_ABORT,
    TransactionState.DEAD,
)

MOVES: Mapping[TransactionState, tuple[TransactionState, ...]] = {
    TransactionState.EMPTY: _AT_REST,
    TransactionState.ONGOING: (
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
    ),
    TransactionState.PREPARE_COMMIT: (TransactionState.COMPLETE_COMMIT,),
    TransactionState.PREPARE_ABORT: (TransactionState.COMPLETE_ABORT,),
    TransactionState.COMPLETE_COMMIT: _AT_REST,
    TransactionState.COMPLETE_ABORT: _AT_REST,
    TransactionState.DEAD: (),
    TransactionState.PREPARE_EPOCH_FENCE: (),
}
"""The legal moves; any other move is a bug."""

ENDING = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
"""Decided, but markers are missing."""

AT_REST = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
"""No transaction is under way."""
