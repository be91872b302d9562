"""Causes of share groups, from their start offsets, their settings, and what the leaders' pages say of their windows."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.client.calls import Partition
from tidelog.console.group_facts import ACTIVE, GroupFacts, PartitionFacts, ShareProgress, ShareWindow
from tidelog.console.node_facts import SESSIONS
from tidelog.console.quoting import word
from tidelog.console.verdict import Finding
from tidelog.console.wording import SHOWN, count, each_line, named, span

NOTHING = ShareProgress()


def state_missing(facts: GroupFacts) -> Finding | None:
    """S5: what became of records cannot be stored or loaded."""
    last = facts.last
    refused = {at: part for at, part in last.partitions.items() if _share(part).error and _share(facts.before(at)).error}
    unloaded = {
        at: part
        for at, part in last.partitions.items()
        if (window := _share(part).window) is not None
        and window.phase != ACTIVE
        and (before := _share(facts.before(at)).window) is not None
        and before.phase != ACTIVE
    }
    waiting = {
        at: part
        for at, part in last.partitions.items()
        if last.members
        and not last.missing_topics
        and not _share(part).initialized
        and at in facts.first.partitions
        and not _share(facts.before(at)).initialized
    }
    standing = {at for at, part in last.partitions.items() if part.lag and not _finished(part, facts.before(at))}
    blocked = last.state_topic_fault is not None and facts.first.state_topic_fault is not None and (waiting or standing)
    if not refused and not unloaded and not blocked:
        return None
    texts = [last.state_topic_fault] if last.state_topic_fault else []
    texts += each_line(refused, lambda part: f"the share coordinator answers {_share(part).error}")
    texts += each_line(unloaded, _phase_text)
    if blocked and waiting:
        texts += each_line(waiting, lambda part: "no state yet, so no member gets it")
    return Finding(
        "S5",
        "the state of the share group cannot be stored or loaded",
        tuple(texts[: SHOWN + 1]),
        "Without it no worker gets records, and acknowledgements are lost. Start the brokers of __share_group_state; where it "
        "does not exist, share.coordinator.state.topic.replication.factor (3 by default) may be more than the number of brokers.",
        "tidelog topics --describe --topic __share_group_state",
    )


def full_group(facts: GroupFacts) -> Finding | None:
    """S7: further workers or sessions are refused."""
    limits = facts.last.limits
    if limits is None:
        return None
    texts = []
    size = limits.max_size
    if size is not None and len(facts.last.members) >= size and len(facts.first.members) >= size:
        texts.append(f"{count(facts.last.members, 'member')}, group.share.max.size {size}")
    for node in facts.last.nodes:
        open_now = node.value(SESSIONS)
        if limits.max_sessions is not None and open_now is not None and open_now >= limits.max_sessions:
            texts.append(f"broker {node.node_id}: {open_now:.0f} sessions, group.share.max.share.sessions {limits.max_sessions}")
    if not texts:
        return None
    return Finding(
        "S7",
        "the group can take no further worker",
        (*texts, *named(facts.last.members)),
        "Workers beyond it get GROUP_MAX_SIZE_REACHED or SHARE_SESSION_LIMIT_REACHED. Raise the limit in the brokers' settings "
        "(it takes a restart), or stop workers. Whether others try is in their logs.",
        f"tidelog share-groups --describe --group {word(facts.group_id)} --members",
        certain=False,
    )


def begins_at_latest(facts: GroupFacts) -> Finding | None:
    """S6: what was written before the group began is never delivered."""
    limits = facts.last.limits
    if limits is None or limits.reset != "latest" or not facts.last.members:
        return None
    found = {at: part for at, part in facts.last.partitions.items() if _passed_over(part, facts.before(at))}
    if not found:
        return None
    return Finding(
        "S6",
        f"the group begins behind the records of {count(found, 'partition')}",
        (
            "share.auto.offset.reset is latest, and nothing was acknowledged yet",
            *each_line(found, lambda part: f"offsets {part.start} to {part.end}"),
        ),
        "Such a group gets what is written from its first fetch on. To deliver what is there, stop the workers and move the "
        "start offsets; set share.auto.offset.reset=earliest before the first worker of a group starts.",
        f"tidelog share-groups --group {word(facts.group_id)} --reset-offsets --all-topics --to-earliest --dry-run",
    )


def _passed_over(part: PartitionFacts, before: PartitionFacts) -> bool:
    share = part.share
    if share is None or not share.initialized or share.start is not None or part.start is None or part.end is None:
        return False
    if part.start >= part.end or part.end != before.end:
        return False  # an empty log, or one that is written to now
    window = share.window
    return window is None or (window.phase == ACTIVE and window.start == part.end)


def locks_used_up(facts: GroupFacts) -> Finding | None:
    """S1: the window of a partition is full of records that members hold."""
    limits = facts.last.limits
    found = {
        at: part
        for at, part in _windows(facts).items()
        if limits is not None
        and _of(part).in_flight >= limits.locks
        and _of(facts.before(at)).in_flight >= limits.locks
        and _of(part).start == _of(facts.before(at)).start
    }
    if not found or limits is None:
        return None
    return Finding(
        "S1",
        f"the window of {count(found, 'partition')} is full of records that are not acknowledged",
        each_line(
            found,
            lambda part: (
                f"offsets {_of(part).start} to {_of(part).end} are in flight, {_of(part).in_flight} of {limits.locks} "
                f"(share.partition.max.record.locks); {_first_text(facts, part)}"
            ),
        ),
        "Members hold records and do not acknowledge them: nothing further is delivered until the first one is finished, or its "
        "lock times out. Look into the log of the member that holds it.",
        f"tidelog share-groups --describe --group {word(facts.group_id)} --members",
    )


def locks_time_out(facts: GroupFacts) -> Finding | None:
    """S3: workers take longer than the lock."""
    found = {}
    for at, part in _windows(facts).items():
        now, then = _of(part).lock_timeouts, _of(facts.before(at)).lock_timeouts
        if now is not None and then is not None and now > then:
            found[at] = part
    limits = facts.last.limits
    if not found or limits is None:
        return None

    def text(at: Partition) -> str:
        gone = (_of(facts.last.partitions[at]).lock_timeouts or 0) - (_of(facts.before(at)).lock_timeouts or 0)
        return f"{at[0]}-{at[1]}: {gone:.0f} locks timed out in {facts.seconds:.0f} s; {_first_text(facts, found[at])}"

    return Finding(
        "S3",
        f"workers keep records of {count(found, 'partition')} longer than their lock",
        (f"share.record.lock.duration.ms is {limits.lock_ms}", *(text(at) for at in sorted(found)[:SHOWN])),
        "Such a record is delivered again while the first worker is still at it, and given up after "
        f"{limits.deliveries} deliveries. Let workers take fewer records at once, renew the lock (acknowledge with RENEW), or "
        "raise it for the group.",
        f"tidelog configs --alter --group {word(facts.group_id)} --add-config share.record.lock.duration.ms={2 * limits.lock_ms}",
    )


def near_the_limit(facts: GroupFacts) -> Finding | None:
    """S2: the first record was delivered nearly as often as the group allows."""
    limits = facts.last.limits
    if limits is None:
        return None
    found = {
        at: part
        for at, part in _windows(facts).items()
        if part.lag and _of(part).first_deliveries >= max(2, limits.deliveries - 1)
    }
    if not found:
        return None
    at, part = min(found.items())
    return Finding(
        "S2",
        f"the first record of {count(found, 'partition')} is delivered again and again",
        each_line(found, lambda part: f"{_first_text(facts, part)}; share.delivery.count.limit {limits.deliveries}"),
        "Workers release it, or fail while they have it: after the limit it is given up, and with a dead-letter topic kept "
        "there. The worker's log says what is wrong with it.",
        f"tidelog why-record {word(facts.group_id)} {word(f'{at[0]}:{at[1]}:{_of(part).start}')}",
    )


def head_blocked(facts: GroupFacts) -> Finding | None:
    """S4: the start offset stands while records behind it are finished."""
    limits = facts.last.limits
    found = {
        at: part
        for at, part in facts.last.partitions.items()
        if part.share is not None
        and part.lag
        and _start(part) is not None
        and _start(part) == _start(facts.before(at))
        and (_finished(part, facts.before(at)) or 0) > 0
    }
    if not found or limits is None:
        return None
    held = {at for at, part in found.items() if _held_for_long(part, limits.lock_ms)}
    at, part = min(found.items())
    return Finding(
        "S4",
        f"one record holds back the start of {count(found, 'partition')}",
        each_line(found, lambda part: f"{_first_text(facts, part)}; {part.lag} records behind"),
        "Records behind it are finished meanwhile, until the window is full (share.partition.max.record.locks). The member that "
        "has it acknowledges it, or its lock times out and another one gets it.",
        f"tidelog why-record {word(facts.group_id)} {word(f'{at[0]}:{at[1]}:{_start(part)}')}",
        alarm=bool(held),
        certain=bool(held),
    )


def _held_for_long(part: PartitionFacts, lock_ms: int) -> bool:
    """Half of the lock, or a second delivery: several workers finish batches at different times, which is normal."""
    window = _share(part).window
    return window is not None and (window.first_deliveries > 1 or 2 * window.lock_left_ms < lock_ms)


def nothing_finished(facts: GroupFacts) -> Finding | None:
    """G4 of share groups: members have partitions with records, and none was finished."""
    if any(check(facts) for check in (state_missing, begins_at_latest, locks_used_up, locks_time_out, near_the_limit)):
        return None  # that explains it
    read = {at for member in facts.last.members for at in member.assignment}
    found = {
        at: part
        for at, part in facts.last.partitions.items()
        if at in read
        and part.lag
        and facts.before(at).lag
        and _finished(part, facts.before(at)) == 0
        and not _kept_back(facts, part)
    }
    if not found:
        return None
    return Finding(
        "G4",
        f"the group finishes no records of {count(found, 'partition')}",
        (
            *each_line(found, lambda part: f"{part.lag} records behind; {_first_text(facts, part)}"),
            f"watched {facts.seconds:.0f} s; assigned to {', '.join(named(facts.last.members))}",
        ),
        "Its workers do not poll, or work on one batch for long. Watch longer than a batch takes (--seconds); then look into "
        "their logs.",
        f"tidelog share-groups --describe --group {word(facts.group_id)} --members",
    )


def _kept_back(facts: GroupFacts, part: PartitionFacts) -> bool:
    limits = facts.last.limits
    return part.leader < 0 or (limits is not None and limits.committed_only and _start(part) == part.stable != part.end)


def share_rate(facts: GroupFacts) -> Finding | None:
    """R1 and R2 of share groups."""
    finished = written = lag = 0
    for at, part in facts.last.partitions.items():
        before = facts.before(at)
        done = _finished(part, before)
        if part.share is None or not done or done >= before.lag or part.end is None or before.end is None:
            continue
        finished, written, lag = finished + done, written + part.end - before.end, lag + part.lag
    if not lag:
        return None
    into, out = written / facts.seconds, finished / facts.seconds
    evidence = (f"{lag} records behind, {out:.1f} records/s finished, {into:.1f} records/s written, over {facts.seconds:.0f} s",)
    if out > into:
        text = f"the group catches up: in about {span(lag / (out - into))}"
        return Finding("R2", text, evidence, "Nothing to do, if the rates stay.", alarm=False)
    return Finding(
        "R1",
        "the group finishes records more slowly than producers write",
        evidence,
        "At these rates it never catches up. Start more workers: there may be more of them than partitions.",
        f"tidelog share-groups --describe --group {word(facts.group_id)} --members",
    )


# -- helpers ----------------------------------------------------------------------------------------------------------------


def _share(part: PartitionFacts) -> ShareProgress:
    return part.share or NOTHING


def _of(part: PartitionFacts) -> ShareWindow:
    return _share(part).window or ShareWindow("none")


def _windows(facts: GroupFacts) -> Mapping[Partition, PartitionFacts]:
    """Partitions whose leader showed a loaded window at both looks."""
    return {
        at: part
        for at, part in facts.last.partitions.items()
        if _of(part).phase == ACTIVE and _of(facts.before(at)).phase == ACTIVE
    }


def _start(part: PartitionFacts) -> int | None:
    window = _of(part)
    return window.start if window.phase == ACTIVE else _share(part).start


def _finished(part: PartitionFacts, before: PartitionFacts) -> int | None:
    """Records finished between the looks; None where neither the leader nor the share coordinator tells."""
    now, then = _of(part), _of(before)
    if now.phase == ACTIVE and then.phase == ACTIVE:
        return max(0, now.start + now.finished_above - then.start - then.finished_above)
    known = (_share(part).lag, _share(before).lag, part.end, before.end)
    lag, lag_before, end, end_before = known
    if lag is None or lag_before is None or end is None or end_before is None:
        return None
    return max(0, (end - end_before) - (lag - lag_before))


def _phase_text(part: PartitionFacts) -> str:
    window = _of(part)
    return f"its leader has not loaded the state: {window.phase}" + (f", {window.error}" if window.error else "")


def _first_text(facts: GroupFacts, part: PartitionFacts) -> str:
    """The first record that is not finished, and its member."""
    window = _of(part)
    if window.phase != ACTIVE:
        if _share(part).leader_seen:
            return "no member fetches from its leader"
        return f"start offset {_share(part).start}; who has the record is not known without the leader's page"
    if window.first_state is None:
        return f"the first record, {window.start}, was not delivered"
    text = f"the first record, {window.start}, is {window.first_state}, delivery {window.first_deliveries}"
    if window.first_member is None:
        return text
    known = next((each.name for each in facts.last.members if each.member_id == window.first_member), window.first_member)
    return f"{text}, with {known} for {window.lock_left_ms / 1000:.0f} s more"
