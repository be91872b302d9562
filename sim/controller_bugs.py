"""Bugs planted on purpose into the controller: the checkers have to find each of them, or they are worth nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sim.controller_security_bugs import SECURITY_BUGS
from tidelog.controller import (
    alter_partition,
    broker_lifecycle,
    broker_registration,
    dynamic_configs,
    leader_moves,
    partition_change,
)
from tidelog.controller.heartbeats import BrokerHeartbeats
from tidelog.controller.partition_index import PartitionIndex
from tidelog.metadata.image import BrokerImage, ClusterImage, PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.testing.simulation.patching import Patch, patched


def _forgiving(*codes: ErrorCode) -> list[Patch]:
    """AlterPartition does not look at some of what it has to look at."""
    honest = alter_partition._problem

    def problem(*args: Any) -> ErrorCode:
        code = honest(*args)
        return ErrorCode.NONE if code in codes else code

    return [(alter_partition, "_problem", problem)]


def _broker_epochs_ignored() -> list[Patch]:
    """A follower's old process is taken for the present one."""
    honest = alter_partition._wanted_isr
    return [(alter_partition, "_wanted_isr", lambda asked: [(member, alter_partition.ANY_EPOCH) for member, _ in honest(asked)])]


def _fenced_brokers_lead() -> list[Patch]:
    def check(image: ClusterImage, partition: PartitionImage, **more: Any) -> Callable[[int], bool]:
        return lambda replica: replica in image.brokers and replica in partition.replicas

    return [(leader_moves, "online_leader_check", check)]


def _unclean_ends_unnoticed() -> list[Patch]:
    """Who lost power counts as if it had stopped in order."""
    honest = leader_moves.when_restarted
    return [(broker_registration, "when_restarted", lambda decision, broker_id, clean: honest(decision, broker_id, clean=True))]


def _isr_shrinks_to_nothing() -> list[Patch]:
    """Somebody is elected from outside the ISR as if nothing could be lost by it."""
    honest = partition_change.choose_leader

    def leader(*args: Any) -> tuple[int, bool]:
        return honest(*args)[0], False

    return [(partition_change, "choose_leader", leader)]


def _reassignment_ends_early() -> list[Patch]:
    """The old replicas go although the new ones are not in sync yet."""

    def complete(self: Any) -> None:
        isr = [replica for replica in self.isr if replica not in self.removing]
        self.replicas = [replica for replica in self.replicas if replica not in self.removing]
        self.isr = isr or self.replicas[:1]
        self.adding, self.removing = [], []

    return [(partition_change._Target, "complete_reassignment", complete)]


def _eligible_for_ever() -> list[Patch]:
    """Who was eligible once stays so, also when the ISR is large enough to acknowledge without it."""

    def eligible(partition: PartitionImage, target: Any, wanted: Any, rules: Any) -> list[int]:
        candidates = sorted({*partition.elr, *partition.isr} & set(target.replicas))
        return [each for each in candidates if each not in target.isr and each != wanted.unclean_shutdown]

    return [(partition_change, "_eligible", eligible)]


def _index_forgets() -> list[Patch]:
    """A partition that changed is not looked at when its broker goes."""

    def add(self: PartitionIndex, topic_id: Any, number: int, partition: PartitionImage) -> None:
        if partition.partition_epoch < 3:
            honest(self, topic_id, number, partition)

    honest = PartitionIndex._add

    def remove(self: PartitionIndex, topic_id: Any, number: int, partition: PartitionImage) -> None:
        if partition.partition_epoch < 3:
            taken_out(self, topic_id, number, partition)

    taken_out = PartitionIndex._remove
    return [(PartitionIndex, "_add", add), (PartitionIndex, "_remove", remove)]


def _silence_unnoticed() -> list[Patch]:
    return [(BrokerHeartbeats, "take_expired", lambda self: None)]


def _fenced_without_moving_leaders() -> list[Patch]:
    return [(broker_lifecycle, "when_gone", lambda decision, broker_id: [])]


def _minimum_changes_unnoticed() -> list[Patch]:
    """Who was eligible under another minimum stays so."""

    def nothing(decision: Any, records: Sequence[Any]) -> list[Any]:
        return []

    return [(dynamic_configs, "_forgotten_eligibility", nothing)]


def _same_leader_epoch() -> list[Patch]:
    """A replica is taken away without a new leader epoch, and a leader that has left still leads."""
    honest = partition_change.choose_leader

    def leader(partition: PartitionImage, *more: Any) -> tuple[int, bool]:
        return (partition.leader, False) if partition.has_leader else honest(partition, *more)

    return [(partition_change, "choose_leader", leader)]


def _shutting_down_counts_as_up() -> list[Patch]:
    return [(BrokerImage, "active", property(lambda self: not self.fenced))]


BUGS: dict[str, Callable[[], list[Patch]]] = {
    "old partition epochs accepted": lambda: _forgiving(ErrorCode.INVALID_UPDATE_VERSION),
    "old leader epochs accepted": lambda: _forgiving(ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_REQUEST),
    "members out of service accepted": lambda: _forgiving(ErrorCode.INELIGIBLE_REPLICA),
    "broker epochs ignored": _broker_epochs_ignored,
    "fenced brokers lead": _fenced_brokers_lead,
    "unclean ends unnoticed": _unclean_ends_unnoticed,
    "unclean elections unmarked": _isr_shrinks_to_nothing,
    "reassignment ends early": _reassignment_ends_early,
    "eligible for ever": _eligible_for_ever,
    "index forgets": _index_forgets,
    "silence unnoticed": _silence_unnoticed,
    "fenced without moving leaders": _fenced_without_moving_leaders,
    "another minimum unnoticed": _minimum_changes_unnoticed,
    "a leader that left leads on": _same_leader_epoch,
    "shutting down counts as up": _shutting_down_counts_as_up,
    **SECURITY_BUGS,
}


def planted(bug: str) -> AbstractContextManager[None]:
    """The bug is there for the time of the block."""
    return patched(BUGS[bug]())
