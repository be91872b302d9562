"""``python -m tests.security_matrix``: all cells against Apache Kafka and tidelog; exits with 1 when a difference is open.

``--write`` records the outcomes in ``table.txt`` and the counts on the page. ``--recorded`` compares tidelog with the recorded
outcomes, without Java. ``--api`` runs the cells of some APIs only, and records none: others have to be as they were.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tests.interop.java import JavaSide
from tests.interop.nodes import running
from tests.security_matrix import page
from tests.security_matrix.all_cases import all_cells
from tests.security_matrix.case import Cell
from tests.security_matrix.differences import Comparison, compare
from tests.security_matrix.nodes import secured_node
from tests.security_matrix.running import outcomes
from tests.security_matrix.table import Key, Table, key, read, write

APACHE_KAFKA = "4.3.1"
"""The release of tests/interop/setup/pom.xml."""


def run(kind: str, cells: list[Cell], folder: Path) -> dict[Key, str]:
    """The outcomes of a fresh node."""
    java = JavaSide(folder / "java.log") if kind == "apache" else None
    node, ports = secured_node(kind, folder / kind, java)
    with running(node):
        if java is not None:
            java.close()
        try:
            return {key(cell): outcome for cell, outcome in outcomes(ports, cells).items()}
        except BaseException:
            print(node.log_tail(), file=sys.stderr)
            raise


def report(found: Comparison, limit: int) -> None:
    """What differs and is open, by row."""
    rows: dict[tuple[str, str, int, str, str, str], list[str]] = defaultdict(list)
    for (listener, api, version, state, user), (theirs, ours) in found.open.items():
        rows[listener, api, version, state, theirs, ours].append(user)
    for (listener, api, version, state, theirs, ours), users in list(rows.items())[:limit]:
        print(f"{listener} {api} {version} {state}: {' '.join(users)}\n  Apache Kafka: {theirs}\n  tidelog:      {ours}")
    if len(rows) > limit:
        print(f"... and {len(rows) - limit} more")
    print(f"{found.equal} equal, {len(found.on_purpose)} different on purpose, {len(found.open)} different and open")


def main() -> int:
    parser = argparse.ArgumentParser(description="Decisions of Apache Kafka and tidelog, cell by cell")
    parser.add_argument("--write", action="store_true", help="record the outcomes and the page")
    parser.add_argument("--recorded", action="store_true", help="compare with the recorded outcomes of Apache Kafka")
    parser.add_argument("--api", nargs="+", help="only these APIs")
    parser.add_argument("--limit", type=int, default=40, help="rows to print")
    options = parser.parse_args()
    if options.write and options.api:
        parser.error("--write records all cells: leave --api out")
    cells = [cell for cell in all_cells() if options.api is None or cell.case.api.name in options.api]
    with tempfile.TemporaryDirectory() as folder:
        theirs = read(cells).apache if options.recorded else run("apache", cells, Path(folder))
        ours = run("tidelog", cells, Path(folder))
    found = compare(theirs, ours)
    report(found, options.limit)
    if options.write:
        write(Table(theirs, {at: ours for at, (_, ours, _) in found.on_purpose.items()}))
        page.write(found, APACHE_KAFKA)
    return 1 if found.open else 0


if __name__ == "__main__":
    sys.exit(main())
