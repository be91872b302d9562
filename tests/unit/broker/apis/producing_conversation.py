"""A second long conversation about transactions, with partitions and groups: Produce at every version, WriteTxnMarkers,
TxnOffsetCommit, and what DescribeProducers and ListOffsets say after each. Held with Apache Kafka 4.3.1 once, and with tidelog in
each test run.

``python -m tests.unit.broker.apis.producing_conversation PORT`` prints what a new broker answers whose transaction.version is 2;
``tests/golden/transactions/producing.txt`` has what Kafka did. What Kafka gets wrong is left out: docs/internals/transactions.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from tests.unit.broker.apis.live import RETRY, Talk
from tests.unit.broker.apis.transactional import add, ask_init, end, find, init
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tidelog.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tidelog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tidelog.protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tidelog.records.builder import RecordData, build_batch

Said = Iterator[tuple[str, object]]
NOBODY = Producer(-1, -1)
PARTITIONS = 3
BUMPING_FROM = 12
"""The versions of Produce whose producers speak EndTxn v5."""


def _name(code: int) -> str:
    return ErrorCode(code).name


def _at(producer: Producer, step: int) -> Producer:
    return Producer(producer.producer_id, producer.epoch + step)


def _batch(producer: Producer, sequence: int, *, count: int = 1, transactional: bool = True, control: bool = False) -> bytes:
    return bytes(
        build_batch(
            [RecordData(b"k", b"v", int(time.time() * 1000)) for _ in range(count)],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=transactional,
            control=control,
        )
    )


class Conversation(Talk):
    """A connection that asks about one topic at a time, named after the part."""

    topic = ""
    topic_id = Uuid(0)

    def begin(self, topic: str) -> None:
        """A new topic, and its leaders."""
        self.topic = topic
        wanted = CreatableTopic(name=topic, num_partitions=PARTITIONS, replication_factor=1)
        self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)
        while True:
            (found,) = self.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12).topics
            leaders = [partition.leader_id for partition in found.partitions]
            if found.error_code == 0 and len(leaders) == PARTITIONS and min(leaders) >= 0 and self._lead(leaders):
                break
            time.sleep(0.05)
        self.topic_id = found.topic_id

    def _lead(self, leaders: list[int]) -> bool:
        """Whether they know of it."""
        return all("UNKNOWN" not in self.ends(index) and "LEADER" not in self.ends(index) for index in range(len(leaders)))

    def produce(self, name: str | None, version: int, *batches: tuple[int, bytes]) -> str:
        data = [PartitionProduceData(index=index, records=records) for index, records in batches]
        topic = TopicProduceData(name=self.topic, partition_data=data)
        if version >= 13:
            topic = TopicProduceData(topic_id=self.topic_id, partition_data=data)
        request = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=5_000, topic_data=[topic])
        (answer,) = self.ask(request, version).responses
        return " ".join(
            sorted(f"{part.index}={_name(part.error_code)}@{part.base_offset}" for part in answer.partition_responses)
        )

    def state(self, name: str) -> str:
        """What the coordinator knows, once no marker is missing."""
        while True:
            (known,) = self.ask(DescribeTransactionsRequest(transactional_ids=[name]), 0).transaction_states
            if not known.transaction_state.startswith("Prepare"):
                break
            time.sleep(0.005)
        partitions = sorted(f"{index}" for topic in known.topics if topic.topic == self.topic for index in topic.partitions)
        return f"{known.transaction_state} e{known.producer_epoch} {' '.join(partitions)}"

    def ends(self, index: int = 0) -> str:
        """The end of the partition, and of what is decided."""
        said = []
        for isolation in (0, 1):
            part = ListOffsetsPartition(partition_index=index, timestamp=-1)
            topic = ListOffsetsTopic(name=self.topic, partitions=[part])
            (answer,) = self.ask(ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[topic]), 5).topics
            (found,) = answer.partitions
            said.append(_name(found.error_code) if found.error_code else str(found.offset))
        return "/".join(said)

    def producers(self, producer: Producer, index: int = 0) -> str:
        """What the partition remembers of producers, this one's last."""
        topic = TopicRequest(name=self.topic, partition_indexes=[index])
        (part,) = self.ask(DescribeProducersRequest(topics=[topic]), 0).topics[0].partitions
        return " ".join(
            f"e{one.producer_epoch},s{one.last_sequence},c{one.coordinator_epoch},t{one.current_txn_start_offset}"
            for one in part.active_producers
            if one.producer_id == producer.producer_id
        )

    def end(self, name: str, producer: Producer, *, commit: bool, version: int) -> tuple[str, Producer]:
        """EndTxn as a producer sends it that speaks Produce at ``version``; who it is afterwards."""
        bumping = version >= BUMPING_FROM
        answer = end(self, name, producer, commit=commit, version=5 if bumping else 4)
        said = f"{_name(answer.error_code)}, then {self.state(name)}"
        return said, Producer(answer.producer_id, answer.producer_epoch) if bumping and not answer.error_code else producer


