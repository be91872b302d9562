"""The table of outcomes as a text file: compact, and a diff of two of them can be read.

Blocks are parted by empty lines. A block has the rows that share all outcomes (``listener API version state``), then an outcome
and its users on each following line, indented. The outcome of most users is the line with ``others``; ``but-*`` are all users
with all rights but one, without those that follow with a ``^``. A line that begins with ``!`` is what tidelog answers where that
differs on purpose.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.security_matrix.case import Cell
from tests.security_matrix.principals import PRINCIPALS

Key = tuple[str, str, int, str, str]
"""(listener, API, version, state, user)."""
PATH = Path(__file__).parent / "table.txt"
OTHERS = "others"
ALL_BUT = "but-*"
BUT = [user for user in PRINCIPALS if user.startswith("but-")]
ROW = re.compile(r"(broker|controller) ([A-Z_]+) (\d+) (.*)")


def key(cell: Cell) -> Key:
    """What identifies a cell in the table."""
    return *cell.row, cell.user


@dataclass
class Table:
    """Outcomes of Apache Kafka, and those of tidelog that differ on purpose."""

    apache: dict[Key, str] = field(default_factory=dict)
    on_purpose: dict[Key, str] = field(default_factory=dict)

    def expected(self, of: Key) -> str:
        """The outcome that tidelog has to give. KeyError for a cell that is not in the table."""
        return self.on_purpose.get(of, self.apache[of])


def write(table: Table, path: Path = PATH) -> None:
    """The file."""
    path.write_text("\n".join(_blocks(table)))


def _blocks(table: Table) -> Iterable[str]:
    rows: dict[Key, dict[str, str]] = defaultdict(dict)
    for mark, outcomes in (("", table.apache), ("!", table.on_purpose)):
        for (*row, user), outcome in outcomes.items():
            rows[tuple(row)][mark + user] = outcome  # type: ignore[index]
    bodies: dict[str, list[str]] = defaultdict(list)
    for row, outcomes in rows.items():
        bodies[_body(outcomes)].append(" ".join(map(str, row)))
    for body, names in bodies.items():
        yield "\n".join(names) + "\n" + body


def _body(outcomes: Mapping[str, str]) -> str:
    plain = {user: outcome for user, outcome in outcomes.items() if not user.startswith("!")}
    ours = {user[1:]: outcome for user, outcome in outcomes.items() if user.startswith("!")}
    counted = Counter(plain.values())
    lines = []
    for outcome, _ in counted.most_common():
        users = [user for user, found in plain.items() if found == outcome]
        lines.append(f"  {outcome} : {OTHERS if not lines else _short(users)}")
    for outcome in dict.fromkeys(ours.values()):
        lines.append(f"! {outcome} : {_short([user for user, found in ours.items() if found == outcome])}")
    return "\n".join(lines) + "\n"


def _short(users: list[str]) -> str:
    """The users; most of those with all rights but one as the exceptions."""
    inside = [user for user in users if user in BUT]
    if len(inside) <= len(BUT) // 2:
        return " ".join(users)
    missing = [f"^{user}" for user in BUT if user not in inside]
    return " ".join([*(user for user in users if user not in BUT), ALL_BUT, *missing])


def _long(text: str) -> set[str]:
    words = text.split()
    found = {word for word in words if not word.startswith("^") and word != ALL_BUT}
    return found | set(BUT) - {word[1:] for word in words if word.startswith("^")} if ALL_BUT in words else found


def read(cells: Iterable[Cell], path: Path = PATH) -> Table:
    """The outcomes of these cells, as far as the file has their rows."""
    users: dict[tuple[str, str, int, str], list[str]] = defaultdict(list)
    for cell in cells:
        users[cell.row].append(cell.user)
    table = Table()
    for block in path.read_text().split("\n\n"):
        lines = block.strip("\n").split("\n")
        for line in (line for line in lines if not line.startswith((" ", "!"))):
            listener, api, version, state = ROW.fullmatch(line).groups()  # type: ignore[union-attr]
            row = listener, api, int(version), state
            _read_body(table, row, users.get(row, []), [line for line in lines if line.startswith((" ", "!"))])
    return table


def _read_body(table: Table, row: tuple[str, str, int, str], users: list[str], lines: list[str]) -> None:
    others = None
    for line in lines:
        outcome, _, named = line[2:].rpartition(" : ")
        if named == OTHERS:
            others = outcome
            continue
        target = table.on_purpose if line.startswith("!") else table.apache
        target |= {(*row, user): outcome for user in _long(named).intersection(users)}
    for user in users:
        if others is not None:
            table.apache.setdefault((*row, user), others)
