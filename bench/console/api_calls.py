"""Every read of the console's API on a large cluster: time, CPU of console and brokers, requests, size of the answer.

Each call is made on a fresh console, which knows nothing of the cluster yet (*first*), and once more at once (*again*: what the
console keeps for all browsers answers it).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from bench.console.consoles import Console, console
from bench.console.filling import Size

IN_SIGHT = 50
"""Rows of a table whose facts a page asks for at once."""


@dataclass(frozen=True, slots=True)
class Call:
    """``page``: the page that makes it."""

    name: str
    page: str
    path: str


def calls(size: Size) -> Iterator[Call]:
    """What the pages ask for, with their parameters."""
    topic, group = size.topic(size.topics // 2), size.group(size.groups // 2)
    names = urlencode([("name", size.topic(index)) for index in range(min(IN_SIGHT, size.topics))])
    ids = urlencode([("id", size.group(index)) for index in range(min(IN_SIGHT, size.groups))])
    for name, page, path in (
        ("clusters", "clusters", ""),
        ("health", "health", "/health"),
        ("topics", "topics", "/topics?internal=0&limit=20000"),
        ("sizes of 50 topics", "topics", f"/topics/facts?{names}"),
        ("a topic", "topic", f"/topics/{topic}"),
        ("its settings", "topic", f"/topics/{topic}/config"),
        ("its groups", "topic", f"/topics/{topic}/groups"),
        ("its producers", "topic", f"/topics/{topic}/producers"),
        ("groups", "groups", "/groups?limit=20000"),
        ("lag of 50 groups", "groups", f"/groups/facts?{ids}"),
        ("a group", "group", f"/group?id={group}"),
        ("brokers", "brokers", "/brokers"),
        ("log dirs", "broker", "/logdirs"),
        ("quorum", "quorum", "/quorum"),
        ("moves", "moves", "/moves"),
        ("transactions", "transactions", "/transactions"),
        ("search", "search", "/search?q=many-00&limit=100"),
    ):
        yield Call(name, page, "clusters" if name == "clusters" else f"clusters/main{path}")


def _taken(found: Console, path: str) -> dict[str, Any]:
    with found.measured() as spent:
        reply = found.ask(path)
    if reply.status != 200:
        raise RuntimeError(f"{path[:100]}: {reply.status} {reply.data}")
    missing = [each["what"] for each in reply.data["partial"]]
    return {
        **spent[0].as_json(),
        "ms": round(reply.seconds * 1000, 1),
        "wire_bytes": reply.wire,
        "plain_bytes": reply.plain,
        "missing": missing,
    }


def measure(bootstrap: str, folder: Path, brokers: Mapping[int, int], size: Size, only: str = "") -> dict[str, Any]:
    """By the name of the call: ``first``, ``again`` and the console's memory afterwards."""
    found: dict[str, Any] = {}
    for call in calls(size):
        if only and only not in call.name:
            continue
        with console(bootstrap, folder, brokers) as fresh:
            fresh.ask("session")
            first = _taken(fresh, call.path)
            again = _taken(fresh, call.path)
            found[call.name] = {"page": call.page, "first": first, "again": again, "memory_mb": round(fresh.most_memory(), 1)}
        print(f"  {call.name}: {told(found[call.name])}", file=sys.stderr, flush=True)
    return found


def told(row: Mapping[str, Any]) -> str:
    """A line about one call."""
    first, again = row["first"], row["again"]
    brokers = sum(first["brokers_cpu_s"].values())
    return (
        f"{first['ms']:.0f} ms, console {first['console_cpu_s'] * 1000:.0f} ms CPU (longest turn "
        f"{first['longest_turn_cpu_ms']:.0f}), brokers {brokers * 1000:.0f} ms CPU, {sum(first['requests'].values())} requests, "
        f"{first['wire_bytes']:,} of {first['plain_bytes']:,} B; again {again['ms']:.0f} ms, console "
        f"{again['console_cpu_s'] * 1000:.0f} ms CPU; {row['memory_mb']:.0f} MB"
        + (f"; MISSING {', '.join(first['missing'])}" if first["missing"] else "")
    )
