"""DeadLetterQueue: writes what share groups give up to their dead-letter topics (KIP-1191).

A range of dead letters is written round by round. Its topic is looked up before each attempt, so a changed setting counts at
once. What cannot be written is logged and lost to the topic: the group goes on without it, as in Kafka. A leader that fails
before the group's state says so writes them again, so a dead letter may be there twice.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidelog.broker.quotas.mutations import submit_own
from tidelog.broker.shares.dead_letter_plan import CONSENT, Copied, GivenUp, Round, plan_round, refusal
from tidelog.broker.shares.dead_letter_sender import DeadLetterSender, Destination, Sending
from tidelog.broker.shares.log_reading import read_log
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.image import NO_CONFIGS, TOPIC_RESOURCE
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import NO_BROKER
from tidelog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidelog.replication.share.dead_letters import DeadLetter
from tidelog.storage import reading

if TYPE_CHECKING:
    from tidelog.broker.shares.group_settings import GroupSettings
    from tidelog.broker.shares.ports import ShareHost
    from tidelog.replication.partition import Partition

log = logging.getLogger(__name__)

TRIES, FIRST_PAUSE_S, LONGEST_PAUSE_S = 5, 1.0, 30.0
READ_BYTES = 1 << 20
CREATE_TIMEOUT_MS = 30_000
_CREATED = {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.THROTTLING_QUOTA_EXCEEDED}
"""After these the topic is looked up again."""


class NotWritten(Exception):
    """Dead letters could not be written; the text is the reason."""


class Counts:
    """Dead letters of one group: records written, batches sent, batches given up."""

    __slots__ = ("failed", "records", "sent")

    def __init__(self) -> None:
        self.records = 0
        self.sent = 0
        self.failed = 0


class DeadLetterQueue:
    def __init__(self, broker: ShareHost, settings: GroupSettings) -> None:
        self._broker = broker
        self._settings = settings
        self._senders: dict[int, DeadLetterSender] = {}
        self._counts: dict[str, Counts] = {}

    @property
    def counts(self) -> Mapping[str, Counts]:
        """By group, since the start."""
        return self._counts

    async def write(self, group_id: str, partition: Partition, letter: DeadLetter) -> None:
        """Returns when the dead letters are written, or lost."""
        given_up = GivenUp(group_id, partition.topic, partition.index, letter)
        try:
            await self._write(given_up, partition)
        except NotWritten as why:
            log.error(
                "share group %s: %s-%d, offsets %d to %d, which it gave up, are not in a dead-letter topic: %s",
                group_id, partition.topic, partition.index, letter.first, letter.last, why,
            )  # fmt: skip

    async def _write(self, given_up: GivenUp, partition: Partition) -> None:
        counts = self._counts.setdefault(given_up.group_id, Counts())
        offset, attempts, pause_s = given_up.letter.first, 0, FIRST_PAUSE_S
        while offset <= given_up.letter.last:
            found = await self._find(given_up)
            if isinstance(found, Destination):
                sending = self._send(given_up, partition, offset, found)
                await self._settled(sending)
                counts.sent += 1
                error = sending.error
                if error is ErrorCode.NONE and sending.round is not None:
                    counts.records += len(sending.round.records)
                    offset, attempts, pause_s = sending.round.next_offset, 0, FIRST_PAUSE_S
                    continue
                why, again = f"broker {found.leader} answered {error.name} for {found.topic}-{found.partition}", error.retriable
            else:
                why, again = found, True
            attempts += 1
            if not again or attempts >= TRIES:
                counts.failed += isinstance(found, Destination)
                raise NotWritten(why)
            await self._broker.runtime.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _settled(self, sending: Sending) -> None:
        if not sending.done:
            await self._broker.runtime.wait(sending)

    def _send(self, given_up: GivenUp, partition: Partition, offset: int, found: Destination) -> Sending:
        sender = self._senders.get(found.leader)
        if sender is None:
            sender = self._senders[found.leader] = DeadLetterSender(self._broker, found.leader)
        sending = Sending(found, lambda: self._make(given_up, partition, offset, found.max_bytes))
        sender.add(sending)
        return sending

    # -- where they go -------------------------------------------------------------------------------------------------------

    async def _find(self, given_up: GivenUp) -> Destination | str:
        """The partition to write to; or why there is none now. NotWritten where there will be none."""
        broker, config = self._broker, self._broker.config
        name = self._settings.dead_letter_topic(given_up.group_id)
        topic = broker.image.topics.by_name.get(name)
        settings = config.topic_config(broker.image.configs.get((TOPIC_RESOURCE, name), NO_CONFIGS))
        refused = refusal(
            name,
            topic,
            settings,
            prefix=config.errors_deadletterqueue_topic_name_prefix,
            creates=config.errors_deadletterqueue_auto_create_topics_enable,
        )
        if refused is not None:
            raise NotWritten(refused)
        if topic is None:
            return await self._create(name)
        index = given_up.partition % len(topic.partitions)
        leader = topic.partitions[index].leader
        if leader == NO_BROKER:
            return f"{name}-{index} has no leader"
        return Destination(name, topic.id, index, leader, settings.max_message_bytes)

    async def _create(self, name: str) -> str:
        """Asks the controller for the topic, and returns that it is not there yet. NotWritten when it is refused."""
        configs = [CreatableTopicConfig(CONSENT, "true"), CreatableTopicConfig("message.timestamp.type", "CreateTime")]
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, configs=configs)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=CREATE_TIMEOUT_MS)
        try:
            response: CreateTopicsResponse = await submit_own(self._broker, QuorumController.create_topics, request)
        except KafkaError as error:
            if not error.code.retriable:
                raise NotWritten(f"topic {name} could not be created: {error}") from None
            return f"topic {name} could not be created: {error}"
        result = response.topics[0]
        code = ErrorCode(result.error_code)
        if code not in _CREATED and not code.retriable:
            raise NotWritten(f"topic {name} could not be created: {code.name}: {result.error_message or code.text}")
        return f"topic {name} is being created ({code.name})"

    # -- what they hold ------------------------------------------------------------------------------------------------------

    async def _make(self, given_up: GivenUp, partition: Partition, offset: int, max_bytes: int) -> Round:
        letter, now_ms = given_up.letter, self._broker.runtime.now_ms()
        if not self._settings.copies_dead_letters(given_up.group_id):
            return plan_round(given_up, offset, letter.last, {}, max_bytes, now_ms)
        copied = Copied(offset, letter.last, max_bytes)
        while not copied.is_over:
            if not await self._read(partition, copied):
                copied.give_up()
        # A topic whose max.message.bytes is 0 has room for nothing: it refuses the first one, and no other topic suffers for it.
        upto = max(offset, min(letter.last, copied.next_offset - 1))
        return plan_round(given_up, offset, upto, copied.records, max_bytes, now_ms)

    async def _read(self, partition: Partition, copied: Copied) -> bool:
        """Reads on. False when nothing was found: the log does not have it any more, or this broker does not lead it."""
        source, at = partition.log, copied.next_offset
        if source is None:
            return False
        if reading.may_block(source, at, committed=False):
            await self._broker.runtime.run_blocking(lambda: reading.warm_up(source, at, committed=False))
        read = read_log(partition, at, READ_BYTES, committed=False)
        return read.error is ErrorCode.NONE and copied.read(read.data, read.batches)
