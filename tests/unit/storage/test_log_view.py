import ast
from pathlib import Path

import tidelog
from sim.workload import append, batch, new_log
from tidelog.storage import reading, retention
from tidelog.storage.local_log import LocalLog
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_view import LogView
from tidelog.storage.segments import Segments
from tidelog.storage.unified_log import UnifiedLog

PROMISED = [name for name in vars(LogView) if not name.startswith("_")]


OWNED = {*UnifiedLog.__slots__, *LocalLog.__slots__, *Segments.__slots__, "log_end_offset", "segments", "aborting"}
OWNERS = {"log.py", "local_log.py", "segments.py"}
LOGS = {"log", "_log", "files", "copy", "source", "stored"}
WIRED = {"on_roll"}


def writes(text: str) -> list[str]:
    """Assignments to fields of something that is called a log, or a log's files."""
    found = []
    for node in ast.walk(ast.parse(text)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
        for target in targets:
            if isinstance(target, ast.Attribute) and target.attr in OWNED - WIRED:
                base = target.value
                name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
                found += [f"{name}.{target.attr}"] if name in LOGS else []
    return found


def test_only_a_log_and_its_parts_write_their_fields() -> None:
    assert writes("partition.log.high_watermark = 3") == ["log.high_watermark"]
    package = Path(tidelog.__file__).parent
    files = [path for path in package.rglob("*.py") if path.parent.name != "storage" or path.name not in OWNERS]
    assert len(files) > 300
    assert {path.name: found for path in files if (found := writes(path.read_text()))} == {}


def test_a_log_is_what_a_view_promises() -> None:
    view: LogView = new_log()
    assert len(PROMISED) > 10 and [name for name in PROMISED if not hasattr(view, name)] == []


def test_a_plan_of_retention_changes_nothing() -> None:
    log = new_log(config=LogConfig(segment_bytes=100, retention_bytes=0))
    for _ in range(3):
        append(log, batch())
    log.update_high_watermark(log.log_end_offset)
    log.flush()
    before = list(log.segments)
    planned = retention.plan(log, 0)
    assert len(planned.doomed) == 2 and planned.roll
    assert log.segments == before and reading.read(log, 0, 1, upto=1, min_one=True).slice is not None