def conversation(port: int) -> list[str]:
    """What was asked and what was answered, a line each."""
    talk = Conversation(port)
    find(talk, "x")
    talk.find("g")
    ask_init(talk, None)
    parts = (_unbegun, _wrong, _mixed, _sequences, _late, _marked, _offsets)
    lines = []
    for part in parts:
        talk.begin(f"t{part.__name__}")
        lines += [f"{asked}: {answered}" for asked, answered in part(talk)]
    talk.close()
    return lines


def _unbegun(talk: Conversation) -> Said:
    for version in (3, 7, 8, 9, 10, 11, 12, 13):
        name = f"unbegun-{version}"
        producer = init(talk, name)
        yield f"{name} first", f"{talk.produce(name, version, (0, _batch(producer, 0)))}, {talk.state(name)}"
        yield f"{name} first at 5", f"{talk.produce(name, version, (1, _batch(producer, 5)))}, {talk.state(name)}"
        for other in (None, "", "nobody"):
            yield f"{name} as {other}", talk.produce(other, version, (2, _batch(producer, 0)))
        yield f"{name} plain", talk.produce(name, version, (2, _batch(producer, 0, transactional=False)))
        yield f"{name} state", talk.producers(producer, 2)
        yield f"{name} end", talk.end(name, producer, commit=False, version=version)[0]
    yield "unbegun ends", [talk.ends(index) for index in range(PARTITIONS)]


def _wrong(talk: Conversation) -> Said:
    for version in (3, 9, 11, 12):
        name = f"wrong-{version}"
        init(talk, name)
        producer, other = init(talk, name), init(talk, f"{name}-other")
        add(talk, name, producer, (talk.topic, 0), (talk.topic, 1))
        wrong = {f"e{step}": _at(producer, step) for step in (-3, -1, 1)}
        wrong |= {"id": Producer(producer.producer_id + 100_000, producer.epoch), "the other's": other}
        for what, who in wrong.items():
            yield f"{name} {what}", talk.produce(name, version, (0, _batch(who, 0)))
        yield f"{name} sequence -1", talk.produce(name, version, (0, _batch(producer, -1)))
        yield f"{name} control", talk.produce(name, version, (0, _batch(producer, 0, control=True)))
        yield f"{name} not added", talk.produce(name, version, (2, _batch(producer, 0)))
        yield f"{name} right", talk.produce(name, version, (0, _batch(producer, 0)))
        for who_says in (name, None):
            yield f"{name} plain inside", talk.produce(who_says, version, (0, _batch(producer, 1, transactional=False)))
        yield f"{name} open, under another name", talk.produce(f"{name}-other", version, (0, _batch(producer, 1)))
        for what in ("e-1", "e1"):
            yield f"{name} open, {what}", talk.produce(name, version, (0, _batch(wrong[what], 0)))
        yield f"{name} gap", talk.produce(name, version, (0, _batch(producer, 9)))
        yield f"{name} again", talk.produce(name, version, (0, _batch(producer, 0)))
        yield f"{name} half again", talk.produce(name, version, (0, _batch(producer, 0, count=2)))
        yield f"{name} state", f"{talk.producers(producer)}, {talk.ends()}, {talk.state(name)}"
        yield f"{name} end", f"{talk.end(name, producer, commit=False, version=9)[0]}, {talk.ends()}"


