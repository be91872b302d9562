"""The page about the matrix: counts, and what differs with its reason."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.matrix.report import put_between
from tests.security_matrix.differences import ON_PURPOSE, Comparison
from tests.security_matrix.principals import PRINCIPALS
from tidelog.protocol.api_keys import API_FACTS, ApiKey

PAGE = Path(__file__).parent.parent.parent / "docs" / "security-matrix.md"
BEGIN, END = "<!-- security matrix: begin -->", "<!-- security matrix: end -->"


def title(api: str) -> str:
    """``ALTER_CONFIGS`` -> ``AlterConfigs``."""
    return API_FACTS[ApiKey[api]].name


def text(found: Comparison, theirs: str) -> str:
    """The generated part. ``theirs``: the release of Apache Kafka."""
    keys = [*found.on_purpose, *found.open]
    total = found.equal + len(keys)
    lines = [
        f"Beside Apache Kafka {theirs}, {len(PRINCIPALS)} principals:",
        "",
        "| cells | equal | different on purpose | different and open |",
        "|---|---|---|---|",
        f"| {total:,} | {found.equal:,} | {len(found.on_purpose):,} | {len(found.open):,} |",
    ]
    counted = Counter(why.reason for _, _, why in found.on_purpose.values())
    apis: dict[str, dict[str, None]] = {}
    for each in ON_PURPOSE:
        apis.setdefault(each.reason, {}).update(dict.fromkeys(each.apis.split()))
    lines += ["", "| API | cells | what differs, and why |", "|---|---|---|"]
    lines += [f"| {', '.join(map(title, names))} | {counted[reason]:,} | {reason} |" for reason, names in apis.items()]
    if found.open:
        rows = Counter(key[1] for key in found.open)
        lines += ["", "Open: " + ", ".join(f"{api} {count}" for api, count in sorted(rows.items())) + "."]
    return "\n".join(lines)


def write(found: Comparison, theirs: str) -> None:
    """Into the page."""
    put_between(PAGE, BEGIN, END, text(found, theirs))
