"""The server-side assignors by name; the first one is the default."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidelog.coordinator.group.consumer.assignors.range_assignor import assign_range
from tidelog.coordinator.group.consumer.assignors.spec import GroupAssignment, GroupSpec, PartitionAssignorError
from tidelog.coordinator.group.consumer.assignors.uniform import assign_uniform

ASSIGNORS: Mapping[str, Callable[[GroupSpec], GroupAssignment]] = {"uniform": assign_uniform, "range": assign_range}


def assign(name: str, spec: GroupSpec) -> GroupAssignment:
    """The assignment that the named assignor computes; every member of ``spec`` is in it, possibly without partitions.

    Deterministic: equal arguments give equal results. Raises ``PartitionAssignorError``.
    """
    assignor = ASSIGNORS.get(name)
    if assignor is None:
        raise PartitionAssignorError(f"assignor {name!r} is unknown; there are {', '.join(ASSIGNORS)}")
    return assignor(spec)
