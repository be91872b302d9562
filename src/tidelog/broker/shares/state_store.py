"""StateStore: reads and writes the durable state of share partitions, at whichever broker coordinates each of them.

The coordinator of a share partition leads the partition of ``__share_group_state`` that its key hashes to. On this broker it is
asked directly, elsewhere with Kafka's requests. While there is none the request is repeated with growing pauses.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from tidelog.coordinator.partition_for_key import partition_of
from tidelog.coordinator.shard import Shard, Waiting
from tidelog.coordinator.shards import Shards
from tidelog.coordinator.share.coordinator import Answer, Found, ShareCoordinator, Written
from tidelog.coordinator.share.records import ShareKey, read_batches
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import NO_BROKER, SHARE_STATE_TOPIC, Uuid
from tidelog.model.machine import Outcome, Token
from tidelog.protocol.messages import delete_share_group_state as deleting
from tidelog.protocol.messages import initialize_share_group_state as initializing
from tidelog.protocol.messages import read_share_group_state as reading
from tidelog.protocol.messages import read_share_group_state_summary as summing
from tidelog.protocol.messages import write_share_group_state as writing

if TYPE_CHECKING:
    from tidelog.broker.ports import Runtime
    from tidelog.broker.shares.ports import ShareHost

Call = Callable[[ShareCoordinator, Token, int], Outcome]

PURPOSE = "share state"
"""Requests of one purpose reach a broker in order."""
FIRST_PAUSE_S, LONGEST_PAUSE_S, TRIES = 0.2, 30.0, 8
REQUEST_TIMEOUT_MS = 30_000
RETRIED = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)


def decide(
    shards: Shards[ShareCoordinator], runtime: Runtime, key: ShareKey, call: Call, *, writes: bool = True
) -> Answer | Coroutine[Any, Any, Answer]:
    """Asks this broker's coordinator at once. The answer comes when what it stands for is durable; 14, 15 or 16 when there is no
    coordinator here."""
    shard = shards.find(key.text, writes=writes)
    if isinstance(shard, ErrorCode):
        return Answer(shard, shard.text)
    token, waiting = shards.ask(shard, call)
    return _settled(runtime, shard, token, waiting)


async def _settled(runtime: Runtime, shard: Shard[ShareCoordinator], token: Token, waiting: Waiting) -> Answer:
    if not waiting.done:
        try:
            await runtime.wait(waiting)
        finally:
            shard.abandon(token)
    if waiting.error is not ErrorCode.NONE:
        return Answer(waiting.error, waiting.error.text)
    answer = waiting.response
    assert isinstance(answer, Answer)
    return answer


NOTHING_STORED = Answer(stored=Found(0, 0, -1, -1, ()))
"""Any answer when ``group.share.persister.class.name`` is empty: nothing is stored, as in Kafka."""


class StateStore:
    """The state of all share partitions of the cluster, as one broker reaches it."""

    def __init__(self, broker: ShareHost) -> None:
        self._broker = broker

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> Answer:
        """Creates or resets a state."""
        partition = initializing.PartitionData(partition=key.partition, state_epoch=state_epoch, start_offset=start_offset)
        topics = [initializing.InitializeStateData(topic_id=key.topic_id, partitions=[partition])]
        request = initializing.InitializeShareGroupStateRequest(group_id=key.group_id, topics=topics)
        return await self._ask(key, lambda m, token, now: m.initialize(token, key, state_epoch, start_offset, now), request)

    async def read(self, key: ShareKey, leader_epoch: int) -> Answer:
        """The state for a new leader of the partition."""
        partition = reading.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
        topics = [reading.ReadStateData(topic_id=key.topic_id, partitions=[partition])]
        request = reading.ReadShareGroupStateRequest(group_id=key.group_id, topics=topics)
        return await self._ask(key, lambda m, token, now: m.read(token, key, leader_epoch, now), request)

    async def write(self, key: ShareKey, written: Written) -> Answer:
        """Stores what the partition's leader decided."""
        partition = writing.PartitionData(
            partition=key.partition,
            state_epoch=written.state_epoch,
            leader_epoch=written.leader_epoch,
            start_offset=written.start_offset,
            delivery_complete_count=written.complete_count,
            state_batches=[writing.StateBatch(*batch) for batch in written.batches],
        )
        topics = [writing.WriteStateData(topic_id=key.topic_id, partitions=[partition])]
        request = writing.WriteShareGroupStateRequest(group_id=key.group_id, topics=topics)
        return await self._ask(key, lambda m, token, now: m.write(token, key, written, now), request)

    async def delete(self, key: ShareKey) -> Answer:
        """Forgets a state."""
        topics = [deleting.DeleteStateData(topic_id=key.topic_id, partitions=[deleting.PartitionData(partition=key.partition)])]
        request = deleting.DeleteShareGroupStateRequest(group_id=key.group_id, topics=topics)
        return await self._ask(key, lambda m, token, now: m.delete(token, key, now), request)

    async def summary(self, key: ShareKey) -> Answer:
        """The offsets of a state."""
        partition = summing.PartitionData(partition=key.partition, leader_epoch=-1)
        topics = [summing.ReadStateSummaryData(topic_id=key.topic_id, partitions=[partition])]
        request = summing.ReadShareGroupStateSummaryRequest(group_id=key.group_id, topics=topics)
        return await self._ask(key, lambda m, token, now: m.summary(token, key, now), request)

    async def _ask(self, key: ShareKey, call: Call, request: Any) -> Answer:
        if not self._broker.config.group_share_persister_class_name:
            return NOTHING_STORED
        pause_s = FIRST_PAUSE_S
        for attempt in range(TRIES):
            answer = await self._ask_once(key, call, request)
            if answer.error not in RETRIED or attempt == TRIES - 1:
                return answer
            if answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not self._topic_exists(key):
                return answer
            await self._broker.runtime.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        raise AssertionError("the last attempt returns")

    def _topic_exists(self, key: ShareKey) -> bool:
        return Uuid(key.topic_id) in self._broker.image.topics.by_id

    async def _ask_once(self, key: ShareKey, call: Call, request: Any) -> Answer:
        broker = self._broker
        topic = broker.image.topics.by_name.get(SHARE_STATE_TOPIC)
        if topic is None:
            broker.create_share_topic()
            return Answer(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{SHARE_STATE_TOPIC} is being created.")
        leader = topic.partitions[partition_of(key.text, len(topic.partitions))].leader
        if leader == NO_BROKER:
            return Answer(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The partition of {SHARE_STATE_TOPIC} has no leader.")
        if leader == broker.node_id:
            answer = decide(broker.shares, broker.runtime, key, call)
            return answer if isinstance(answer, Answer) else await answer
        try:
            response = await broker.others.ask(leader, PURPOSE, request, REQUEST_TIMEOUT_MS)
        except KafkaError as error:
            return Answer(error.code, error.detail)
        return _read(response)


def _read(response: Any) -> Answer:
    """The answer about the one partition of a response of another broker."""
    results = [one for topic in response.results for one in topic.partitions]
    if len(results) != 1:
        return Answer(ErrorCode.UNKNOWN_SERVER_ERROR, f"One share partition was asked for, and {len(results)} were answered.")
    result = results[0]
    error = ErrorCode(result.error_code)
    if error is not ErrorCode.NONE:
        return Answer(error, result.error_message)
    if isinstance(result, reading.PartitionResult):
        try:
            batches = read_batches(result.state_batches)
        except ValueError as impossible:
            return Answer(ErrorCode.UNKNOWN_SERVER_ERROR, f"The coordinator answered with a state that cannot be: {impossible}")
        return Answer(stored=Found(result.state_epoch, -1, result.start_offset, -1, batches))
    if isinstance(result, summing.PartitionResult):
        offsets = Found(result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count, ())
        return Answer(stored=offsets)
    return Answer()
