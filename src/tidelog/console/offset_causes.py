"""Causes that are seen in offsets: those of the group, of the logs and of transactions."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.client.calls import Partition
from tidelog.console.group_facts import REBALANCING, GroupFacts, MemberFacts, PartitionFacts
from tidelog.console.quoting import word
from tidelog.console.verdict import Finding
from tidelog.console.wording import SHOWN, count, each_line, span

# -- offsets ----------------------------------------------------------------------------------------------------------------


def out_of_range(facts: GroupFacts) -> Finding | None:
    below: dict[Partition, PartitionFacts] = {}
    above: dict[Partition, PartitionFacts] = {}
    for at, part in facts.last.partitions.items():
        if part.committed is None:
            continue
        if part.start is not None and part.committed < part.start:
            below[at] = part
        elif part.end is not None and part.committed > part.end:
            above[at] = part
    if not below and not above:
        return None
    lost = sum((part.start or 0) - (part.committed or 0) for part in below.values())
    texts = [
        *each_line(below, lambda part: f"committed {part.committed}, the log begins at {part.start}"),
        *each_line(above, lambda part: f"committed {part.committed}, the log ends at {part.end}"),
    ]
    return Finding(
        "P5",
        f"{count([*below, *above], 'committed offset')} outside of the log",
        tuple(texts[:SHOWN]),
        (f"Retention removed {lost} records that were not read. " if below else "")
        + ("The topic was created again, or its log was cut. " if above else "")
        + "auto.offset.reset decides where the consumer goes on; with none it fails. The command shows what it would set; "
        "--execute sets them while the group has no members.",
        f"tidelog consumer-groups --reset-offsets --group {word(facts.group_id)} --to-earliest --all-topics --dry-run",
    )


def held(facts: GroupFacts) -> Finding | None:
    """The next record of the group is the first of a transaction that was open at both looks."""
    found = {at: part for at, part in facts.last.partitions.items() if _is_held(part, facts.before(at))}
    if not found:
        return None
    at, part = next(iter(sorted(found.items())))
    holder = part.held_by
    advice, command = "An open transaction ends with its producer's commit or abort, or by its timeout.", ""
    if holder is not None and holder.transactional_id is None:
        advice = "No coordinator knows this transaction: it hangs, and nothing ends it but the command."
        command = f"tidelog transactions abort --topic {at[0]} --partition {at[1]} --start-offset {part.stable}"
    elif holder is not None:
        command = f"tidelog transactions describe --transactional-id {word(holder.transactional_id or '')}"
        if holder.started_ms is not None and holder.timeout_ms is not None:
            left_s = (holder.started_ms + holder.timeout_ms - facts.last.at_ms) / 1000
            advice += f" Its coordinator aborts it in {max(0.0, left_s):.0f} s at the latest."
    return Finding(
        "P4",
        f"a transaction holds back {count(found, 'partition')}",
        each_line(found, _holder_text),
        advice + " Only readers with isolation.level=read_committed wait for it.",
        command,
    )


def share_held(facts: GroupFacts) -> Finding | None:
    """``held`` for a share group that reads committed records."""
    limits = facts.last.limits
    return held(facts) if limits is not None and limits.committed_only else None


def _is_held(part: PartitionFacts, before: PartitionFacts) -> bool:
    """Whether a reader of committed records waits there. One that has gone past the last stable offset does not read so; where
    that offset moves, transactions end, and the next one is open."""
    if part.stable is None or part.end is None or part.stable >= part.end or part.stable != before.stable:
        return False
    return (part.start if part.committed is None else part.committed) == part.stable


def _holder_text(part: PartitionFacts) -> str:
    holder = part.held_by
    done = "nothing committed" if part.committed is None else f"committed {part.committed}"
    text = f"{done}, last stable offset {part.stable}, high watermark {part.end}"
    if holder is None:
        return text
    who = f"producer {holder.producer_id}"
    return f"{text}: {who}, " + (
        "unknown to every coordinator" if holder.transactional_id is None else f"{holder.transactional_id}, {holder.state}"
    )


def pending(facts: GroupFacts) -> Finding | None:
    """Offsets that a transaction would set, which was open at both looks."""
    found = {
        at: part
        for at, part in facts.last.partitions.items()
        if part.pending and facts.before(at).pending and part.committed == facts.before(at).committed
    }
    if not found:
        return None
    return Finding(
        "G13",
        f"the group's offsets for {count(found, 'partition')} wait for a transaction",
        each_line(found, _progress_text),
        "A producer has sent them with a transaction that is not over. It ends with that producer's commit or abort, or by its "
        "timeout. Until then a member that joins cannot begin to read these partitions.",
        "tidelog transactions list",
    )


def _progress_text(part: PartitionFacts) -> str:
    return (
        f"nothing committed, log end {part.end}"
        if part.committed is None
        else f"committed {part.committed}, {part.lag} records behind"
    )


# -- progress ---------------------------------------------------------------------------------------------------------------


def never_commits(facts: GroupFacts) -> Finding | None:
    """A fault where records come: one that reads from the latest on has nothing to commit while nothing is written."""
    owners = _owners(facts.last.members)
    found = {
        at: part
        for at, part in facts.last.partitions.items()
        if at in owners
        and not part.pending
        and part.committed is None
        and _has_records(part)
        and not _waits(part, facts.before(at))
    }
    if not found or facts.last.state in REBALANCING:
        return None
    written = {at: part for at, part in found.items() if (part.end or 0) > (facts.before(at).end or 0)}
    if not written:
        return Finding(
            "G12",
            f"the group committed no offset for {count(found, 'partition')}, and nothing was written there meanwhile",
            each_line(found, lambda part: f"offsets {part.start} to {part.end}"),
            "With auto.offset.reset=latest there is nothing to commit yet. With earliest the group has not finished its first "
            "batch, or never commits: its log says so.",
            alarm=False,
            certain=False,
        )
    return Finding(
        "G12",
        f"the group never committed an offset for {count(written, 'partition')} that it reads",
        each_line(written, lambda part: f"offsets {part.start} to {part.end}"),
        "Set enable.auto.commit=true, or call commit in the application. Until then a restart begins where "
        "auto.offset.reset says. A group that just started has not committed either.",
    )


def _has_records(part: PartitionFacts) -> bool:
    return part.end is not None and part.start is not None and part.end > part.start


def stands(facts: GroupFacts) -> Finding | None:
    """Members have partitions with a lag, and nothing moved."""
    found = _behind(facts)
    stuck = {
        at: part
        for at, part in found.items()
        if part.committed == facts.before(at).committed and not _waits(part, facts.before(at))
    }
    if not stuck or facts.last.state in REBALANCING:
        return None
    owners = _owners(facts.last.members)
    names = sorted({owners[at].name for at in stuck})
    return Finding(
        "G4",
        f"a consumer commits nothing for {count(stuck, 'partition')} with records",
        (
            *each_line(stuck, lambda part: f"committed {part.committed}, {part.lag} records behind"),
            f"watched {facts.seconds:.0f} s; read by {', '.join(names[:SHOWN])}",
        ),
        "It does not poll, works on one batch for long, stopped at a record that it cannot read, or commits seldom. Watch longer "
        "than its commit interval (--seconds); then look into its log: max.poll.interval.ms, errors of deserializers.",
        f"tidelog consumer-groups --describe --group {word(facts.group_id)}",
    )


def slower(facts: GroupFacts) -> Finding | None:
    """What was there at the first look is not all read at the second. Every reader is some records behind, between its commits
    and while a transaction is open."""
    moving = {at: part for at, part in _behind(facts).items() if _moves_behind(part, facts.before(at))}
    if not moving:
        return None
    read = sum((part.committed or 0) - (facts.before(at).committed or 0) for at, part in moving.items()) / facts.seconds
    ends = {at: facts.before(at).end for at in moving}
    written = sum((part.end or 0) - (ends[at] or 0) for at, part in moving.items() if ends[at] is not None) / facts.seconds
    lag = sum(part.lag for part in moving.values())
    evidence = (f"{lag} records behind, {read:.1f} records/s read, {written:.1f} records/s written, over {facts.seconds:.0f} s",)
    if read > written:
        return Finding(
            "R2",
            f"the group catches up: in about {span(lag / (read - written))}",
            evidence,
            "Nothing to do, if the rates stay.",
            alarm=False,
        )
    return Finding(
        "R1",
        "the group reads more slowly than producers write",
        evidence,
        "At these rates it never catches up. Add members up to the number of partitions, add partitions, or make its "
        "work faster.",
        f"tidelog consumer-groups --describe --group {word(facts.group_id)}",
    )


def _moves_behind(part: PartitionFacts, before: PartitionFacts) -> bool:
    committed, there = part.committed or 0, before.end if before.stable is None else before.stable
    return committed > (before.committed or 0) and (there is None or committed < there)


# -- helpers ----------------------------------------------------------------------------------------------------------------


def _owners(members: Iterable[MemberFacts]) -> dict[Partition, MemberFacts]:
    return {at: member for member in members for at in member.assignment}


def _behind(facts: GroupFacts) -> dict[Partition, PartitionFacts]:
    """Partitions that a member reads and whose lag was there at both instants."""
    owners = _owners(facts.last.members)
    return {at: part for at, part in facts.last.partitions.items() if at in owners and part.lag and facts.before(at).lag}


def _waits(part: PartitionFacts, before: PartitionFacts) -> bool:
    """Whether something above explains that nothing moves."""
    if part.leader < 0 or _is_held(part, before) or (part.pending and before.pending):
        return True
    return part.committed is not None and part.start is not None and part.committed < part.start
