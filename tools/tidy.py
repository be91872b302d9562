"""Taste as a test: each finding names the remedy. ``python tools/tidy.py`` prints them and exits 1 when there are any.

Checked: length of modules and functions, module docstrings, tests that mirror the source, leftover marks, names that say
nothing, iteration over sets in machines (its order depends on the hash seed), links in the docs, files at the root, and
words that must not be published (paths and hosts of the machines this is developed on).
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "tidelog"
GENERATED = SRC / "protocol" / "messages"
MODULE_LINES = 500
FUNCTION_LINES = 60
ROOT_ENTRIES = 30
MACHINES = ("controller", "coordinator", "raft", "replication", "metadata")
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "stuff"}
MARKS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError")
PRIVATE = re.compile(r"/(?:work|root)/|(?:repo\d?|registry|pypi)\.(?:maven|npmjs|org)|//[a-z0-9.-]+\.(internal|corp|local)\b")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
UNMIRRORED = {"__init__.py", "__main__.py"}
# Modules that make sense only together with another one, and the test file that shows them.
SHOWN_BY = {
    "console/asking/changes.py": "console/web/test_topic_changes.py",
    "console/asking/producers.py": "console/web/test_security_pages.py",
    "console/reading/fetching.py": "console/web/test_record_pages.py",
    "console/web/context.py": "console/web/test_application.py",
    "metadata/image.py": "metadata/test_delta.py",
    "metadata/snapshot.py": "metadata/test_delta.py",
    "metadata/topics_delta.py": "metadata/test_delta.py",
    "controller/quorum_controller.py": "controller/test_quorum_of_one.py",
    "controller/result.py": "controller/test_quorum_of_one.py",
    "controller/snapshot_loading.py": "controller/test_quorum_of_one.py",
    "controller/replica_directories.py": "controller/test_broker_lifecycle.py",
    "raft/description.py": "broker/apis/cluster/test_quorum.py",
    # These are Spark's from the first line on; tests/pipeline has a session.
    "pipeline/backfilling.py": "../pipeline/test_replaying.py",
    "pipeline/batches.py": "../pipeline/test_run.py",
    "pipeline/compacting.py": "../pipeline/test_compacting.py",
    "pipeline/decoding.py": "../pipeline/test_decoding.py",
    "pipeline/expectations.py": "../pipeline/test_run.py",
    "pipeline/queries.py": "../pipeline/test_run.py",
    "pipeline/replaying.py": "../pipeline/test_replaying.py",
    "pipeline/running.py": "../pipeline/test_run.py",
    "pipeline/sinks/delta.py": "../pipeline/test_delta.py",
    "pipeline/sinks/jdbc.py": "../pipeline/test_jdbc.py",
    "pipeline/sinks/jdbc_connection.py": "../pipeline/test_jdbc.py",
    "testing/simulation/sockets.py": "testing/simulation/test_network.py",
    "testing/simulation/stream.py": "testing/simulation/test_network.py",
    "cli/tools/consumed_record.py": "cli/tools/test_message_formatters.py",
    "broker/replica_moves.py": "broker/apis/topics/test_log_dirs.py",
    "server/broker_parts.py": "server/test_node.py",
    "server/serving/connection_ports.py": "server/serving/test_connection_machine.py",
    "broker/ports.py": "broker/test_request.py",
    "registry/errors.py": "registry/test_registering.py",
    "registry/levels.py": "registry/test_settings.py",
    "registry/library.py": "registry/test_registering.py",
    "registry/model.py": "registry/test_reading.py",
    "registry/outcome.py": "registry/test_deleting.py",
    "registry/formats/avro/parsing.py": "registry/formats/avro/test_schema_format.py",
    "registry/formats/avro/printing.py": "registry/formats/avro/test_schema_format.py",
    "registry/formats/avro/types.py": "registry/formats/avro/test_schema_format.py",
    "registry/formats/json_schema/arrays.py": "registry/formats/json_schema/test_comparing.py",
    "registry/formats/json_schema/combined.py": "registry/formats/json_schema/test_comparing.py",
    "registry/formats/json_schema/documents.py": "registry/formats/json_schema/test_schema_format.py",
    "registry/formats/json_schema/objects.py": "registry/formats/json_schema/test_comparing.py",
    "registry/formats/json_schema/patterns.py": "registry/formats/json_schema/test_comparing.py",
    "registry/formats/json_schema/rules.py": "registry/formats/json_schema/test_comparing.py",
    "registry/formats/json_schema/values.py": "registry/formats/json_schema/test_comparing.py",
    "registry/formats/protobuf/built_in.py": "registry/formats/protobuf/test_schema_format.py",
    "registry/formats/protobuf/declarations.py": "registry/formats/protobuf/test_schema_format.py",
    "registry/formats/protobuf/options.py": "registry/formats/protobuf/test_schema_format.py",
    "registry/formats/protobuf/parsing.py": "registry/formats/protobuf/test_schema_format.py",
    "registry/formats/protobuf/printing.py": "registry/formats/protobuf/test_schema_format.py",
    "registry/formats/protobuf/resolving.py": "registry/formats/protobuf/test_schema_format.py",
    "registry/formats/protobuf/tokens.py": "registry/formats/protobuf/test_schema_format.py",
    "registry/rest/api.py": "registry/rest/test_routing.py",
    "registry/rest/schemas.py": "registry/test_reading.py",
    "registry/rest/settings_routes.py": "registry/test_settings.py",
    "registry/rest/subjects.py": "registry/test_registering.py",
    "registry/serving/leading.py": "../node/test_registry.py",
    "registry/serving/replaying.py": "registry/serving/test_node.py",
}


def tracked() -> list[Path]:
    """The files git knows or would take; build products are not ours to judge."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    return sorted(path for name in names if name and (path := ROOT / name).is_file())


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    first = node.body[0]
    doc = 0
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        doc = (first.end_lineno or first.lineno) - first.lineno + 1
    return (node.end_lineno or node.lineno) - node.lineno + 1 - doc


