"""The page docs/causes.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

NOT_DIAGNOSED: Final = "`tidelog why` has no check for it"
NOT_STAGED: Final = "a check is there and has unit tests; no scenario makes it on nodes yet"
SHARE: Final = "`tidelog why` refuses share groups by name"

NOT_MADE: Final[dict[str, str]] = {
    "G6 fenced static id": NOT_DIAGNOSED + "; the refused member gets the error, the coordinator keeps no list of refusals",
    "G9 denied": NOT_DIAGNOSED
    + "; no request tells what the authorizer denied to another user. By the code it looks like G8; not tried",
    "G11 commits refused": NOT_DIAGNOSED + "; by the code it is shown as G4; not tried, since commits do not come",
    "P3 high watermark behind the end": NOT_DIAGNOSED + "; only followers learn a log's end",
    "P6 will be lost": NOT_DIAGNOSED,
    "P7 other history": NOT_DIAGNOSED,
    "P9 batch too big for the client": NOT_DIAGNOSED + "; by the code it is shown as G4; not tried",
    "P10 poison record": NOT_DIAGNOSED + "; by the code it is shown as G4; not tried, whose advice names it",
    "P11 schema missing": NOT_DIAGNOSED + "; by the code it is shown as G4; not tried",
    "P12 cannot decompress": NOT_DIAGNOSED + "; by the code it is shown as G4; not tried",
    "R3 throttled": NOT_DIAGNOSED + "; its list of what is not visible says where to look",
    "R4 broker busy or cold reads": NOT_DIAGNOSED,
    "R6 paused": NOT_DIAGNOSED + "; by the code it is shown as G4; not tried, and its list of what is not visible says so",
}
"""The causes of the console's list that no scenario makes, each with the reason."""


ALL: Final = 39
"""Causes in the console's list."""


def page(rows: Sequence[tuple[str, str, str, str]], date: str, commit: str) -> str:
    right = sum(row[2] == "yes" for row in rows)
    named = sorted({row[0].split(",")[0] for row in rows if row[2] == "yes" and not row[0].startswith("none")})
    return "\n".join(
        [
            "# Causes made on a real node",
            "",
            f"`make causes`, {date}, on {commit}: {right} of {len(rows)} scenarios ended as they should. "
            "Each ran on a broker with confluent-kafka's clients; `tidelog why GROUP --json` ran in a process of its own and "
            "looked twice.",
            "[diagnosis.md](internals/diagnosis.md) says what the causes mean.",
            "",
            f"Of the {ALL} causes in the list, {len(named)} were made and named as primary: {', '.join(named)}. The rows with "
            f"none are groups that must raise no alarm. {len(NOT_MADE)} causes were not made. G4 is named because nothing "
            "is committed; that the member does not poll is not visible. P2 was made with one replica, where the node says that "
            "it counts with 1 instead of 2: that writes fail there was not shown. Burrow's rules were not run beside these.",
            "",
            *_table(("primary cause", "how it was made", "named with its evidence", "evidence"), rows),
            "",
            "## Causes that were not made",
            "",
            *_table(("cause", "why not"), NOT_MADE.items()),
            "",
        ]
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