def _mixed(talk: Conversation) -> Said:
    for version in (9, 11, 12, 13):
        name = f"mixed-{version}"
        init(talk, name)
        producer, other = init(talk, name), init(talk, f"{name}-other")
        add(talk, name, producer, (talk.topic, 0))
        one = (0, _batch(producer, 0))
        yield f"{name} two ids", talk.produce(name, version, one, (1, _batch(other, 0)))
        for step in (-1, 1):
            yield f"{name} two epochs {step}", talk.produce(name, version, one, (1, _batch(_at(producer, step), 0)))
        plain = _batch(_at(producer, -1), 0, transactional=False)
        yield f"{name} another epoch, plain", talk.produce(name, version, one, (2, plain))
        yield f"{name} one not added", talk.produce(name, version, (0, _batch(producer, 1)), (1, _batch(producer, 0)))
        yield (
            f"{name} nobody's",
            talk.produce(name, version, (0, _batch(producer, 2)), (2, _batch(NOBODY, -1, transactional=False))),
        )
        yield f"{name} cut", talk.produce(name, version, (0, _batch(producer, 3)[:-3]))
        yield f"{name} nothing", talk.produce(name, version, (0, b""))
        yield f"{name} two batches", talk.produce(name, version, (0, _batch(producer, 3) + _batch(producer, 4)))
        yield f"{name} state", f"{talk.state(name)}, {talk.producers(producer, 1)}"
        yield f"{name} end", talk.end(name, producer, commit=True, version=version)[0]
        yield f"{name} ends", [talk.ends(index) for index in range(PARTITIONS)]


def _sequences(talk: Conversation) -> Said:
    for version in (9, 11, 12):
        name = f"sequences-{version}"
        producer = init(talk, name)

        def go(index: int, sequence: int, who: Producer, name: str = name, version: int = version) -> str:
            if version < BUMPING_FROM:
                add(talk, name, who, (talk.topic, index))
            return talk.produce(name, version, (index, _batch(who, sequence)))

        for sequence in (3, 4, 4, 3):
            yield f"{name} at {sequence}", go(0, sequence, producer)
        said, producer = talk.end(name, producer, commit=True, version=version)
        yield f"{name} commit", said
        for sequence in (4, 6, 0, 5, 1):
            yield f"{name} then at {sequence}", go(0, sequence, producer)
        for sequence in (7, 0):
            yield f"{name} elsewhere at {sequence}", go(1, sequence, producer)
        said, producer = talk.end(name, producer, commit=False, version=version)
        yield f"{name} abort", said
        for sequence in (0, 6):
            plain = _batch(producer, sequence, transactional=False)
            yield f"{name} plain at {sequence}", talk.produce(name, version, (0, plain))
        for sequence in (0, 1, 7):
            yield f"{name} after that at {sequence}", go(0, sequence, producer)
        said, producer = talk.end(name, producer, commit=True, version=version)
        producer = init(talk, name)
        for sequence in (4, 0):
            yield f"{name} next epoch at {sequence}", f"{go(0, sequence, producer)}, {talk.producers(producer)}"
        said, _ = talk.end(name, producer, commit=False, version=version)
        yield f"{name} last", f"{said}, {talk.producers(producer)}, {talk.ends()}"


def _late(talk: Conversation) -> Said:
    for version in (9, 10, 11, 12):
        for commit in (True, False):
            name = f"late-{version}-{commit}"
            producer = init(talk, name)
            add(talk, name, producer, (talk.topic, 0))
            talk.produce(name, version, (0, _batch(producer, 0)))
            yield f"{name} end", talk.end(name, producer, commit=commit, version=version)[0]
            for index, sequence in ((0, 1), (0, 0), (1, 0)):
                said = talk.produce(name, version, (index, _batch(producer, sequence)))
                yield f"{name} {index} at {sequence}", f"{said}, {talk.state(name)}, {talk.ends()}"
            init(talk, name)
            for index, sequence in ((0, 1), (2, 0)):
                yield f"{name} fenced {index}", talk.produce(name, version, (index, _batch(producer, sequence)))
            yield f"{name} ends", [talk.ends(index) for index in range(PARTITIONS)]


