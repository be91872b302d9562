"""What becomes of one partition: its leader, which replicas are in sync or eligible, and the one record that says so.

``change_partition`` takes a partition and what is wanted of it, in whole: another ISR, other replicas, an election. It decides in
Kafka's order, because standbys of either make replay the records of either make:

    a reassignment that the wanted ISR completes -> ELR -> election -> epoch bumps -> the fields that differ

With ELR (KIP-966) a partition with fewer than ``min_isr`` in sync remembers who left the ISR since: whatever was acknowledged
is on every one of them, so they may lead when the ISR is empty, which it then may be. The last known leader is kept when even
they are gone: it leads again, uncleanly, should it come back. Without ELR the ISR is never empty: its last members stay in it
without leading, and one of them has to come back. The election itself is in ``leader_election``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.controller.leader_election import Acceptable, Candidates, Election, choose_leader
from tidelog.metadata.image import RECOVERING, PartitionImage
from tidelog.metadata.supported_features import DIRECTORIES_MV, NO_EPOCH_BUMP_MV
from tidelog.metadata.topics_delta import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE
from tidelog.model.ids import NO_BROKER, Uuid
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord


class ChangeRules(NamedTuple):
    """What a change depends on besides the partition. ``min_isr`` is the effective ``min.insync.replicas``, at most the number
    of replicas."""

    metadata_version: int
    elr_enabled: bool
    min_isr: int
    default_directory: Callable[[int], Uuid]
    """The log dir of a new replica on a broker."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted change; None leaves a field unchanged."""

    isr: Sequence[int] | None = None
    replicas: Sequence[int] | None = None
    adding: Sequence[int] | None = None
    removing: Sequence[int] | None = None
    leader_recovery_state: int | None = None
    election: Election = Election.ONLINE
    unclean_shutdown: int = NO_BROKER
    """A broker that may have lost acknowledged records; it is removed from the eligible leaders."""
    directories: Mapping[int, Uuid] = field(default_factory=dict)
    """Changed log dirs of replicas, by broker."""


@dataclass(slots=True)
class _Target:
    """The partition as it will be."""

    isr: list[int]
    replicas: list[int]
    adding: list[int]
    removing: list[int]
    elr: list[int]

    def complete_reassignment(self) -> None:
        """Completes a reassignment once all added replicas are in sync: the removed replicas go. When more are removed than
        added, all remaining ones must be in sync, so that the partition does not end with fewer in sync than it needs."""
        if not self.adding and not self.removing:
            return
        isr = [replica for replica in self.isr if replica not in self.removing]
        replicas = [replica for replica in self.replicas if replica not in self.removing]
        needed = {*self.adding, *(replicas if len(self.adding) < len(self.removing) else ())}
        if (not self.removing or (isr and replicas)) and needed <= set(isr):
            self.isr, self.replicas, self.adding, self.removing = isr, replicas, [], []


def change_partition(
    topic_id: Uuid, number: int, partition: PartitionImage, wanted: Wanted, rules: ChangeRules, acceptable: Acceptable
) -> PartitionChangeRecord | None:
    """The change that makes ``partition`` as wanted, as far as possible; None when nothing changes."""
    target = _target(partition, wanted)
    target.complete_reassignment()
    target.elr = _eligible(partition, target, wanted, rules)
    record = PartitionChangeRecord(partition_id=number, topic_id=topic_id)
    _elect(record, partition, target, wanted, rules, acceptable)
    if rules.elr_enabled and len(target.isr) >= max(1, rules.min_isr):
        target.elr = []  # a leader elected from ELR acknowledges alone from now on
    if record.leader == NO_LEADER_CHANGE and not set(partition.replicas) <= set(target.replicas):
        # A new leader epoch fences off removed replicas.
        record.leader = partition.leader
    if record.isr is not None or (target.isr and not rules.elr_enabled):
        target.elr = []
    if target.elr != list(partition.elr):
        record.eligible_leader_replicas = target.elr
    if record.isr is None and (target.isr or rules.elr_enabled) and target.isr != list(partition.isr):
        record.isr = target.isr
    if _needs_bump_for_shrink(record, partition, rules):
        record.leader = partition.leader
    _remember_leader(record, partition, target, rules)
    _set_assignment(record, partition, target, wanted, rules)
    recovery = wanted.leader_recovery_state
    if recovery is not None and recovery != partition.leader_recovery_state:
        record.leader_recovery_state = recovery
    return None if _is_empty(record) else record


