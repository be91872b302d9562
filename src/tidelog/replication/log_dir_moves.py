"""The replicas that move between log dirs of this broker (KIP-113): at most one move each; one move to the newest target.

How one replica is copied: ``replica_move``; who runs the moves: ``broker.replica_moves``.
"""

from __future__ import annotations

from tidelog.model.ids import TopicPartition
from tidelog.replication.partition import Partition
from tidelog.replication.replica_move import MoveState, ReplicaMove
from tidelog.storage.log_dir import LogDir
from tidelog.storage.log_manager import LogManager


class LogDirMoves:
    """The moves of one broker."""

    __slots__ = ("_logs", "_moves")

    def __init__(self, logs: LogManager) -> None:
        self._logs = logs
        self._moves: dict[TopicPartition, ReplicaMove] = {}

    def __len__(self) -> int:
        return len(self._moves)

    def begin(self, partition: Partition, target: LogDir, even_ms: int) -> ReplicaMove | None:
        """Move a replica to ``target``; None when it is already there or on its way. A move to another dir ends early."""
        name = partition.topic_partition
        under_way = self._moves.get(name)
        if under_way is not None and under_way.state is MoveState.COPYING:
            if under_way.target is target:
                return None
            under_way.end_early(even_ms)
        self._moves.pop(name, None)
        if self._logs.dir_of(name) is target:
            return None
        move = self._moves[name] = ReplicaMove(partition, target, self._logs.future)
        return move

    def end(self, move: ReplicaMove, even_ms: int) -> None:
        """End a move that is done or cannot continue."""
        move.end_early(even_ms)
        if self._moves.get(move.partition.topic_partition) is move:
            del self._moves[move.partition.topic_partition]

    def restart(self, partition: Partition, even_ms: int) -> None:
        """The replica was truncated: a copy being made in another log dir must not keep the truncated records."""
        move = self._moves.get(partition.topic_partition)
        if move is not None and move.partition is partition:
            move.restart(even_ms)

    def stop(self, even_ms: int) -> None:
        """The node stops: replicas stay where they are."""
        for move in list(self._moves.values()):
            self.end(move, even_ms)
