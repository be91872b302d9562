"""What is unclean in a cluster, worst first; pure, from facts that were collected before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidelog.client.admin.results import LogDir, PartitionDescription, QuorumDescription, Reassignment, TransactionDescription
from tidelog.client.calls import Partition
from tidelog.console.asking.overview import Overview, is_clean
from tidelog.console.quoting import word
from tidelog.console.wording import SHOWN, numbers

ERROR, WARNING, NOTE = "error", "warning", "note"
_ORDER: Final = (ERROR, WARNING, NOTE)
NEARLY_FULL: Final = 0.1
"""Of a log dir's bytes that are still usable."""
QUORUM_LATE_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something unclean. ``link``: (page, name) of the page that shows more."""

    severity: str
    kind: str
    title: str
    evidence: tuple[str, ...]
    advice: str
    command: str | None = None
    link: tuple[str, str] | None = None

    def as_json(self, command: Callable[[str], str]) -> dict[str, Any]:
        """``command`` adds the connection to a command."""
        page, name = self.link or ("", "")
        keys = {"topic": "topic", "group": "group", "broker": "broker", "transaction": "id"}
        link = {"page": page, "topic": None, "group": None, "broker": None, "id": None}
        if page in keys:
            link[keys[page]] = name
        return {
            "severity": self.severity,
            "kind": self.kind,
            "title": self.title,
            "evidence": list(self.evidence),
            "advice": self.advice,
            "command": None if self.command is None else command(self.command),
            "link": link if self.link else None,
        }


@dataclass(frozen=True, slots=True)
class Facts:
    """What was collected; None where it could not be."""

    now_ms: int
    overview: Overview
    min_in_sync: Mapping[str, int] = field(default_factory=dict)
    log_dirs: Mapping[int, list[LogDir]] = field(default_factory=dict)
    quorum: QuorumDescription | None = None
    transactions: tuple[TransactionDescription, ...] = ()
    moves: Mapping[Partition, Reassignment] = field(default_factory=dict)


def troubles(facts: Facts) -> tuple[list[Trouble], list[str]]:
    """What is unclean, worst first; and what was looked at and is fine."""
    found: list[Trouble] = []
    fine: list[str] = []
    for check, what in _CHECKS:
        part = list(check(facts))
        found += part
        if not part and what:
            fine.append(what)
    return sorted(found, key=lambda each: _ORDER.index(each.severity)), fine


def _partitions(facts: Facts, wanted: Callable[[Partition, PartitionDescription], bool]) -> dict[Partition, PartitionDescription]:
    return {at: part for at, part in facts.overview.each_partition() if wanted(at, part)}


def _named(found: Mapping[Partition, PartitionDescription], text: Callable[[PartitionDescription], str]) -> tuple[str, ...]:
    lines = [f"{topic}-{index}: {text(part)}" for (topic, index), part in sorted(found.items())[:SHOWN]]
    return (*lines, f"and {len(found) - SHOWN} more") if len(found) > SHOWN else tuple(lines)


def _topic_of(found: Mapping[Partition, PartitionDescription]) -> tuple[str, str]:
    return "topic", min(found)[0]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _leaderless(facts: Facts) -> Iterable[Trouble]:
    found = _partitions(facts, lambda _, part: part.leader is None)
    if found:
        yield Trouble(
            ERROR,
            "leaderless",
            f"{_count(len(found), 'partition')} without a leader",
            _named(found, lambda part: f"replicas {numbers(part.replicas)}, in sync {numbers(part.in_sync)}"),
            "Start a broker that was in sync: it leads at once. An unclean election loses what only others have.",
            "tidelog topics --describe --unavailable-partitions",
            _topic_of(found),
        )


def _down(facts: Facts) -> Iterable[Trouble]:
    found = facts.overview.missing_brokers()
    if found:
        yield Trouble(
            ERROR,
            "broker_down",
            f"{_count(len(found), 'broker')} down",
            tuple(f"broker {broker}: {_count(held, 'replica')}" for broker, held in list(found.items())[:SHOWN]),
            "Start it. One that is gone for good has its replicas reassigned to other brokers.",
            "tidelog metadata-quorum describe --replication",
            ("broker", str(next(iter(found)))),
        )


def _under_min_isr(facts: Facts) -> Iterable[Trouble]:
    least = facts.min_in_sync

    def below(at: Partition, part: PartitionDescription) -> bool:
        return part.leader is not None and len(part.in_sync) < least.get(at[0], 1)

    def just(at: Partition, part: PartitionDescription) -> bool:
        return part.leader is not None and not is_clean(part) and len(part.in_sync) == least.get(at[0], 1) and at[0] in least

    found = _partitions(facts, below)
    if found:
        yield Trouble(
            ERROR,
            "under_min_isr",
            f"nothing can be written with acks=all to {_count(len(found), 'partition')}",
            _named(found, lambda part: f"in sync {numbers(part.in_sync)} of {numbers(part.replicas)}"),
            "Producers get NOT_ENOUGH_REPLICAS. Start the brokers whose replicas are missing, or lower min.insync.replicas.",
            "tidelog topics --describe --under-min-isr-partitions",
            _topic_of(found),
        )
    found = _partitions(facts, just)
    if found:
        yield Trouble(
            WARNING,
            "at_min_isr",
            f"one more broker down stops writes with acks=all to {_count(len(found), 'partition')}",
            _named(found, lambda part: f"in sync {numbers(part.in_sync)} of {numbers(part.replicas)}"),
            "Start the brokers whose replicas are missing before you stop another one.",
            "tidelog topics --describe --at-min-isr-partitions",
            _topic_of(found),
        )


def _under_replicated(facts: Facts) -> Iterable[Trouble]:
    found = _partitions(facts, lambda _, part: part.leader is not None and not is_clean(part))
    if found:
        missing = sorted({each for part in found.values() for each in part.replicas if each not in part.in_sync})
        yield Trouble(
            WARNING,
            "under_replicated",
            f"{_count(len(found), 'partition')} with replicas out of sync",
            (
                f"brokers {numbers(missing)}",
                *_named(found, lambda part: f"in sync {numbers(part.in_sync)} of {numbers(part.replicas)}"),
            ),
            "A broker that was down catches up by itself; one that stays behind is slow, or its disk is.",
            "tidelog topics --describe --under-replicated-partitions",
            ("broker", str(missing[0])) if missing else _topic_of(found),
        )


def _disks(facts: Facts) -> Iterable[Trouble]:
    for broker, dirs in sorted(facts.log_dirs.items()):
        for each in dirs:
            if each.error is not None:
                yield Trouble(
                    ERROR,
                    "offline_dir",
                    f"broker {broker} has lost a log dir",
                    (f"{each.path}: {each.error}",),
                    "Its replicas are offline. Repair or replace the disk, and restart the broker.",
                    f"tidelog log-dirs --describe --broker-list {broker}",
                    ("broker", str(broker)),
                )
            elif each.total > 0 and 0 <= each.usable < NEARLY_FULL * each.total:
                yield Trouble(
                    WARNING,
                    "disk_full",
                    f"a disk of broker {broker} is nearly full",
                    (f"{each.path}: {each.usable} of {each.total} bytes are usable",),
                    "A full disk takes the log dir offline. Lower the retention of large topics, or move replicas away.",
                    f"tidelog log-dirs --describe --broker-list {broker}",
                    ("broker", str(broker)),
                )


def _quorum(facts: Facts) -> Iterable[Trouble]:
    quorum = facts.quorum
    if quorum is None:
        return
    if quorum.leader_id < 0:
        yield Trouble(
            ERROR,
            "no_controller",
            "the metadata quorum has no leader",
            (f"epoch {quorum.leader_epoch}",),
            "No topic, setting or leader can change until a majority of the voters runs.",
            "tidelog metadata-quorum describe --status",
            ("quorum", ""),
        )
    late = [
        each
        for each in quorum.voters
        if each.node_id != quorum.leader_id and 0 <= each.last_caught_up_ms < facts.now_ms - QUORUM_LATE_MS
    ]
    if late:
        yield Trouble(
            WARNING,
            "quorum_lag",
            f"{_count(len(late), 'voter')} of the metadata quorum behind",
            tuple(
                f"node {each.node_id}: caught up {(facts.now_ms - each.last_caught_up_ms) // 1000} s ago, "
                f"{max(0, quorum.high_watermark - each.log_end_offset)} records behind"
                for each in late[:SHOWN]
            ),
            "The quorum needs a majority of its voters; start those that are down.",
            "tidelog metadata-quorum describe --replication",
            ("quorum", ""),
        )


def _transactions(facts: Facts) -> Iterable[Trouble]:
    overdue = [
        each for each in facts.transactions if each.started_ms is not None and each.started_ms + each.timeout_ms < facts.now_ms
    ]
    for each in overdue[:SHOWN]:
        yield Trouble(
            ERROR,
            "hanging_transaction",
            f"the transaction of {each.transactional_id} is over its timeout",
            (
                f"{each.state}, begun {(facts.now_ms - (each.started_ms or 0)) // 1000} s ago, "
                f"timeout {each.timeout_ms // 1000} s, "
                f"{_count(len(each.partitions), 'partition')}",
            ),
            "Readers of committed records wait for it. Its coordinator should have aborted it: look at that broker, or end it.",
            f"tidelog transactions describe --transactional-id {word(each.transactional_id)}",
            ("transaction", each.transactional_id),
        )


def _moving(facts: Facts) -> Iterable[Trouble]:
    if facts.moves:
        rows = sorted(facts.moves.items())[:SHOWN]
        yield Trouble(
            NOTE,
            "reassigning",
            f"{_count(len(facts.moves), 'partition')} moving between brokers",
            tuple(f"{topic}-{index}: to {numbers(each.adding)}" for (topic, index), each in rows),
            "Nothing to do; it ends when the new replicas are in sync.",
            "tidelog reassign-partitions --list",
            ("moves", ""),
        )


def _not_preferred(facts: Facts) -> Iterable[Trouble]:
    found = _partitions(
        facts,
        lambda _, part: part.leader is not None and bool(part.replicas) and part.leader != part.replicas[0] and is_clean(part),
    )
    if found:
        yield Trouble(
            NOTE,
            "not_preferred",
            f"{_count(len(found), 'partition')} not led by the preferred replica",
            _named(found, lambda part: f"led by {part.leader}, preferred {part.replicas[0]}"),
            "Load may be uneven. Brokers move leaders back by themselves where auto.leader.rebalance.enable is on.",
            "tidelog leader-election --election-type preferred --all-topic-partitions",
        )


_CHECKS: Final[tuple[tuple[Callable[[Facts], Iterable[Trouble]], str], ...]] = (
    (_leaderless, "each partition has a leader"),
    (_down, "each broker with replicas is there"),
    (_under_min_isr, "each partition has min.insync.replicas"),
    (_disks, "each log dir that could be asked is online and has room"),
    (_transactions, "no transaction is over its timeout"),
    (_quorum, "the metadata quorum has a leader, and its voters follow"),
    (_under_replicated, "each replica is in sync"),
    (_moving, ""),
    (_not_preferred, ""),
)
