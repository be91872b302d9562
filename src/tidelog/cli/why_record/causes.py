"""Decides from the facts why a record of a share group is not delivered, or what became of it. Pure.

The causes are looked at in this order: the log, then what the group has decided about the record, then what keeps back a record
that could be delivered. The first one that holds is the answer; two more may stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidelog.cli.why_record.facts import RecordFacts
from tidelog.console.verdict import Finding
from tidelog.dead_letters.letter import UNKNOWN

DESCRIBE: Final = "tidelog share-groups --describe --group {group}"
MEMBERS: Final = DESCRIBE + " --members"
BESIDE: Final = 2
"""Causes that are named beside the first one."""


@dataclass(frozen=True, slots=True)
class RecordVerdict:
    """The answer. ``state``: what the record is for the group."""

    facts: RecordFacts
    state: str
    primary: Finding
    contributing: tuple[Finding, ...] = ()

    def as_json(self) -> Mapping[str, Any]:
        """For programs; the keys stay."""
        facts = self.facts
        return {
            "group": facts.group,
            "topic": facts.topic,
            "partition": facts.partition,
            "offset": facts.offset,
            "state": self.state,
            "primary": _json(self.primary),
            "contributing": [_json(each) for each in self.contributing],
            "not_visible": list(facts.unseen),
        }


def _json(finding: Finding) -> dict[str, Any]:
    return {
        "cause": finding.cause,
        "title": finding.title,
        "evidence": list(finding.evidence),
        "advice": finding.advice,
        "command": finding.command or None,
        "alarm": finding.alarm,
        "certain": finding.certain,
    }


def decide(facts: RecordFacts) -> RecordVerdict:
    """The verdict on a record."""
    for check, state in ((_in_log, "no record"), (_finished, "finished"), (_in_hands, "in flight")):
        found = check(facts)
        if found is not None:
            return RecordVerdict(facts, state, found)
    kept = list(_kept_back(facts))
    state = "available" if facts.range is not None else "not delivered yet"
    return RecordVerdict(facts, state, kept[0], tuple(kept[1 : 1 + BESIDE]))


# -- the log ----------------------------------------------------------------------------------------------------------------


def _in_log(facts: RecordFacts) -> Finding | None:
    log, offset = facts.log, facts.offset
    ends = f"the partition has offsets {log.first_offset} to {log.high_watermark - 1}"
    if offset >= log.high_watermark:
        return Finding(
            "not-written",
            "there is no record with this offset yet",
            (ends,),
            "Records are delivered once all in-sync replicas have them. The offset may be of another partition.",
            "tidelog get-offsets --topic " + facts.topic,
            alarm=False,
        )
    if offset < log.first_offset:
        return Finding(
            "deleted",
            "the log does not have the record any more",
            (ends,),
            "Retention or delete-records removed it. If the group had not finished it, it is lost to the group: keep records "
            "longer (retention.ms, retention.bytes).",
            f"tidelog configs --describe --topic {facts.topic}",
            alarm=facts.start is None or offset >= facts.start,
        )
    if log.control:
        return Finding(
            "control-record",
            "the offset holds the end of a transaction, which no member gets",
            (),
            "Such a record has no value; the group passes over it.",
            alarm=False,
        )
    if log.exists is False:
        return Finding(
            "compacted",
            "there is no record with this offset: the log was compacted, or a transaction left a gap",
            (ends,),
            "The group passes over such offsets.",
            alarm=False,
        )
    if log.aborted and facts.settings.committed_only:
        return Finding(
            "aborted",
            "the transaction of the record was aborted",
            ("share.isolation.level of the group is read_committed",),
            "Such records are never delivered. With read_uncommitted they are.",
            alarm=False,
        )
    return None


# -- what the group has decided ---------------------------------------------------------------------------------------------


def _finished(facts: RecordFacts) -> Finding | None:
    known, start = facts.range, facts.start
    below = start is not None and facts.offset < start
    state = None if known is None else known["state"]
    if not below and (known is None or state not in {"acknowledged", "archived"} or known.get("persisting")):
        return None
    if facts.letter is not None:
        return _dead_lettered(facts)
    where = f"the group's start offset is {start}" if below else f"the group has finished it, before offset {start}"
    if state == "acknowledged":
        return Finding("acknowledged", "a member has accepted it", (where,), "It is not delivered again.", alarm=False)
    if state == "archived" and known is not None:
        return Finding(
            "given-up",
            "the group has given it up",
            (f"deliveries: {known['delivery_count']} of {facts.settings.delivery_limit}", where),
            "It was rejected, or delivered as often as the group allows; the end of a transaction and a record of an aborted one "
            "are given up, too. " + _queue_advice(facts),
        )
    return Finding(
        "before-start",
        "the group is past it: it was accepted or given up, or the group began behind it",
        (where,),
        "What became of single records is not kept once all before them are finished. share.auto.offset.reset says where a group "
        "begins. To deliver from here on again, stop the members and move the start offset.",
        f"tidelog share-groups --group {facts.group} --reset-offsets --topic {facts.topic}:{facts.partition} --to-earliest "
        "--dry-run",
        alarm=False,
        certain=False,
    )


def _queue_advice(facts: RecordFacts) -> str:
    if facts.settings.dead_letter_topic:
        return (
            f"There is no dead letter of it in {facts.settings.dead_letter_topic}: the brokers' logs say why one was not written."
        )
    return "With a dead-letter topic the group would have kept it."


def _dead_lettered(facts: RecordFacts) -> Finding:
    assert facts.letter is not None
    topic, letter = facts.letter
    place = f"{topic}:{letter.partition}:{letter.offset}"
    count = "unknown" if letter.delivery_count is None else str(letter.delivery_count)
    return Finding(
        "dead-lettered",
        f"the group has given it up; its dead letter is {place}",
        (f"reason: {letter.reason or UNKNOWN}", f"deliveries: {count}"),
        "It is not delivered again unless it is replayed.",
        f"tidelog share-groups dead-letters show {place}",
    )


def _in_hands(facts: RecordFacts) -> Finding | None:
    """A member has it, or the group is about to store what became of it."""
    known = facts.range
    if known is None:
        return None
    count = f"delivery {known['delivery_count']} of {facts.settings.delivery_limit}"
    if known["state"] == "archiving":
        return Finding(
            "being-buried",
            "the group gives it up, and its dead letter is being written",
            (count, f"the dead-letter topic is {facts.settings.dead_letter_topic or 'not set any more'}"),
            "It holds the start offset until then. If that takes longer than half a minute, look at the log of the partition's "
            "leader.",
        )
    if known["state"] == "acquired":
        return Finding(
            "acquired",
            f"{facts.holder(known['member'])} has it for {known['lock_left_ms'] / 1000:.1f} s more",
            (count, f"it holds offsets {known['first']} to {known['last']}"),
            "If the member does not acknowledge it in time, it is delivered again" + _last_chance(facts, known) + ".",
            MEMBERS.format(group=facts.group),
            alarm=False,
        )
    if known.get("persisting"):
        return Finding(
            "being-stored",
            f"it was acknowledged, and that is being stored; it will be {known['state']}",
            (count,),
            "If that lasts, the share coordinator does not answer: see whether __share_group_state has leaders and enough "
            "replicas in sync.",
            "tidelog topics --describe --topic __share_group_state --unavailable-partitions",
            alarm=False,
        )
    return None


def _last_chance(facts: RecordFacts, known: Mapping[str, Any]) -> str:
    return ", but this was the last time: it is given up then" if known["delivery_count"] >= facts.settings.delivery_limit else ""


# -- what keeps it back -----------------------------------------------------------------------------------------------------


def _kept_back(facts: RecordFacts) -> Iterator[Finding]:
    """The causes for which a record that could be delivered is not, the first one that explains the others first."""
    for check in (_group, _subscription, _transaction, _leader, _window):
        found = check(facts)
        if found is not None:
            yield found
    yield _waits(facts)


def _group(facts: RecordFacts) -> Finding | None:
    if facts.state is None:
        return Finding(
            "no-group",
            f"there is no share group {facts.group}",
            (),
            "The first member makes it. With share.auto.offset.reset=latest, its default, the group does not get what was "
            "written before.",
            "tidelog share-groups --list",
        )
    if not facts.members:
        return Finding(
            "no-members",
            "the group has no members",
            (f"its state is {facts.state}",),
            "Start its workers.",
            DESCRIBE.format(group=facts.group) + " --state",
        )
    return None


def _subscription(facts: RecordFacts) -> Finding | None:
    if not facts.members:
        return None
    topics = sorted({topic for member in facts.members for topic in member.topics})
    if facts.topic not in topics:
        return Finding(
            "not-subscribed",
            f"none of its {len(facts.members)} members subscribes to {facts.topic}",
            ("they subscribe to " + (", ".join(topics[:10]) or "nothing"),),
            "Subscribe its workers to the topic.",
            MEMBERS.format(group=facts.group),
        )
    if any((facts.topic, facts.partition) in member.assignment for member in facts.members):
        return None
    if not facts.initialized:
        return Finding(
            "not-initialized",
            "the share coordinator has no state of the partition yet",
            ("partitions are assigned once they have one; that takes a heartbeat or two",),
            "If that lasts, __share_group_state cannot be created or written: a broker's log says why, and "
            "share.coordinator.state.topic.replication.factor must not exceed the number of brokers.",
            "tidelog topics --describe --topic __share_group_state",
        )
    return Finding(
        "not-assigned",
        "the partition is assigned to no member",
        (f"{len(facts.members)} members, {len(topics)} topics",),
        "A new assignment takes a heartbeat of each member (share.heartbeat.interval.ms, 5 s). What a killed worker had is "
        "assigned to others when its session is over (share.session.timeout.ms, 45 s).",
        MEMBERS.format(group=facts.group),
    )


def _transaction(facts: RecordFacts) -> Finding | None:
    if not facts.settings.committed_only or facts.offset < facts.log.last_stable_offset:
        return None
    return Finding(
        "open-transaction",
        "a transaction that is open keeps it back",
        (f"the last stable offset is {facts.log.last_stable_offset}", "share.isolation.level of the group is read_committed"),
        "It is delivered when the transaction has ended, unless that is aborted. One that hangs can be ended by force.",
        f"tidelog transactions find-hanging --topic {facts.topic}",
    )


def _leader(facts: RecordFacts) -> Finding | None:
    if facts.leader is None or not facts.members:
        return None
    share = facts.leader["share"]
    if share is None:
        return Finding(
            "not-fetched",
            "no member fetches from the partition",
            ("its leader serves no session of the group",),
            "Members that have just started, or are at work on other records and do not poll, do not fetch. Otherwise look at "
            "their logs: they may not reach the leader.",
            MEMBERS.format(group=facts.group),
        )
    if share["phase"] != "active":
        return Finding(
            "not-loaded",
            "the leader has not loaded the state of the partition",
            (f"it is {share['phase']}", *((f"error: {share['error']}",) if share["error"] else ())),
            "The next fetch tries again. If that lasts, the share coordinator does not answer, or "
            "share.auto.offset.reset=by_duration finds no record that is late enough.",
            "tidelog topics --describe --topic __share_group_state --unavailable-partitions",
        )
    return None


def _window(facts: RecordFacts) -> Finding | None:
    share, limit = facts.share, facts.settings.max_locks
    if share is None or facts.offset <= share["end_offset"]:
        return None
    if share["in_flight"] < limit and facts.offset < share["start_offset"] + limit:
        return None
    full = share["in_flight"] >= limit
    first = share["first"]
    evidence = [
        f"offsets {share['start_offset']} to {share['end_offset']} are in flight, {share['in_flight']} of {limit} "
        "(share.partition.max.record.locks)"
    ]
    if first is not None:
        held = ""
        if first["member"] is not None:
            held = f", held by {facts.holder(first['member'])} for {first['lock_left_ms'] / 1000:.1f} s more"
        evidence.append(f"the first, {share['start_offset']}, is {first['state']}{held}")
    return Finding(
        "window",
        f"{facts.offset - share['end_offset'] - 1} records before it have not been delivered, "
        + ("and the window of the partition is full" if full else "more than the window has room for"),
        tuple(evidence),
        "The window moves when its first record is finished. Finish or reject that one, or raise the limit.",
        f"tidelog configs --alter --group {facts.group} --add-config share.partition.max.record.locks=4000",
        alarm=full,
    )


def _waits(facts: RecordFacts) -> Finding:
    known = facts.range
    if known is not None:
        title = "it is available, and goes to the next member that fetches"
        evidence = [f"deliveries so far: {known['delivery_count']} of {facts.settings.delivery_limit}"]
    else:
        title = "it was not delivered yet, and goes to a member after the records before it"
        end = facts.share["end_offset"] if facts.share is not None else None
        evidence = [] if end is None else [f"the last record that was delivered is {end}"]
    if facts.start is not None:
        evidence.append(f"the group's start offset is {facts.start}")
    return Finding(
        "waits",
        title,
        tuple(evidence),
        "More workers, or faster ones, make the queue shorter.",
        DESCRIBE.format(group=facts.group),
        alarm=False,
        certain=facts.leader is not None,
    )
