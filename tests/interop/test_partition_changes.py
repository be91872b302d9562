"""Changes of partitions beside Apache Kafka's own class: the same partition, the same wish, and the same record.

A standby of either make replays what the active controller of the other wrote, so the records have to be equal in every field, at
every metadata.version.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.interop.java import JavaSide
from tidelog.controller.leader_election import Election
from tidelog.controller.partition_change import ChangeRules, Wanted, change_partition
from tidelog.metadata.image import PartitionImage
from tidelog.model.ids import NO_BROKER, Uuid
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord

CASES = 20_000
LEVELS = (7, 11, 12, 16, 17, 22, 23, 29, 30)


def directory(high: int, low: int) -> Uuid:
    return Uuid(high.to_bytes(8, "big") + low.to_bytes(8, "big"))


def some(rng: random.Random, line: list[int], least: int = 0) -> list[int]:
    return rng.sample(line, rng.randint(min(least, len(line)), len(line)))


def random_case(rng: random.Random) -> dict[str, Any]:
    """A partition in any state that can come about, and more; and a wish."""
    elr = rng.random() < 0.6
    replicas = rng.sample(range(6), rng.randint(1, 5))
    isr = some(rng, replicas, 0 if elr else 1)
    rest = [each for each in replicas if each not in isr]
    moving = rng.random() < 0.4
    case: dict[str, Any] = {
        "partition": {
            "replicas": replicas,
            "directories": [rng.randint(1, 3) for _ in replicas],
            "isr": isr,
            "elr": sorted(some(rng, rest)) if elr and rng.random() < 0.7 else [],
            "last_known_elr": rng.sample(replicas, 1) if elr and rng.random() < 0.4 else [],
            "adding": some(rng, replicas) if moving else [],
            "removing": some(rng, replicas) if moving else [],
            "leader": rng.choice(isr) if isr and rng.random() < 0.8 else NO_BROKER,
            "recovery": int(rng.random() < 0.2),
        },
        "number": rng.randrange(3),
        "acceptable": some(rng, list(range(6))),
        "metadata_version": rng.choice(LEVELS),
        "min_isr": rng.randint(1, 3),
        "elr": elr,
        "election": rng.choice(["ONLINE", "PREFERRED", "UNCLEAN"]),
    }
    if rng.random() < 0.6:
        case["isr"] = some(rng, replicas) if rng.random() < 0.3 else [each for each in isr if rng.random() < 0.7]
    if rng.random() < 0.4:
        target = rng.sample(range(6), rng.randint(1, 4))
        removing = sorted(set(replicas) - set(target))
        adding = sorted(set(target) - set(replicas))
        case |= {"replicas": target + removing}
        case |= {"removing": removing} if removing or rng.random() < 0.2 else {}
        case |= {"adding": adding} if adding or rng.random() < 0.2 else {}
    if rng.random() < 0.3:
        case["recovery"] = rng.randrange(2)
    if rng.random() < 0.3:
        case["unclean_shutdown"] = rng.randrange(6)
    if rng.random() < 0.1:
        case["moved"] = rng.choice(replicas)
    return case


def our_change(case: dict[str, Any]) -> PartitionChangeRecord | None:
    before = case["partition"]
    partition = PartitionImage(
        replicas=tuple(before["replicas"]),
        isr=tuple(before["isr"]),
        leader=before["leader"],
        leader_epoch=3,
        partition_epoch=5,
        leader_recovery_state=before["recovery"],
        removing_replicas=tuple(before["removing"]),
        adding_replicas=tuple(before["adding"]),
        elr=tuple(before["elr"]),
        last_known_elr=tuple(before["last_known_elr"]),
        directories=tuple(directory(9, each) for each in before["directories"]),
    )
    rules = ChangeRules(case["metadata_version"], case["elr"], case["min_isr"], lambda broker: directory(9, broker))
    wanted = Wanted(
        isr=case.get("isr"),
        replicas=case.get("replicas"),
        adding=case.get("adding"),
        removing=case.get("removing"),
        leader_recovery_state=case.get("recovery"),
        election=Election[case["election"]],
        unclean_shutdown=case.get("unclean_shutdown", NO_BROKER),
        directories={case["moved"]: directory(8, 8)} if "moved" in case else {},
    )
    return change_partition(directory(0, 7), case["number"], partition, wanted, rules, case["acceptable"].__contains__)


def shown(record: PartitionChangeRecord | None) -> dict[str, Any] | None:
    if record is None:
        return None
    ids = record.directories
    texts = None if ids is None else [f"{int.from_bytes(each[:8], 'big')}/{int.from_bytes(each[8:], 'big')}" for each in ids]
    fields = {
        "isr": record.isr,
        "replicas": record.replicas,
        "adding": record.adding_replicas,
        "removing": record.removing_replicas,
        "elr": record.eligible_leader_replicas,
        "last_known_elr": record.last_known_elr,
        "directories": texts,
    }
    present = {name: value for name, value in fields.items() if value is not None}
    return {"leader": record.leader, "recovery": record.leader_recovery_state} | present


def lists_who_went(case: dict[str, Any], theirs: dict[str, Any] | None) -> bool:
    """Kafka leaves brokers in the ELR that are no replicas any more, where they block every other election; we do not."""
    left = (theirs or {}).get("replicas", case["partition"]["replicas"])
    before = {*case["partition"]["isr"], *case["partition"]["elr"]}
    return case["elr"] and not before <= set(left)


def remembers_who_went(case: dict[str, Any], theirs: dict[str, Any] | None) -> bool:
    """Kafka's last known leader may be no replica any more, and would be elected; ours is the first replica then."""
    left = (theirs or {}).get("replicas", case["partition"]["replicas"])
    led = [each for each in (case["partition"]["leader"], *case["partition"]["last_known_elr"]) if each >= 0]
    leaderless = (theirs or {}).get("leader") == NO_BROKER or case["partition"]["leader"] == NO_BROKER
    return case["elr"] and leaderless and not {*led} <= set(left)


def keeps_eligible(case: dict[str, Any], theirs: dict[str, Any] | None) -> bool:
    """Kafka elects one of the eligible and keeps the others, also where that one may acknowledge alone; ours forgets them."""
    found = theirs or {}
    before = case["partition"]
    in_sync, eligible = found.get("isr", before["isr"]), found.get("elr", before["elr"])
    return bool(case["elr"] and eligible and in_sync and len(in_sync) >= case["min_isr"])


@pytest.mark.interop
def test_changes_of_partitions_are_those_of_apache_kafka(java: JavaSide) -> None:
    rng = random.Random(966)
    cases = [random_case(rng) for _ in range(CASES)]
    answers = java.ask("partition_changes", cases=cases)["results"]
    changed = 0
    for case, theirs in zip(cases, answers, strict=True):
        if lists_who_went(case, theirs) or remembers_who_went(case, theirs) or keeps_eligible(case, theirs):
            continue
        assert shown(our_change(case)) == theirs, case
        changed += theirs is not None
    assert changed > CASES // 2
