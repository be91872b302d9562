"""The server-side assignors by their names; the first one is what a member gets that asks for none."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidelog.coordinator.group.consumer.assignors.range_assignor import assign_range
from tidelog.coordinator.group.consumer.assignors.spec import GroupAssignment, GroupSpec, PartitionAssignorError
from tidelog.coordinator.group.consumer.assignors.uniform import assign_uniform

ASSIGNORS: Mapping[str, Callable[[GroupSpec], GroupAssignment]] = {"uniform": assign_uniform, "range": assign_range}


def assign(name: str, spec: GroupSpec) -> GroupAssignment:
    """The assignment by the assignor of that name, with every member of ``spec`` in it, if only with nothing.

    Deterministic: equal arguments give equal results. Raises ``PartitionAssignorError``.
    """
    assignor = ASSIGNORS.get(name)
    if assignor is None:
        raise PartitionAssignorError(f"assignor {name!r} is unknown; there are {', '.join(ASSIGNORS)}")
    return assignor(spec)