def _marked(talk: Conversation) -> Said:
    for version, level in ((1, 0), (2, 0), (2, 1), (2, 2), (2, 3)):
        name = f"marked-{version}-{level}"
        producer = [init(talk, name) for _ in range(3)][-1]

        def mark(
            step: int,
            *partitions: int,
            coordinator: int = 0,
            commit: bool = False,
            v: int = version,
            lv: int = level,
            p: Producer = producer,
        ) -> str:
            topics = [WritableTxnMarkerTopic(name=talk.topic, partition_indexes=list(partitions))]
            marker = WritableTxnMarker(
                producer_id=p.producer_id,
                producer_epoch=p.epoch + step,
                transaction_result=commit,
                topics=topics,
                coordinator_epoch=coordinator,
                transaction_version=lv,
            )
            (answer,) = talk.ask(WriteTxnMarkersRequest(markers=[marker]), v).markers
            errors = sorted((part.partition_index, _name(part.error_code)) for each in answer.topics for part in each.partitions)
            return " ".join(f"{index}={error}" for index, error in errors)

        yield f"{name} not there", mark(0, 9, -1)
        yield f"{name} without a transaction", f"{mark(0, 0)}, {talk.producers(producer)}, {talk.ends()}"
        add(talk, name, producer, (talk.topic, 0), (talk.topic, 1))
        yield f"{name} produce", f"{talk.produce(name, 9, (0, _batch(producer, 0)))}, {talk.producers(producer)}"
        for step in (-1, 0, 1, 0):
            yield f"{name} e{step}", f"{mark(step, 0)}, {talk.producers(producer)}, {talk.ends()}"
        for coordinator in (5, 4, -1):
            said = mark(1, 0, coordinator=coordinator, commit=True)
            yield f"{name} coordinator {coordinator}", f"{said}, {talk.producers(producer)}, {talk.ends()}"
        yield f"{name} elsewhere", f"{mark(1, 1, 2)}, {talk.producers(producer, 2)}"
        yield f"{name} later", talk.produce(name, 9, (1, _batch(producer, 0)), (0, _batch(producer, 1)))
        yield f"{name} ends", [talk.ends(index) for index in range(PARTITIONS)]


def _offsets(talk: Conversation) -> Said:
    for version in range(6):
        name = f"offsets-{version}"
        init(talk, name)
        producer = init(talk, name)
        find_group = f"group-{version}"
        talk.find(find_group)

        def commit(
            who: Producer,
            *parts: tuple[int, int],
            name: str = name,
            group: str = find_group,
            v: int = version,
            t: str = talk.topic,
        ) -> str:
            wanted = [
                TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
                for index, offset in parts
            ]
            request = TxnOffsetCommitRequest(
                transactional_id=name,
                group_id=group,
                producer_id=who.producer_id,
                producer_epoch=who.epoch,
                topics=[TxnOffsetCommitRequestTopic(name=t, partitions=wanted)],
            )
            while True:
                (answer,) = talk.ask(request, v).topics
                if not {part.error_code for part in answer.partitions} & set(RETRY):
                    return " ".join(sorted(f"{part.partition_index}={_name(part.error_code)}" for part in answer.partitions))
                time.sleep(0.01)

        yield f"{name} unbegun", f"{commit(producer, (0, 5))}, {talk.state(name)}"
        for other in ("", "nobody"):
            yield f"{name} as {other}", commit(producer, (0, 5), name=other)
        yield f"{name} no group", commit(producer, (0, 5), group="")
        for step in (-1, 1):
            yield f"{name} e{step}", commit(_at(producer, step), (0, 5))
        yield f"{name} id", commit(Producer(producer.producer_id + 100_000, producer.epoch), (0, 5))
        for group in (find_group, ""):
            request = AddOffsetsToTxnRequest(
                transactional_id=name, producer_id=producer.producer_id, producer_epoch=producer.epoch, group_id=group
            )
            yield f"{name} add {group}", _name(talk.ask(request, 3).error_code)
        yield f"{name} right", commit(producer, (0, 5), (9, 3), (1, -7))
        for step in (-1, 1):
            yield f"{name} then e{step}", commit(_at(producer, step), (0, 5))
        yield f"{name} end", talk.end(name, producer, commit=True, version=12 if version >= 5 else 9)[0]
        yield f"{name} late", f"{commit(producer, (0, 9))}, {talk.state(name)}"


if __name__ == "__main__":
    print("\n".join(conversation(int(sys.argv[1]))))