def _target(partition: PartitionImage, wanted: Wanted) -> _Target:
    return _Target(
        isr=list(partition.isr if wanted.isr is None else wanted.isr),
        replicas=list(partition.replicas if wanted.replicas is None else wanted.replicas),
        adding=list(partition.adding_replicas if wanted.adding is None else wanted.adding),
        removing=list(partition.removing_replicas if wanted.removing is None else wanted.removing),
        elr=list(partition.elr),
    )


def _eligible(partition: PartitionImage, target: _Target, wanted: Wanted, rules: ChangeRules) -> list[int]:
    """The replicas in sync when the ISR fell below ``min_isr`` and since: nothing was acknowledged without them.

    Kafka also keeps removed replicas: they can never lead, and block all others while they are listed. Without ELR the previous
    ones count only where no replica was in sync, so that nothing can have been acknowledged since.
    """
    if not rules.elr_enabled and partition.isr:
        return []
    if rules.elr_enabled and len(target.isr) >= rules.min_isr:
        return []
    candidates = sorted({*partition.elr, *partition.isr} & set(target.replicas))
    return [each for each in candidates if each not in target.isr and each != wanted.unclean_shutdown]


def _elect(
    record: PartitionChangeRecord,
    partition: PartitionImage,
    target: _Target,
    wanted: Wanted,
    rules: ChangeRules,
    acceptable: Acceptable,
) -> None:
    last_known = [each for each in partition.last_known_elr if each in target.replicas]
    candidates = Candidates(partition.leader, target.replicas, target.isr, target.elr, last_known if rules.elr_enabled else [])
    leader, unclean = choose_leader(candidates, wanted.election, acceptable)
    if leader == partition.leader:
        return
    if leader in target.elr:
        target.isr = [leader]
        target.elr = [each for each in target.elr if each != leader]
    record.leader = leader
    if unclean:
        record.isr = [leader]
        if partition.leader_recovery_state != RECOVERING:
            record.leader_recovery_state = RECOVERING


def _needs_bump_for_shrink(record: PartitionChangeRecord, partition: PartitionImage, rules: ChangeRules) -> bool:
    """Before metadata.version 3.6 brokers relied on a new leader epoch whenever the ISR shrank (KAFKA-15021)."""
    if rules.metadata_version >= NO_EPOCH_BUMP_MV or record.leader != NO_LEADER_CHANGE or record.isr is None:
        return False
    return not set(partition.isr) <= set(record.isr)


def _remember_leader(record: PartitionChangeRecord, partition: PartitionImage, target: _Target, rules: ChangeRules) -> None:
    """Remembers the last leader while there is none; the first replica instead of a removed one."""
    gone = bool(partition.last_known_elr) and not {*partition.last_known_elr} & {*target.replicas}
    if (record.leader == NO_BROKER and not partition.last_known_elr) or (record.leader < 0 and gone):
        stays = partition.leader in (NO_BROKER, *target.replicas) and not gone
        last = partition.leader if stays else target.replicas[0]
        record.last_known_elr = [last] if rules.elr_enabled else None
    elif record.leader >= 0 and partition.last_known_elr:
        record.last_known_elr = []


def _set_assignment(
    record: PartitionChangeRecord, partition: PartitionImage, target: _Target, wanted: Wanted, rules: ChangeRules
) -> None:
    if rules.metadata_version >= DIRECTORIES_MV:
        known = dict(zip(partition.replicas, partition.directories, strict=True)) | dict(wanted.directories)
        directories = [known[each] if each in known else rules.default_directory(each) for each in target.replicas]
        if directories != list(partition.directories):
            record.directories = list(directories)
    if target.replicas != list(partition.replicas):
        record.replicas = target.replicas
    if target.removing != list(partition.removing_replicas):
        record.removing_replicas = target.removing
    if target.adding != list(partition.adding_replicas):
        record.adding_replicas = target.adding


def _is_empty(record: PartitionChangeRecord) -> bool:
    lists = (
        record.isr,
        record.replicas,
        record.removing_replicas,
        record.adding_replicas,
        record.directories,
        record.eligible_leader_replicas,
        record.last_known_elr,
    )
    unchanged = record.leader == NO_LEADER_CHANGE and record.leader_recovery_state == NO_RECOVERY_CHANGE
    return unchanged and all(each is None for each in lists)
