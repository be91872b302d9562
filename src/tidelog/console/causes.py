"""The causes for which a group makes no progress, in the order in which they count, each decided from its evidence
alone.

A cause higher up explains those below it: a partition without a leader also has a consumer that does not advance. So the first
alarm is the primary cause, and at most two more are named beside it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Final

from tidelog.client.calls import Partition
from tidelog.console.denied import denied
from tidelog.console.group_facts import EMPTY, REBALANCING, SHARE, STREAMS, GroupFacts
from tidelog.console.offset_causes import held, never_commits, out_of_range, pending, share_held, slower, stands
from tidelog.console.quoting import word
from tidelog.console.record_causes import (
    behind_high_watermark,
    corrupt,
    large_batch,
    other_history,
    poison,
    schema_missing,
    soon_removed,
)
from tidelog.console.share_causes import (
    begins_at_latest,
    full_group,
    head_blocked,
    locks_time_out,
    locks_used_up,
    near_the_limit,
    nothing_finished,
    share_rate,
    state_missing,
)
from tidelog.console.streams_causes import not_ready
from tidelog.console.traffic_causes import busy_leader, fenced, paused, refused_commits, throttled
from tidelog.console.verdict import Finding, Verdict
from tidelog.console.wording import SHOWN, count, each_line, named, numbers, partitions_text

Check = Callable[[GroupFacts], Finding | None]


def diagnose(facts: GroupFacts) -> Verdict:
    """The verdict on a group."""
    findings: list[Finding] = []
    fine: list[str] = []
    for check, what in checks_for(facts.last.protocol):
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
        unseen(facts),
    )


def checks_for(protocol: str) -> tuple[tuple[Check, str], ...]:
    """The causes of a type of group."""
    return SHARE_CHECKS if protocol == SHARE else STREAMS_CHECKS if protocol == STREAMS else CHECKS


def unseen(facts: GroupFacts) -> tuple[str, ...]:
    """What was not looked at, because no request or no page that was read tells it."""
    last = facts.last
    if last.protocol != SHARE:
        seen = bool(last.nodes) and all(node.metrics is not None for node in last.nodes)
        return (*(each for each in UNSEEN if not seen or each is not METRICS), *last.unread)
    seen = all(part.share.leader_seen for part in last.partitions.values() if part.share is not None)
    return (*(() if seen else (WINDOWS,)), WORKERS, UNSEEN[1], *last.unread)


# -- the coordinator and the partitions -------------------------------------------------------------------------------------


def _coordinator(facts: GroupFacts) -> Finding | None:
    error = facts.last.coordinator_error
    if error is None:
        return None
    if facts.last.no_offsets_topic:
        return Finding(
            "G10",
            "the group has no coordinator, because there is no __consumer_offsets",
            (f"{error}, for {facts.seconds:.0f} s; the topic cannot be seen",),
            "Brokers create it for the first group, but not while offsets.topic.replication.factor (3 by default) is more than "
            "the number of brokers: set it lower on each, or start more. The brokers' logs say why it was not created. A user "
            "without DESCRIBE on the topic sees the same.",
            "tidelog broker-api-versions",
        )
    down = facts.last.leaderless_offsets
    lost = (f"partitions of __consumer_offsets without a leader: {numbers(down[:SHOWN])}",) if down else ()
    return Finding(
        "G10",
        "the group's coordinator does not answer",
        (f"{error}, for {facts.seconds:.0f} s", *lost),
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
        f"{count(found, 'partition')} without a leader",
        each_line(found, lambda part: f"replicas {numbers(part.replicas)}, in sync {numbers(part.in_sync)}"),
        f"Start {f'broker {brokers[0]}' if len(brokers) == 1 else f'one of the brokers {numbers(brokers)}'}: one that was in "
        "sync leads at once. An unclean election loses what only others have.",
        "tidelog topics --describe --unavailable-partitions",
    )


def _unreachable(facts: GroupFacts) -> Finding | None:
    found = {at: part for at, part in facts.last.partitions.items() if part.unreachable and facts.before(at).unreachable}
    if not found:
        return None
    return Finding(
        "R7",
        f"the leader of {count(found, 'partition')} cannot be reached at its advertised address",
        each_line(found, lambda part: f"broker {part.leader}: {part.unreachable}"),
        "Seen from here, and clients get the same address: correct advertised.listeners of that broker, or what is between "
        "it and the clients. A broker that died a moment ago looks the same until another one leads.",
        "tidelog broker-api-versions",
    )


def _under_min_isr(facts: GroupFacts) -> Finding | None:
    found = {at: each for at, each in facts.last.partitions.items() if each.leader >= 0 and len(each.in_sync) < each.min_in_sync}
    if not found:
        return None
    return Finding(
        "P2",
        f"nothing can be written with acks=all to {count(found, 'partition')}",
        each_line(found, lambda part: f"in sync {numbers(part.in_sync)}, min.insync.replicas {part.min_in_sync}"),
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
            f"no protocol, no members, {count(last.partitions, 'partition')} with offsets, {count(moved, 'offset')} "
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
    what, kept = (
        ("start", "A share group never expires.")
        if last.protocol == SHARE
        else ("committed", "Offsets of an empty group are removed after offsets.retention.minutes.")
    )
    return Finding(
        "G1",
        "the group has no members",
        (f"state {last.state}, {count(last.partitions, 'partition')} with {what} offsets, {lag} records behind",),
        f"Start the application. {kept}",
        alarm=lag > 0,
    )


def _rebalancing(facts: GroupFacts) -> Finding | None:
    first, last = facts.first, facts.last
    if last.state not in REBALANCING or first.state not in REBALANCING:
        return None
    if last.epoch is not None and last.epoch == first.epoch and _revocation(facts) is not None:
        return None  # one rebalance, which waits for the member that is named
    epochs = "" if first.epoch is None or last.epoch is None else f", group epoch {first.epoch} to {last.epoch}"
    return Finding(
        "G3",
        "the group rebalances and does not finish",
        (f"{first.state}, and {last.state} {facts.seconds:.0f} s later{epochs}", *named(last.members)),
        "A member that joins, leaves or does not poll in time begins a new rebalance. Give members a group.instance.id, raise "
        "session.timeout.ms or max.poll.interval.ms, or use group.protocol=consumer, where others read on meanwhile.",
        f"tidelog consumer-groups --describe --group {word(facts.group_id)} --members --verbose",
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
        tuple(f"{member.name} still has {partitions_text(kept)}" for member, kept in stuck[:SHOWN]),
        "It gives them up with its next heartbeat after its current batch. One that is stuck in its own work is removed "
        "after its rebalance timeout.",
        f"tidelog consumer-groups --describe --group {word(facts.group_id)} --members --verbose",
    )


def _idle_members(facts: GroupFacts) -> Finding | None:
    last = facts.last
    idle = [member for member in last.members if not member.assignment and not member.target]
    if not idle or len(idle) == len(last.members) or last.state in REBALANCING:
        return None
    return Finding(
        "G7",
        f"{count(idle, 'member')} without a partition",
        named(idle),
        "There are more members than partitions: they are spare. Add partitions, or stop some.",
        alarm=False,
    )


def _missing_topic(facts: GroupFacts) -> Finding | None:
    last = facts.last
    wanted = {topic for member in last.members for topic in member.subscription}
    missing = sorted(wanted & last.missing_topics)
    unmatched = [member for member in last.members if member.pattern and not member.assignment and not member.target]
    if missing:
        near = [(name, difflib.get_close_matches(name, last.topics, 1)) for name in missing[:SHOWN]]
        texts = [f"{name} does not exist" + (f"; there is {close[0]}" if close else "") for name, close in near]
        return Finding(
            "G8",
            f"the group subscribes to {count(missing, 'topic')} that cannot be seen",
            tuple(texts),
            "Create it, or correct the name in the application. A topic without DESCRIBE for its reader looks the same.",
            f"tidelog topics --create --topic {word(missing[0])}",
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
        f"offsets of {count(gone, 'topic')} that no longer exist",
        tuple(gone[:SHOWN]),
        "The offsets are removed with time, or at once with the command.",
        f"tidelog consumer-groups --delete-offsets --group {word(facts.group_id)} --topic {word(gone[0])}",
        alarm=False,
    )


CHECKS: Final[tuple[tuple[Check, str], ...]] = (
    (denied, "the audit, where it can be read, has no denial of the last minute for the group"),
    (_coordinator, "the coordinator answers"),
    (_leaderless, "each partition has a leader"),
    (_unreachable, "each leader can be reached from here"),
    (_under_min_isr, "each partition has min.insync.replicas"),
    (behind_high_watermark, "what is written can be read"),
    (_manual, "the coordinator knows the consumers"),
    (_no_members, "the group has members, or nothing to read"),
    (fenced, "no processes share a group.instance.id"),
    (_missing_topic, "each topic of the subscription exists"),
    (_deleted_topic, "each topic with offsets exists"),
    (_rebalancing, "the group is not rebalancing all the time"),
    (_revocation, "no member keeps partitions that are meant for others"),
    (_idle_members, "each member has partitions"),
    (refused_commits, "no consumer outside of the group reads for it, as far as metrics were read"),
    (other_history, "committed offsets are of the logs' own history"),
    (out_of_range, "committed offsets lie inside of the logs"),
    (soon_removed, "retention removes nothing that is read soon"),
    (held, "no transaction holds back what is to be read"),
    (pending, "no transaction holds back what was committed"),
    (throttled, "no quota throttles it, as far as metrics were read"),
    (corrupt, "the next batches can be read"),
    (schema_missing, "no next record lacks its schema, as far as a registry was asked"),
    (poison, "no next record is unlike those before it"),
    (large_batch, "no next batch is larger than clients ask for"),
    (paused, "each member fetches all that it has, as far as metrics were read"),
    (never_commits, "offsets are committed for each partition that is read"),
    (stands, "each partition with a lag moves, or is held by what is named"),
    (busy_leader, "the leaders have time left, as far as their pages were read"),
    (slower, "reading keeps up with writing"),
)
"""Each cause, in the order of docs/internals/diagnosis.md, and what is fine when it was not found."""
HEALTH: Final = 6
"""The first of them are about the coordinator and the partitions, which groups of all types have."""
STREAMS_CHECKS: Final[tuple[tuple[Check, str], ...]] = (
    *CHECKS[:HEALTH],
    (not_ready, "the topology has its topics, and each member runs it"),
    *CHECKS[HEALTH:],
)
SHARE_CHECKS: Final[tuple[tuple[Check, str], ...]] = (
    *CHECKS[:HEALTH],
    (state_missing, "the state of the share group can be stored"),
    (_no_members, "the group has members, or nothing to read"),
    (full_group, "further workers may join"),
    (_missing_topic, "each topic of the subscription exists"),
    (begins_at_latest, "the group began before the records, or has finished some"),
    (share_held, "no transaction holds back what is to be delivered"),
    (locks_used_up, "no window is full"),
    (locks_time_out, "no locks time out"),
    (near_the_limit, "no first record is near the limit of deliveries"),
    (head_blocked, "no record holds back a start offset"),
    (nothing_finished, "each partition with a lag moves"),
    (share_rate, "the group keeps up with writing"),
)
METRICS: Final = "throttling by quotas and partitions that are not fetched: the nodes' metrics say so; name them with --endpoint"
UNSEEN: Final = (
    "whether a consumer polls, pauses partitions, or fails to decode a record: its own log says so",
    "ACL denials of the members: their log or the audit of the brokers says so",
    METRICS,
)
WORKERS: Final = "what a worker does with the records that it has: its own log says so"
WINDOWS: Final = "who holds records and what is in flight: only the partitions' leaders know; name their pages with --endpoint"


def _advanced(facts: GroupFacts) -> list[Partition]:
    return [at for at, part in facts.last.partitions.items() if (part.committed or 0) > (facts.before(at).committed or 0)]
