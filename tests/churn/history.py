"""What must hold of a run, by its history alone: what members noted, what was acknowledged, what an observer saw.

- Every record that was acknowledged to a producer is handled at least once by each group.
- In one generation or epoch of a group a partition has one owner. A static member stays who it is under its instance id.
- A commit that was acknowledged is final: every later fetch of the offset returns it or a later one.
- In the end, when all is quiet, every partition belongs to one live member, and every live member has some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]
"""``t`` (ns, monotonic), ``e`` kind, ``m`` member, ``g`` group; ``n`` epoch, ``p`` partitions, ``o`` by partition."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Committed offsets as an onlooker got them, who asked at ``t`` (ns)."""

    t: int
    group: str
    offsets: Mapping[str, int]


@dataclass
class Run:
    """All that a run left."""

    events: list[Event]
    acknowledged: Mapping[str, set[int]]
    """Partition -> offsets."""
    seen: list[Seen]
    identity: Mapping[str, str] = field(default_factory=dict)
    """Static members -> instance id."""
    live: Mapping[str, str] = field(default_factory=dict)
    """Who was there in the end -> its group."""
    groups: tuple[str, ...] = ()


def violations(run: Run) -> list[str]:
    """What did not hold; empty when all did."""
    events = sorted(run.events, key=lambda event: event["t"])
    return [*_unhandled(run, events), *_two_owners(run, events), *_gone_back(run, events), *_stuck(run, events)]


def _unhandled(run: Run, events: Iterable[Event]) -> list[str]:
    handled: dict[tuple[str, str], set[int]] = {}
    for event in events:
        if event["e"] == "handled":
            for partition, offsets in event["o"].items():
                handled.setdefault((event["g"], partition), set()).update(offsets)
    found = []
    for group in run.groups:
        for partition, offsets in sorted(run.acknowledged.items()):
            missing = sorted(offsets - handled.get((group, partition), set()))
            if missing:
                found.append(f"{group}: {len(missing)} records of {partition} were never handled: {missing[0]} to {missing[-1]}")
    return found


def _two_owners(run: Run, events: Iterable[Event]) -> list[str]:
    owners: dict[tuple[str, int, str], str] = {}
    found = []
    for event in events:
        if event["e"] not in {"assigned", "handled"} or event["n"] < 0:
            continue
        who = run.identity.get(event["m"], event["m"])
        for partition in event["p"] if event["e"] == "assigned" else event["o"]:
            place = (event["g"], event["n"], partition)
            if owners.setdefault(place, who) != who:
                found.append(f"{event['g']}: in epoch {event['n']} {partition} belonged to {owners[place]} and to {who}")
    return found


def _gone_back(run: Run, events: Iterable[Event]) -> list[str]:
    commits = [event for event in events if event["e"] == "committed"]
    floor: dict[tuple[str, str], tuple[int, str]] = {}
    found = []
    at = 0
    for seen in sorted(run.seen, key=lambda one: one.t):
        while at < len(commits) and commits[at]["t"] < seen.t:
            for partition, offset in commits[at]["o"].items():
                place = (commits[at]["g"], partition)
                floor[place] = max(floor.get(place, (-1, "")), (offset, f"was acknowledged to {commits[at]['m']}"))
            at += 1
        for partition, offset in seen.offsets.items():
            place = (seen.group, partition)
            known, why = floor.get(place, (-1, ""))
            if offset < known:
                found.append(f"{seen.group}: offset {offset} of {partition} is committed, but {known} {why} before")
            floor[place] = max((known, why), (offset, "was seen"))
        # Whatever was acknowledged is there at all.
        gone = [place for place in floor if place[0] == seen.group and place[1] not in seen.offsets]
        found += [
            f"{seen.group}: nothing is committed for {place[1]}, but {floor[place][0]} {floor[place][1]} before" for place in gone
        ]
    return found


def ownership(events: Iterable[Event], live: Mapping[str, str]) -> dict[str, set[str]]:
    """What each live member has in the end, by the assignments it received."""
    owned: dict[str, set[str]] = {member: set() for member in live}
    for event in sorted(events, key=lambda one: one["t"]):
        if event["m"] not in owned:
            continue
        if event["e"] == "assigned":
            owned[event["m"]].update(event["p"])
        elif event["e"] in {"revoked", "lost"}:
            owned[event["m"]].difference_update(event["p"])
    return owned


def incomplete(run: Run, events: Iterable[Event]) -> list[str]:
    """What is not settled: partitions without an owner or with two, members without a partition."""
    owned = ownership(events, run.live)
    found = []
    for group in run.groups:
        members = {member: owned[member] for member, its in run.live.items() if its == group}
        holders: dict[str, list[str]] = {partition: [] for partition in run.acknowledged}
        for member, partitions in members.items():
            for partition in partitions:
                holders.setdefault(partition, []).append(member)
        if not members:
            continue
        found += [
            f"{group}: {partition} belongs to {who or 'nobody'}" for partition, who in sorted(holders.items()) if len(who) != 1
        ]
        # A range gives nothing to more members than its largest topic has partitions.
        if len(members) <= max(Counter(partition.rpartition("-")[0] for partition in holders).values()):
            found += [f"{group}: {member} has nothing" for member, partitions in sorted(members.items()) if not partitions]
    return found


def _stuck(run: Run, events: Iterable[Event]) -> list[str]:
    return [f"in the end, {finding}" for finding in incomplete(run, events)]
