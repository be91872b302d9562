"""Runs a replica's move between log dirs, then reports the new dir to the controller."""

from __future__ import annotations

import logging

from tidelog.broker.node import Broker
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import KafkaError, StorageFailure
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)
from tidelog.records.batch import CorruptBatch
from tidelog.replication.replica_move import FlushStep, MoveState, ReadStep, ReplicaMove

log = logging.getLogger(__name__)

LONGEST_PAUSE_MS = 1000
"""While throttled, how late a changed rate or the end of the move is noticed at most."""


async def run_move(broker: Broker, move: ReplicaMove) -> None:
    """Returns when the replica is in its new dir, or stays where it is. Each move has one read or write in progress at a time."""
    name, even_ms = move.partition.topic_partition, broker.runtime.even_ms
    try:
        while (step := move.next_step(even_ms())) is not None:
            if isinstance(step, ReadStep):
                move.take(await broker.runtime.run_blocking(step.source.read), even_ms())
                await _keep_rate(broker, move, step.source.length)
            else:
                assert isinstance(step, FlushStep)
                await broker.runtime.run_blocking(step.job.run)
                move.flushed(step.job, even_ms())
    except StorageFailure as failure:
        broker.replicas.storage_failed(failure)
    except (KafkaError, CorruptBatch, OSError) as problem:
        # The replica stays as it was; its fault shows when it is read.
        log.error("%s cannot be copied to %s, it stays where it is: %s", name, move.target.path, problem)
    finally:
        broker.replicas.moves.end(move, even_ms())
    if move.state is MoveState.DONE:
        log.info("%s lies in %s now", name, move.target.path)
        await _tell_controller(broker, move)


async def _keep_rate(broker: Broker, move: ReplicaMove, copied: int) -> None:
    """Throttle all moves on this broker together (replica.alter.log.dirs.io.max.bytes.per.second)."""
    quota, even_ms = broker.replicas.throttles.log_dirs, broker.runtime.even_ms
    quota.record(copied, even_ms())
    while move.state is MoveState.COPYING and (wait_ms := quota.wait_ms(even_ms())) > 0:
        await broker.runtime.sleep(min(wait_ms, LONGEST_PAUSE_MS) / 1000)


async def _tell_controller(broker: Broker, move: ReplicaMove) -> None:
    """The controller needs a replica's dir to know what is lost when a dir fails."""
    registration = broker.image.brokers.get(broker.node_id)
    if registration is None:
        return
    partition = move.partition
    topic = RequestTopicData(topic_id=partition.topic_id, partitions=[RequestPartitionData(partition_index=partition.index)])
    request = AssignReplicasToDirsRequest(
        broker_id=broker.node_id,
        broker_epoch=registration.epoch,
        directories=[RequestDirectoryData(id=Uuid(move.target.directory_id), topics=[topic])],
    )
    try:
        await broker.controller.submit(QuorumController.assign_replicas_to_dirs, request)
    except KafkaError as error:
        # The node checks all of its replicas from time to time and reports this one again.
        log.warning("the controller was not told that %s lies in %s: %s", partition.topic_partition, move.target.path, error)
