"""The page docs/causes.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tests.causes.burrow import OK
from tests.causes.sampling import NO_OFFSETS, NOT_SAMPLED

NOT_MADE: Final[dict[str, str]] = {
    "R4 broker busy or cold reads": "a check is there and has unit tests; no scenario makes it: it takes a broker that uses a "
    "CPU for more than 80 % of the time, and these run beside others. Cold reads have no check",
}
"""The causes of the console's list that no scenario makes, each with the reason."""
NO_ALARMS: Final = ("G2", "G7", "P8", "R2", "R5")
"""Causes of the list that are none of a stuck group; they are made, and must not be named as primary."""


IN_PART: Final = (
    "What is seen only in part: G4 is named because nothing is committed; that the member does not poll is not visible. P9 and "
    "P10 are not certain, since a client's limits and its decoder are not visible; S7 and G11 are not, since refusals are seen "
    "by the refused alone. G9 needs an audit topic; R3, R6, G11 and S1 to S3 need the nodes' pages, P11 a registry's address."
)
ALL: Final = 39
"""Causes in the console's list."""


def page(rows: Sequence[tuple[str, str, str, str, str]], date: str, commit: str) -> str:
    right = sum(row[2] == "yes" for row in rows)
    named = sorted({row[0].split(",")[0] for row in rows if row[2] == "yes" and not row[0].startswith("none")})
    return "\n".join(
        [
            "# Causes made on real nodes",
            "",
            f"`make causes`, {date}, on {commit}: {right} of {len(rows)} scenarios ended as they should. "
            "Each ran on one node or on three, with confluent-kafka's clients where the row names no other; `tidelog why GROUP "
            "--json` ran in a process of its own, with `--endpoint` for each node, and looked twice.",
            "[diagnosis.md](internals/diagnosis.md) says what the causes mean.",
            "",
            f"Of the {ALL} causes in the list, {len(named)} were made and named as primary: {', '.join(named)}. "
            f"{', '.join(NO_ALARMS)} are no faults: the rows with none make them and other healthy groups, which must raise no "
            f"alarm. {len(NOT_MADE)} was not made.",
            "",
            IN_PART,
            "",
            *_table(("primary cause", "how it was made", "named with its evidence", "Burrow's rules", "evidence"), rows),
            "",
            *_beside_burrow(rows),
            "",
            "## Causes that were not made",
            "",
            *_table(("cause", "why not"), NOT_MADE.items()),
            "",
        ]
    )


def _beside_burrow(rows: Sequence[tuple[str, str, str, str, str]]) -> list[str]:
    """Counts of who finds what."""
    seen = [row for row in rows if row[3] not in (NOT_SAMPLED, NO_OFFSETS)]
    stuck = [row for row in seen if not row[0].startswith("none")]
    healthy = [row for row in seen if row[0].startswith("none")]
    found = [row for row in stuck if row[3] != OK]
    false = [row[1] for row in healthy if row[3] != OK]
    blind = sum(row[3] == NO_OFFSETS for row in rows)
    ours = sum(row[2] == "yes" for row in stuck)
    return [
        "## Beside Burrow's rules",
        "",
        "The column has the verdict of Burrow's published rules (`tests/causes/burrow.py`) over the same time: the commits in "
        "__consumer_offsets, and the ends of the logs, sampled every half second instead of every ten. It tells that a group is "
        "stuck, not why. It has seen a few seconds only; commits that come faster than the ends are sampled look as if the "
        "lag fell. Groups with a leader down were not sampled.",
        "",
        *_table(
            ("", "tidelog why", "Burrow's rules"),
            (
                (f"{len(stuck)} stuck groups with offsets", f"{ours} by their cause", f"{len(found)} as WARN or ERR"),
                (
                    f"{len(healthy)} healthy groups with offsets",
                    f"{sum(row[2] != 'yes' for row in healthy)} alarms",
                    f"{len(false)} alarms" + (f": {'; '.join(false)}" if false else ""),
                ),
                (
                    f"{blind} groups without committed offsets (share groups, G8, G12, T1)",
                    "as in their rows",
                    "nothing to look at",
                ),
            ),
        ),
    ]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
