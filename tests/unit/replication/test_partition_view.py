import ast
from pathlib import Path

import tidelog
from tests.unit.replication.followed import follow, followed, produce
from tests.unit.replication.world import NOW_MS
from tidelog.replication.isr_and_high_watermark import grown, shrunk
from tidelog.replication.leadership import Leadership
from tidelog.replication.partition import Partition
from tidelog.replication.partition_view import PartitionView
from tidelog.replication.replica import Replica

OWNED = {
    "partition.py": {*Partition.__slots__},
    "leadership.py": {*Leadership.__slots__},
    "replica.py": {*Replica.__slots__} - {"caught_up_ms"},
}
PARTITIONS = {"partition", "_partition", "hosted", "leadership", "replica", "follower"}


def writes(text: str, fields: set[str]) -> list[str]:
    """Assignments to these fields of something that is called a partition, its leadership, or a replica."""
    found = []
    for node in ast.walk(ast.parse(text)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
        targets = [each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
        for target in targets:
            if isinstance(target, ast.Attribute) and target.attr in fields:
                base = target.value
                name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
                found += [f"{name}.{target.attr}"] if name in PARTITIONS else []
    return found


def test_only_a_partition_writes_its_fields_and_only_its_leadership_those_of_the_followers() -> None:
    fields = set().union(*OWNED.values())
    assert writes("partition.isr, x = (1,), 2\npartition.leadership.pending = None", fields) == [
        "partition.isr",
        "leadership.pending",
    ]
    package = Path(tidelog.__file__).parent
    files = [
        path
        for folder in ("replication", "broker", "server", "coordinator", "storage", "testing")
        for path in (package / folder).rglob("*.py")
    ]
    assert len(files) > 200
    assert {path.name: found for path in files if (found := writes(path.read_text(), fields))} == {}


def test_a_partition_is_what_a_view_promises() -> None:
    _, partition = followed()
    view: PartitionView = partition
    promised = [name for name in vars(PartitionView) if not name.startswith("_")]
    assert len(promised) > 10 and [name for name in promised if not hasattr(view, name)] == []


def test_a_plan_for_the_isr_changes_nothing_until_it_is_asked_for() -> None:
    world, partition = followed()
    produce(partition)
    assert shrunk(partition, NOW_MS + 30_001) == (1,)
    assert grown(partition, NOW_MS) is None
    assert partition.leadership is not None and partition.leadership.pending is None
    assert not world.manager.isr_changes.ready
    partition.ask_isr(shrunk(partition, NOW_MS + 30_001))
    assert partition.leadership.pending == (1,) and world.manager.isr_changes.ready
    follow(partition, 1, NOW_MS + 30_002)
    assert shrunk(partition, NOW_MS + 90_000) is None, "one change at a time"
