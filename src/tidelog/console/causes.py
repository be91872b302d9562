"""The causes for which a consumer group makes no progress, in the order in which they count, each decided from its evidence
alone.

A cause higher up explains those below it: a partition without a leader also has a consumer that does not advance. So the first
alarm is the primary cause, and at most two more are named beside it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from tidelog.client.calls import Partition
from tidelog.console.group_facts import EMPTY, REBALANCING, GroupFacts, MemberFacts, PartitionFacts
from tidelog.console.verdict import Finding, Verdict

SHOWN: Final = 5
"""Partitions or members of one finding that are named."""
Check = Callable[[GroupFacts], Finding | None]


def diagnose(facts: GroupFacts) -> Verdict:
    """The verdict on a group."""
    findings: list[Finding] = []
    fine: list[str] = []
    for check, what in CHECKS:
        found = check(facts)
        if found is not None:
            findings.append(found)
        elif facts.last.coordinator_error is None:
            fine.append(what)
        if found is not None and found.cause == "G10" and facts.last.coordinator_error is not None:
            break  # nothing else is known
    alarms = [each for each in findings if each.alarm]
    return Verdict(
        facts.group_id,
        facts.last.state,
        sum(each.lag for each in facts.last.partitions.values()),
        facts.seconds,
        alarms[0] if alarms else None,
        tuple(alarms[1:3]),
        tuple(each for each in findings if not each.alarm),
        tuple(fine),
        UNSEEN,
    )


# -- the coordinator and the partitions -------------------------------------------------------------------------------------


def _coordinator(facts: GroupFacts) -> Finding | None:
    error = facts.last.coordinator_error
    if error is None:
        return None
    return Finding(
        "G10",
        "the group's coordinator does not answer",
        (f"{error}, for {facts.seconds:.0f} s",),
        "The partition of __consumer_offsets that holds the group has no leader that works, or its leader is loading. "
        "Members can neither join nor commit until it has one.",
        "tidelog topics --describe --topic __consumer_offsets --unavailable-partitions",
    )


def _leaderless(facts: GroupFacts) -> Finding | None:
    found = {at: each for at, each in facts.last.partitions.items() if each.leader < 0}
    if not found:
        return None
    brokers = sorted({broker for each in found.values() for broker in each.replicas})
    return Finding(
        "P1",
        f"{_count(found, 'partition')} without a leader",
        _each(found, lambda part: f"replicas {_numbers(part.replicas)}, in sync {_numbers(part.in_sync)}"),
        f"Start one of the brokers {_numbers(brokers)} that is in sync. An unclean election loses what only they have.",
        "tidelog topics --describe --unavailable-partitions",
    )


def _under_min_isr(facts: GroupFacts) -> Finding | None:
    found = {at: each for at, each in facts.last.partitions.items() if each.leader >= 0 and len(each.in_sync) < each.min_in_sync}
    if not found:
        return None
    return Finding(
        "P2",
        f"nothing can be written with acks=all to {_count(found, 'partition')}",
        _each(found, lambda part: f"in sync {_numbers(part.in_sync)}, min.insync.replicas {part.min_in_sync}"),
        "Producers get NOT_ENOUGH_REPLICAS, so there is nothing new to read. Start the brokers whose replicas are "
        "missing, or lower min.insync.replicas to the replicas that there are.",
        "tidelog topics --describe --under-min-isr-partitions",
    )


# -- the group --------------------------------------------------------------------------------------------------------------


def _manual(facts: GroupFacts) -> Finding | None:
    last = facts.last
    if last.members or last.protocol_type or last.state != EMPTY or last.protocol != "classic" or not last.partitions:
        return None
    moved = _advanced(facts)
    return Finding(
        "G2",
        "the group only stores offsets: its consumers assign partitions themselves",
        (
            f"no protocol, no members, {_count(last.partitions, 'partition')} with offsets, {_count(moved, 'offset')} "
            "moved meanwhile",
        ),
        "The coordinator does not know such consumers. Whether they run is visible only from their offsets.",
        alarm=False,
    )


def _no_members(facts: GroupFacts) -> Finding | None:
    last = facts.last
    if last.members or last.state != EMPTY or not last.protocol_type:
        return None
    lag = sum(each.lag for each in last.partitions.values())
    return Finding(
        "G1",
        "the group has no members",
        (f"state {last.state}, {_count(last.partitions, 'partition')} with committed offsets, {lag} records behind",),
        "Start the application. Offsets of an empty group are removed after offsets.retention.minutes.",
        alarm=lag > 0,
    )


def _rebalancing(facts: GroupFacts) -> Finding | None:
    first, last = facts.first, facts.last
    if last.state not in REBALANCING or first.state not in REBALANCING:
        return None
    epochs = "" if first.epoch is None or last.epoch is None else f", group epoch {first.epoch} to {last.epoch}"
    return Finding(
        "G3",
        "the group rebalances and does not finish",
        (f"{first.state}, and {last.state} {facts.seconds:.0f} s later{epochs}", *_named(last.members)),
        "A member that joins, leaves or does not poll in time begins a new rebalance. Give members a group.instance.id, raise "
        "session.timeout.ms or max.poll.interval.ms, or use group.protocol=consumer, where others read on meanwhile.",
        f"tidelog consumer-groups --describe --group {facts.group_id} --members --verbose",
    )


def _revocation(facts: GroupFacts) -> Finding | None:
    keepers = [
        (member, before.assignment & member.assignment - (member.target or frozenset()))
        for member in facts.last.members
        for before in facts.first.members
        if before.member_id == member.member_id and member.target is not None
    ]
    stuck = [(member, kept) for member, kept in keepers if kept]
    if not stuck:
        return None
    return Finding(
        "G5",
        "a member does not give up partitions that are meant for others",
        tuple(f"{member.name} still has {_partitions(kept)}" for member, kept in stuck[:SHOWN]),
        "It gives them up with its next heartbeat after its current batch. One that is stuck in its own work is removed "
        "after its rebalance timeout.",
        f"tidelog consumer-groups --describe --group {facts.group_id} --members --verbose",
    )


def _idle_members(facts: GroupFacts) -> Finding | None:
    last = facts.last
    idle = [member for member in last.members if not member.assignment and not member.target]
    if not idle or len(idle) == len(last.members) or last.state in REBALANCING:
        return None
    return Finding(
        "G7",
        f"{_count(idle, 'member')} without a partition",
        _named(idle),
        "There are more members than partitions: they are spare. Add partitions, or stop some.",
        alarm=False,
    )


def _missing_topic(facts: GroupFacts) -> Finding | None:
    last = facts.last
    wanted = {topic for member in last.members for topic in member.subscription}
    missing = sorted(wanted & last.missing_topics)
    unmatched = [member for member in last.members if member.pattern and not member.assignment and not member.target]
    if missing:
        near = [(name, difflib.get_close_matches(name, last.topics, 1)) for name in missing]
        texts = [f"{name} does not exist" + (f"; there is {close[0]}" if close else "") for name, close in near]
        return Finding(
            "G8",
            f"the group subscribes to {_count(missing, 'topic')} that cannot be seen",
            tuple(texts[:SHOWN]),
            "Create it, or correct the name in the application. A topic without DESCRIBE for its reader looks the same.",
            f"tidelog topics --create --topic {missing[0]}",
        )
    if unmatched and not any(member.assignment for member in last.members):
        return Finding(
            "G8",
            "no topic matches the subscription",
            tuple(f"{member.name}: {member.pattern}" for member in unmatched[:SHOWN]),
            "Correct the regular expression, or give its reader DESCRIBE on the topics.",
        )
    return None


def _deleted_topic(facts: GroupFacts) -> Finding | None:
    last = facts.last
    wanted = {topic for member in last.members for topic in member.subscription}
    gone = sorted(last.missing_topics - wanted)
    if not gone:
        return None
    return Finding(
        "G8",
        f"offsets of {_count(gone, 'topic')} that no longer exist",
        tuple(gone[:SHOWN]),
        "The offsets are removed with time, or at once with the command.",
        f"tidelog consumer-groups --delete-offsets --group {facts.group_id} --topic {gone[0]}",
        alarm=False,
    )


# -- offsets ----------------------------------------------------------------------------------------------------------------


def _out_of_range(facts: GroupFacts) -> Finding | None:
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
        *_each(below, lambda part: f"committed {part.committed}, the log begins at {part.start}"),
        *_each(above, lambda part: f"committed {part.committed}, the log ends at {part.end}"),
    ]
    return Finding(
        "P5",
        f"{_count([*below, *above], 'committed offset')} outside of the log",
        tuple(texts[:SHOWN]),
        (f"Retention removed {lost} records that were not read. " if below else "")
        + ("The topic was created again, or its log was cut. " if above else "")
        + "auto.offset.reset decides where the consumer goes on; with none it fails. The command shows what it would set; "
        "--execute sets them while the group has no members.",
        f"tidelog consumer-groups --reset-offsets --group {facts.group_id} --to-earliest --all-topics --dry-run",
    )


def _held(facts: GroupFacts) -> Finding | None:
    """Committed at the last stable offset, while the high watermark is further: readers of committed records wait."""
    found = {
        at: part
        for at, part in facts.last.partitions.items()
        if part.stable is not None
        and part.end is not None
        and part.committed is not None
        and part.stable <= part.committed < part.end
    }
    if not found:
        return None
    at, part = next(iter(sorted(found.items())))
    holder = part.held_by
    advice, command = "An open transaction ends with its producer's commit or abort, or by its timeout.", ""
    if holder is not None and holder.transactional_id is None:
        advice = "No coordinator knows this transaction: it hangs, and nothing ends it but the command."
        command = f"tidelog transactions abort --topic {at[0]} --partition {at[1]} --start-offset {part.stable}"
    elif holder is not None:
        command = f"tidelog transactions describe --transactional-id {holder.transactional_id}"
        if holder.started_ms is not None and holder.timeout_ms is not None:
            left_s = (holder.started_ms + holder.timeout_ms - facts.last.at_ms) / 1000
            advice += f" Its coordinator aborts it in {max(0.0, left_s):.0f} s at the latest."
    return Finding(
        "P4",
        f"a transaction holds back {_count(found, 'partition')}",
        _each(found, _holder_text),
        advice + " Only readers with isolation.level=read_committed wait for it.",
        command,
    )


def _holder_text(part: PartitionFacts) -> str:
    holder = part.held_by
    text = f"committed {part.committed}, last stable offset {part.stable}, high watermark {part.end}"
    if holder is None:
        return text
    who = f"producer {holder.producer_id}"
    return f"{text}: {who}, " + (
        "unknown to every coordinator" if holder.transactional_id is None else f"{holder.transactional_id}, {holder.state}"
    )


# -- progress ---------------------------------------------------------------------------------------------------------------


def _never_commits(facts: GroupFacts) -> Finding | None:
    owners = _owners(facts.last.members)
    found = {
        at: part
        for at, part in facts.last.partitions.items()
        if at in owners and part.committed is None and part.end is not None and part.start is not None and part.end > part.start
    }
    if not found or facts.last.state in REBALANCING:
        return None
    return Finding(
        "G12",
        f"the group never committed an offset for {_count(found, 'partition')} that it reads",
        _each(found, lambda part: f"offsets {part.start} to {part.end}"),
        "Set enable.auto.commit=true, or call commit in the application. Until then a restart begins where "
        "auto.offset.reset says. A group that just started has not committed either.",
    )


def _stands(facts: GroupFacts) -> Finding | None:
    """Members have partitions with a lag, and nothing moved."""
    found = _behind(facts)
    stuck = {at: part for at, part in found.items() if part.committed == _first(facts, at).committed and not _waits(part)}
    if not stuck or facts.last.state in REBALANCING:
        return None
    owners = _owners(facts.last.members)
    names = sorted({owners[at].name for at in stuck})
    return Finding(
        "G4",
        f"a consumer commits nothing for {_count(stuck, 'partition')} with records",
        (
            *_each(stuck, lambda part: f"committed {part.committed}, {part.lag} records behind"),
            f"watched {facts.seconds:.0f} s; read by {', '.join(names[:SHOWN])}",
        ),
        "It does not poll, works on one batch for long, stopped at a record that it cannot read, or commits seldom. Watch longer "
        "than its commit interval (--seconds); then look into its log: max.poll.interval.ms, errors of deserializers.",
        f"tidelog consumer-groups --describe --group {facts.group_id}",
    )


def _slower(facts: GroupFacts) -> Finding | None:
    moving = {at: part for at, part in _behind(facts).items() if (part.committed or 0) > (_first(facts, at).committed or 0)}
    if not moving:
        return None
    read = sum((part.committed or 0) - (_first(facts, at).committed or 0) for at, part in moving.items()) / facts.seconds
    ends = {at: _first(facts, at).end for at in moving}
    written = sum((part.end or 0) - (ends[at] or 0) for at, part in moving.items() if ends[at] is not None) / facts.seconds
    lag = sum(part.lag for part in moving.values())
    evidence = (f"{lag} records behind, {read:.1f} records/s read, {written:.1f} records/s written, over {facts.seconds:.0f} s",)
    if read > written:
        return Finding(
            "R2",
            f"the group catches up: in about {_span(lag / (read - written))}",
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
        f"tidelog consumer-groups --describe --group {facts.group_id}",
    )


CHECKS: Final[tuple[tuple[Check, str], ...]] = (
    (_coordinator, "the coordinator answers"),
    (_leaderless, "each partition has a leader"),
    (_under_min_isr, "each partition has min.insync.replicas"),
    (_manual, "the coordinator knows the consumers"),
    (_no_members, "the group has members, or nothing to read"),
    (_missing_topic, "each topic of the subscription exists"),
    (_deleted_topic, "each topic with offsets exists"),
    (_rebalancing, "the group is not rebalancing all the time"),
    (_revocation, "no member keeps partitions that are meant for others"),
    (_idle_members, "each member has partitions"),
    (_out_of_range, "committed offsets lie inside of the logs"),
    (_held, "no transaction holds back what is to be read"),
    (_never_commits, "offsets are committed for each partition that is read"),
    (_stands, "each partition with a lag moves, or is held by what is named"),
    (_slower, "reading keeps up with writing"),
)
"""Each cause, in the order of docs/internals/diagnosis.md, and what is fine when it was not found."""
UNSEEN: Final = (
    "whether a consumer polls, pauses partitions, or fails to decode a record: its own log says so",
    "ACL denials of the members: their log or the audit of the brokers says so",
    "throttling by quotas: the brokers' metrics say so (tidelog top, kafka_server_fetch_throttle_time)",
)


# -- helpers ----------------------------------------------------------------------------------------------------------------


def _owners(members: Iterable[MemberFacts]) -> dict[Partition, MemberFacts]:
    return {at: member for member in members for at in member.assignment}


def _first(facts: GroupFacts, at: Partition) -> PartitionFacts:
    return facts.first.partitions.get(at, PartitionFacts())


def _behind(facts: GroupFacts) -> dict[Partition, PartitionFacts]:
    """Partitions that a member reads and whose lag was there at both instants."""
    owners = _owners(facts.last.members)
    return {at: part for at, part in facts.last.partitions.items() if at in owners and part.lag and _first(facts, at).lag}


def _waits(part: PartitionFacts) -> bool:
    """Whether something above explains that nothing moves."""
    if part.leader < 0 or part.committed is None:
        return True
    held = part.stable is not None and part.committed >= part.stable
    return held or (part.start is not None and part.committed < part.start)


def _advanced(facts: GroupFacts) -> list[Partition]:
    return [at for at, part in facts.last.partitions.items() if (part.committed or 0) > (_first(facts, at).committed or 0)]


def _each(found: Mapping[Partition, PartitionFacts], text: Callable[[PartitionFacts], str]) -> tuple[str, ...]:
    """A line for each of the first partitions, and one for the rest."""
    lines = [f"{topic}-{index}: {text(part)}" for (topic, index), part in sorted(found.items())[:SHOWN]]
    return (*lines, f"and {len(found) - SHOWN} more") if len(found) > SHOWN else tuple(lines)


def _named(members: Iterable[MemberFacts]) -> tuple[str, ...]:
    names = sorted(member.name for member in members)
    return (*names[:SHOWN], f"and {len(names) - SHOWN} more") if len(names) > SHOWN else tuple(names)


def _partitions(found: Iterable[Partition]) -> str:
    names = [f"{topic}-{index}" for topic, index in sorted(found)]
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _numbers(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"


def _count(found: Iterable[object], what: str) -> str:
    number = len(list(found))
    return f"{number} {what}" + ("" if number == 1 else "s")


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
