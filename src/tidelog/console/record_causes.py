"""Causes that lie in the next record, in the history of its log, and in the time that is left until it is removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidelog.client.calls import Partition
from tidelog.console.group_facts import REBALANCING, GroupFacts, PartitionFacts
from tidelog.console.next_record import FRAMED, JSON, NextRecord
from tidelog.console.quoting import word
from tidelog.console.verdict import Finding
from tidelog.console.wording import count, each_line, span

USUAL_FETCH: Final = 1_048_576
"""Bytes of max.partition.fetch.bytes by default, of Java's clients and of librdkafka."""
ALIKE: Final = 3
"""Records before the next one that have to be of one kind, for another kind to say something."""
LAST_TENTH: Final = 10


def behind_high_watermark(facts: GroupFacts) -> Finding | None:
    """P3: written, and not readable yet."""
    found = {
        at: part
        for at, part in facts.last.partitions.items()
        if part.log_end is not None
        and part.end is not None
        and part.log_end > part.end
        and part.end == facts.before(at).end
        and (facts.before(at).log_end or 0) > part.end
    }
    if not found:
        return None
    return Finding(
        "P3",
        f"records of {count(found, 'partition')} cannot be read yet: a follower in sync does not fetch them",
        each_line(
            found,
            lambda part: (
                f"high watermark {part.end} at both looks, the leader's log ends at {part.log_end}; in sync "
                + ", ".join(map(str, part.in_sync))
            ),
        ),
        "Readers end at the high watermark, which waits for each replica in sync. The leader drops a follower that stays "
        "behind for replica.lag.time.max.ms; look at the brokers of the in-sync replicas that do not lead.",
        "tidelog topics --describe --under-replicated-partitions",
    )


def soon_removed(facts: GroupFacts) -> Finding | None:
    """P6: retention removes the next record before the group gets there, as it goes on now."""
    left: dict[Partition, float] = {}
    for at, part in facts.last.partitions.items():
        now, then = _left_ms(part, facts.last.at_ms), _left_ms(facts.before(at), facts.first.at_ms)
        if now is None or then is None or not part.lag or not facts.before(at).lag or part.retention_ms is None:
            continue
        if now * LAST_TENTH <= part.retention_ms and now < then:
            left[at] = now
    if not left:
        return None
    found = {at: facts.last.partitions[at] for at in left}

    def text(part: PartitionFacts) -> str:
        remaining = _left_ms(part, facts.last.at_ms) or 0
        when = f"in {span(remaining / 1000)}" if remaining > 0 else "at any moment"
        return f"committed {part.committed}, {part.lag} records behind; retention.ms {part.retention_ms} ends {when}"

    topic = min(found)[0]
    return Finding(
        "P6",
        f"retention removes records of {count(found, 'partition')} before they are read",
        each_line(found, text),
        "Whole segments are removed, so it may take longer. Raise retention.ms now, and lower it when the group has caught up.",
        f"tidelog configs --alter --topic {word(topic)} --add-config retention.ms={2 * (found[min(found)].retention_ms or 0)}",
    )


def _left_ms(part: PartitionFacts, now_ms: int) -> float | None:
    if part.next is None or part.next.timestamp_ms < 0 or part.retention_ms is None or part.retention_ms < 0:
        return None
    return part.next.timestamp_ms + part.retention_ms - now_ms


def other_history(facts: GroupFacts) -> Finding | None:
    """P7: the log that the group has read is not the one that is there."""
    found = {
        at: part
        for at, part in facts.last.partitions.items()
        if part.epoch_end is not None and part.committed is not None and part.epoch_end[1] < part.committed
    }
    if not found:
        return None
    return Finding(
        "P7",
        f"the log of {count(found, 'partition')} has another history than the group has read",
        each_line(
            found,
            lambda part: (
                f"committed {part.committed} in leader epoch {part.committed_epoch}, which ended at "
                f"{(part.epoch_end or (0, 0))[1]}; the log ends at {part.end}"
            ),
        ),
        "A leader was elected that lacked records (an unclean election), or a backup was restored: what the group has read from "
        "there on was lost, and other records have their offsets. Consumers that know epochs fail with a truncated log or go "
        "back; choose the place: the end of that epoch repeats nothing and leaves nothing out.",
        f"tidelog consumer-groups --reset-offsets --group {word(facts.group_id)} --topic {word(min(found)[0])} --to-offset "
        f"{(found[min(found)].epoch_end or (0, 0))[1]} --dry-run",
    )


