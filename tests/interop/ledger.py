"""What was written where, so that everything can be asked back after each change of the broker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.interop.clients import AtTime, Client, fit
from tests.interop.nodes import Node
from tests.interop.samples import Delivery, Read, Sample, differences


@dataclass
class Ledger:
    """Per topic, the records that a reader must find; ``compacted`` topics may have lost all but the last of a key."""

    written: dict[str, list[Read]] = field(default_factory=lambda: defaultdict(list))
    ends: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    starts: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    compacted: set[str] = field(default_factory=set)
    broker_time: set[str] = field(default_factory=set)  # topics whose timestamps are the broker's

    def write(self, node: Node, by: Client, topic: str, samples: Sequence[Sample], codec: str, delivery: Delivery) -> None:
        """Write, and hold the offsets told against those that must come next."""
        samples = fit(by, samples)
        told = by.write(node.bootstrap, topic, samples, codec, delivery)
        self.note(topic, samples, told, f"{by.name} wrote {codec} with {delivery} to {topic} on {node.kind}")

    def note(self, topic: str, samples: Sequence[Sample], told: Sequence[int], what: str) -> None:
        """Record a producer's acknowledgements."""
        for one, offset in zip(samples, told, strict=True):
            expected = self.ends[topic, one.partition]
            assert offset == expected, f"{what}: was told offset {offset}, the next one was {expected}"
            self.ends[topic, one.partition] += 1
            self.written[topic].append(one.at(offset))

    def deleted_before(self, topic: str, partition: int, offset: int) -> None:
        """Enter a DeleteRecords."""
        self.starts[topic, partition] = offset
        self.written[topic] = [one for one in self.written[topic] if one.partition != partition or one.offset >= offset]

    def verify(self, node: Node, readers: Sequence[Client]) -> None:
        """Every reader finds everything, and nothing else; the offsets of every partition are right."""
        for topic, expected in self.written.items():
            partitions = sorted({partition for name, partition in self.ends if name == topic})
            for reader in readers:
                found = reader.read(node.bootstrap, topic, partitions)
                if topic in self.broker_time:
                    expected, found = ([self.timeless(one) for one in side] for side in (expected, found))
                if topic in self.compacted:
                    expected = self.compaction_of(expected, found)
                differs = differences(expected, found)
                assert not differs, f"{reader.name} read {topic} on {node.kind}:\n{differs}"
        for (topic, partition), end in self.ends.items():
            offsets = readers[0].offsets(node.bootstrap, topic, partition)
            want = (self.starts[topic, partition], end)
            assert (offsets.beginning, offsets.end) == want, f"{topic}-{partition} on {node.kind}: {offsets}, not {want}"

    def verify_times(self, node: Node, reader: Client, topic: str, partition: int) -> None:
        """Timestamps lead to the records that have them; needs ascending timestamps."""
        records = [one for one in self.written[topic] if one.partition == partition]
        for one in records[:: max(1, len(records) // 5)]:
            found = reader.read(node.bootstrap, topic, [partition], AtTime(one.timestamp))
            assert found[0] == one, f"{topic}-{partition} on {node.kind}, from {one.timestamp}: {found[0]}, not {one}"

    @staticmethod
    def timeless(one: Read) -> Read:
        return Read(one.partition, one.offset, 0, one.key, one.value, one.headers)

    @staticmethod
    def compaction_of(written: list[Read], found: list[Read]) -> list[Read]:
        """What a compacted partition may hold, given what was found: the last record of each key (a tombstone may be gone),
        and those of the others that have not been cleaned yet."""
        last = {(one.partition, one.key): one.offset for one in written}
        there = {(one.partition, one.offset) for one in found}
        return [
            one
            for one in written
            if (one.partition, one.offset) in there or (last[one.partition, one.key] == one.offset and one.value is not None)
        ]
