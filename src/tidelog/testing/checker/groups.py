"""Committed offsets of groups: never of an aborted transaction, never backwards, and with transforms exactly the records that
landed.

A group transforms when its offsets go into transactions whose records name their source record (``source``). Then each record
that the group has consumed must be in the output exactly once, and no other.
"""

from __future__ import annotations

from tidelog.testing.checker.ledger import Fetch, Ledger, OffsetCommit, Outcome
from tidelog.testing.checker.verdict import Anomaly, Verdict

NO_OFFSET = -1
Place = tuple[str, str]
"""Group and partition."""


def judge_groups(ledger: Ledger, verdict: Verdict) -> None:
    """Adds the findings about committed offsets and outputs."""
    _judge_fetches(ledger, verdict)
    _judge_outputs(ledger, verdict)


def _outcome(commit: OffsetCommit) -> Outcome:
    """The outcome of the offsets: that of their transaction, if there is one."""
    transaction = commit.transaction
    if commit.outcome is Outcome.REFUSED or transaction is None:
        return commit.outcome
    return Outcome.DONE if transaction.committed else transaction.outcome


def _done_at(commit: OffsetCommit) -> int | None:
    """When the commit of these offsets was acknowledged."""
    if _outcome(commit) is not Outcome.DONE:
        return None
    if commit.transaction is None:
        return commit.done_at
    return commit.transaction.ended_at if commit.transaction.outcome is Outcome.DONE else None


def _judge_fetches(ledger: Ledger, verdict: Verdict) -> None:
    sent_at: dict[tuple[str, str, int], int] = {}
    aborted: dict[tuple[str, str, int], str] = {}
    acknowledged: list[tuple[int, OffsetCommit]] = []
    for commit in ledger.offset_commits:
        outcome = _outcome(commit)
        done_at = _done_at(commit)
        if done_at is not None:
            acknowledged.append((done_at, commit))
        for partition, offset in commit.offsets.items():
            if outcome is not Outcome.REFUSED:
                sent_at.setdefault((commit.group, partition, offset), commit.asked_at)
            elif commit.transaction is not None:
                aborted[commit.group, partition, offset] = commit.transaction.name
    acknowledged.sort(key=lambda each: each[0])
    floors: dict[Place, int] = {}
    upto = 0
    for fetch in sorted(ledger.fetches, key=lambda each: each.asked_at):
        while upto < len(acknowledged) and acknowledged[upto][0] < fetch.asked_at:
            commit = acknowledged[upto][1]
            for partition, offset in commit.offsets.items():
                place = (commit.group, partition)
                floors[place] = max(offset, floors.get(place, NO_OFFSET))
            upto += 1
        _judge_fetch(fetch, sent_at, aborted, floors, verdict)


def _judge_fetch(
    fetch: Fetch,
    sent_at: dict[tuple[str, str, int], int],
    aborted: dict[tuple[str, str, int], str],
    floors: dict[Place, int],
    verdict: Verdict,
) -> None:
    for partition, offset in fetch.offsets.items():
        place = (fetch.group, partition)
        here = f"Group {fetch.group} was said to be at {partition}@{offset} (event {fetch.at})"
        if offset != NO_OFFSET and sent_at.get((fetch.group, partition, offset), fetch.at) >= fetch.at:
            name = aborted.get((fetch.group, partition, offset))
            why = "no client had committed that" if name is None else f"only {name} has sent that, and it was aborted"
            verdict.add(Anomaly.ABORTED_OFFSETS, f"{here}; {why}")
        elif offset < floors.get(place, NO_OFFSET):
            verdict.add(Anomaly.LOST_OFFSETS, f"{here}; it had been acknowledged at {floors[place]} before that was asked")


def _judge_outputs(ledger: Ledger, verdict: Verdict) -> None:
    landed, groups = _landed(ledger)
    for (group, source), values in landed.items():
        if len(values) > 1:
            verdict.add(Anomaly.DUPLICATE_OUTPUT, f"{source}, consumed by {group}, landed as {' and as '.join(values[:4])}")
    final: dict[Place, int] = {}
    for fetch in ledger.fetches:
        if fetch.group in groups:
            final.update({(fetch.group, partition): offset for partition, offset in fetch.offsets.items()})
    outputs = {write.partition for write in ledger.writes.values() if write.source is not None}
    if not outputs <= ledger.drained.keys():
        return
    # Only offsets fetched after everything else show where the group ended.
    last = max((commit.done_at or commit.asked_at for commit in ledger.offset_commits), default=0)
    settled = {(fetch.group, partition) for fetch in ledger.fetches if fetch.asked_at > last for partition in fetch.offsets}
    inputs = _inputs(ledger, {partition for _, partition in settled})
    for group, partition in sorted(settled & final.keys()):
        _compare(group, partition, final[group, partition], inputs[partition], landed, verdict)


def _compare(
    group: str,
    partition: str,
    final: int,
    inputs: dict[int, str],
    landed: dict[tuple[str, str], list[str]],
    verdict: Verdict,
) -> None:
    """Compare the consumed records of this partition with those that landed."""
    for offset, value in sorted(inputs.items()):
        there = (group, value) in landed
        if offset < final and not there:
            verdict.add(
                Anomaly.MISSING_OUTPUT, f"{group} is at {partition}@{final}, past {value} at {offset}, which did not land"
            )
        elif offset >= final and there:
            verdict.add(
                Anomaly.UNCOUNTED_OUTPUT,
                f"{group} is at {partition}@{final}, before {value} at {offset}, which landed as {landed[group, value][0]}",
            )


def _landed(ledger: Ledger) -> tuple[dict[tuple[str, str], list[str]], set[str]]:
    """For each group and consumed value the outputs that readers of committed records saw; and the groups that transform."""
    landed: dict[tuple[str, str], list[str]] = {}
    groups: set[str] = set()
    for transaction in ledger.transactions.values():
        transforming = {commit.group for commit in transaction.offsets}
        for write in transaction.writes:
            if write.source is None:
                continue
            groups |= transforming
            if write.seen:
                for group in transforming:
                    landed.setdefault((group, write.source), []).append(write.value)
    return landed, groups


def _inputs(ledger: Ledger, partitions: set[str]) -> dict[str, dict[int, str]]:
    """Offsets and values of the committed records in these partitions."""
    found: dict[str, dict[int, str]] = {partition: {} for partition in partitions}
    for write in ledger.writes.values():
        if write.partition in found and write.promised and write.place is not None:
            found[write.partition][write.place] = write.value
    for poll in ledger.polls:
        if poll.committed_only:
            for partition, offset, value in poll.records:
                if partition in found:
                    found[partition][offset] = value
    return found