def corrupt(facts: GroupFacts) -> Finding | None:
    """P12: the next batch cannot be read."""
    found = _stuck(facts, lambda record: record.corrupt is not None)
    if not found:
        return None
    return Finding(
        "P12",
        f"the next batch of {count(found, 'partition')} cannot be read",
        each_line(found, lambda part: f"offset {_next(part).offset}: {_next(part).corrupt}"),
        "The bytes on the leader's disk are damaged. Another replica may have them whole: make its broker the leader. A node "
        "with the scrub on repairs it from there. Without one, the records are lost: move the offset past the batch.",
        f"tidelog topics --describe --topic {word(min(found)[0])}",
    )


def schema_missing(facts: GroupFacts) -> Finding | None:
    """P11: no registry entry for the next record."""
    found = _stuck(facts, lambda record: record.schema_missing)
    if not found:
        return None
    return Finding(
        "P11",
        f"the schema of the next record of {count(found, 'partition')} is not in the registry",
        each_line(found, lambda part: f"offset {_next(part).offset}: schema id {_next(part).schema_id}"),
        "Its producer registered it elsewhere, or it was deleted for good. Import it with its id (mode IMPORT), or move the "
        "offset past the record.",
        _past(facts, *min(found.items())),
    )


def poison(facts: GroupFacts) -> Finding | None:
    """P10: the group stands at a record that is unlike those before it."""

    def unlike(record: NextRecord) -> bool:
        alike = set(record.before[-ALIKE:])
        return len(record.before) >= ALIKE and len(alike) == 1 and alike <= {JSON, FRAMED} and record.kind not in alike

    found = _stuck(facts, lambda record: bool(record.kind) and unlike(record))
    if not found:
        return None
    return Finding(
        "P10",
        f"the group stands at a record of {count(found, 'partition')} that is unlike those before it",
        each_line(
            found,
            lambda part: (
                f"offset {_next(part).offset} is {_next(part).kind}, the {len(_next(part).before)} records before it "
                f"are {_next(part).before[-1]}; committed {part.committed} at both looks"
            ),
        ),
        "A consumer that cannot decode it tries again for ever, or dies and is started again. Its log has the decoder's error. "
        "Send the record to a dead-letter topic, or move the offset past it.",
        _past(facts, *min(found.items())),
        certain=False,
    )


def large_batch(facts: GroupFacts) -> Finding | None:
    """P9: the next batch is larger than clients ask for."""
    found = _stuck(facts, lambda record: record.batch_bytes > USUAL_FETCH)
    if not found:
        return None
    return Finding(
        "P9",
        f"the next batch of {count(found, 'partition')} is larger than clients ask for by default",
        each_line(
            found,
            lambda part: f"offset {_next(part).offset}, committed at both looks: a batch of {_next(part).batch_bytes} bytes",
        ),
        "Brokers send it whole (KIP-74), but a client with a lower bound of its own drops the answer and asks again: raise "
        "receive.message.max.bytes and fetch.max.bytes of librdkafka. Its limits are not visible from here.",
        certain=False,
    )


def _next(part: PartitionFacts) -> NextRecord:
    assert part.next is not None
    return part.next


def _stuck(facts: GroupFacts, odd: Callable[[NextRecord], bool]) -> dict[Partition, PartitionFacts]:
    """Partitions of members that stand at such a record."""
    if facts.last.state in REBALANCING or not facts.last.members:
        return {}
    read = {at for member in facts.last.members for at in member.assignment}
    return {
        at: part
        for at, part in facts.last.partitions.items()
        if at in read and part.next is not None and odd(part.next) and part.lag and part.committed == facts.before(at).committed
    }


def _past(facts: GroupFacts, at: Partition, part: PartitionFacts) -> str:
    where = word(f"{at[0]}:{at[1]}")
    return (
        f"tidelog consumer-groups --reset-offsets --group {word(facts.group_id)} --topic {where} --to-offset "
        f"{_next(part).offset + 1} --dry-run"
    )