def is_set(node: ast.expr) -> bool:
    """A set literal, comprehension or call to ``set``/``frozenset``, as seen without types."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"set", "frozenset"}


def judge_module(path: Path, text: str) -> Iterator[str]:
    """Findings inside one Python module of the package."""
    tree = ast.parse(text)
    lines = text.count("\n") + 1
    if lines > MODULE_LINES:
        yield f"{lines} lines, more than {MODULE_LINES}: split it by decision, not by noun"
    if text.strip() and not ast.get_docstring(tree):
        yield "no module docstring: say what is decided here and what is deliberately elsewhere"
    if path.stem in EMPTY_NAMES:
        yield "the name says nothing: put each function beside the noun that it speaks about"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (length := body_lines(node)) > FUNCTION_LINES:
            yield f"{node.name} (line {node.lineno}): {length} lines, over {FUNCTION_LINES}: branch above, compute below"
        if path.relative_to(SRC).parts[0] in MACHINES:
            loops = [node.iter] if isinstance(node, ast.For | ast.comprehension) else []
            if any(is_set(loop) for loop in loops):
                yield f"iterates over a set (line {loops[0].lineno}): order is data, sort it or use a dict"


def judge_text(path: Path, text: str) -> Iterator[str]:
    """Findings in any tracked text file."""
    for number, line in enumerate(text.split("\n"), 1):
        if path.suffix == ".py" and path.parts[-2:] != ("tools", "tidy.py") and (mark := MARKS.search(line)):
            yield f"line {number}: {mark.group()}: finish it, or say in an issue why it stands"
        if path.parts[-2:] != ("tools", "tidy.py") and (private := PRIVATE.search(line)):
            yield f"line {number}: {private.group()!r} names a machine or a host: take it out"
    if path.suffix == ".md":
        for target in LINK.findall(text):
            if "://" not in target and not target.startswith("mailto:") and not (path.parent / target).exists():
                yield f"links to {target}, which is not there"


def judge_tree(files: list[Path]) -> Iterator[tuple[Path, str]]:
    """Findings about which files there are."""
    root = sorted({path.relative_to(ROOT).parts[0] for path in files})
    if len(root) > ROOT_ENTRIES:
        yield ROOT, f"{len(root)} entries at the root, more than {ROOT_ENTRIES}: find them a folder"
    for path in files:
        if path.suffix != ".py" or SRC not in path.parents or GENERATED in path.parents or path.name in UNMIRRORED:
            continue
        inside = path.relative_to(SRC)
        shown_by = SHOWN_BY.get(inside.as_posix())
        mirror = ROOT / "tests" / "unit" / (shown_by or inside.parent / f"test_{inside.name}")
        if not mirror.exists():
            yield path, f"no {mirror.relative_to(ROOT)}: every module has its test file"


def main() -> int:
    files = tracked()
    findings = list(judge_tree(files))
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if GENERATED not in path.parents:
            findings += [(path, finding) for finding in judge_text(path, text)]
        if path.suffix == ".py" and SRC in path.parents and GENERATED not in path.parents:
            findings += [(path, finding) for finding in judge_module(path, text)]
    for path, finding in findings:
        print(f"{path.relative_to(ROOT)}: {finding}")
    print(f"tidy: {len(findings)} findings in {len(files)} files")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
