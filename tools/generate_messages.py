"""Writes ``src/tidelog/protocol/messages/*.py`` and the tables beside it from ``src/tidelog/protocol/definitions/*.txt``.

python tools/generate_messages.py           writes them
python tools/generate_messages.py --check   exit status 1 when a checked-in file is stale
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tidelog.protocol.schema import FOREVER, Message, parse, snake_case  # noqa: E402
from tools.message_code import HEAD, module_text  # noqa: E402

PROTOCOL = ROOT / "src/tidelog/protocol"


def load() -> list[Message]:
    """All messages of all definitions files."""
    return [m for path in sorted((PROTOCOL / "definitions").glob("*.txt")) for m in parse(path.read_text())]


def constant_case(name: str) -> str:
    return snake_case(name).upper()


def api_keys_text(messages: Iterable[Message]) -> str:
    """The table of RPCs."""
    requests = sorted((m for m in messages if m.kind == "request"), key=lambda m: m.key)
    lines = [
        HEAD,
        "from __future__ import annotations",
        "",
        "from enum import IntEnum",
        "from typing import NamedTuple",
        "",
        "",
        "class ApiKey(IntEnum):",
        '    """The number of each RPC. Kafka has retired 4 to 7; they are neither served nor advertised."""',
        "",
        *(f"    {constant_case(m.name.removesuffix('Request'))} = {m.key}" for m in requests),
        "",
        "",
        "class ApiFacts(NamedTuple):",
        '    """What Kafka 4.4 defines for one RPC. ``stable_max``: the newest released version, which may not be the last."""',
        "",
        "    name: str",
        "    module: str",
        "    min_version: int",
        "    max_version: int",
        "    stable_max: int",
        "    flexible_from: int",
        "    listeners: tuple[str, ...]",
        "",
        "",
        "API_FACTS: dict[int, ApiFacts] = {",
    ]
    for m in requests:
        low, high = m.versions
        flexible = m.flexible[0] if m.flexible[0] <= m.flexible[1] else FOREVER
        stable = high - 1 if m.latest_unstable else high
        listeners = ", ".join(f'"{name}"' for name in m.listeners) + ("," if len(m.listeners) == 1 else "")
        name = m.name.removesuffix("Request")
        lines.append(f'    {m.key}: ApiFacts("{name}", "{m.module}", {low}, {high}, {stable}, {flexible}, ({listeners})),')
    return "\n".join([*lines, "}"]) + "\n"


def record_types_text(messages: list[Message]) -> str:
    """Which number stands for which record, per kind of log."""
    metadata = sorted((m for m in messages if m.kind == "metadata"), key=lambda m: m.key)
    lines = [HEAD, "from __future__ import annotations", "", "METADATA_RECORD_TYPES: dict[int, str] = {"]
    lines += [f'    {m.key}: "{m.name}",' for m in metadata if m.name not in STORAGE_RECORDS] + ["}"]
    lines += ['"""Type of a record of ``__cluster_metadata`` -> its message."""']
    for path, constant, topic in COORDINATOR_LOGS:
        pairs: dict[int, dict[str, str]] = {}
        for m in parse((PROTOCOL / "definitions" / path).read_text()):
            if m.kind in ("key", "value"):
                pairs.setdefault(m.key, {})[m.kind] = m.name
        lines += ["", f"{constant}: dict[int, tuple[str, str]] = {{"]
        lines += [f'    {key}: ("{pair["key"]}", "{pair["value"]}"),' for key, pair in sorted(pairs.items())] + ["}"]
        lines += [f'"""Type of a record of ``{topic}`` (the version its key begins with) -> messages of key and value."""']
    lines += ["", "DATA_MODULES: dict[str, str] = {"]
    lines += [
        f'    "{m.name}": "{m.module}",' for m in sorted(messages, key=lambda m: m.name) if m.kind not in ("request", "response")
    ]
    lines += ["}", '"""Every message that is no RPC -> its module under ``messages/``."""']
    return "\n".join(lines) + "\n"


STORAGE_RECORDS = {m.name for m in parse((PROTOCOL / "definitions/storage.txt").read_text())}
COORDINATOR_LOGS = (
    ("group_coordinator.txt", "GROUP_RECORD_TYPES", "__consumer_offsets"),
    ("transaction_coordinator.txt", "TRANSACTION_RECORD_TYPES", "__transaction_state"),
    ("share_coordinator.txt", "SHARE_RECORD_TYPES", "__share_group_state"),
)


def outputs() -> dict[Path, str]:
    """Every generated file with its text."""
    messages = load()
    head = '"""Generated: one module per RPC (request and response) and per record, imported when first needed."""\n'
    files = {PROTOCOL / "messages/__init__.py": head}
    ordered = sorted(messages, key=lambda m: (m.module, m.kind))
    for name, group in groupby(ordered, key=lambda m: m.module):
        files[PROTOCOL / f"messages/{name}.py"] = module_text(list(group))
    files[PROTOCOL / "api_keys.py"] = api_keys_text(messages)
    files[PROTOCOL / "record_types.py"] = record_types_text(messages)
    return files


def main() -> None:
    """Writes or checks."""
    files = outputs()
    present = set((PROTOCOL / "messages").glob("*.py"))
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    gone = sorted(present - set(files))
    if "--check" in sys.argv[1:]:
        if stale or gone:
            names = ", ".join(str(path.relative_to(ROOT)) for path in [*stale, *gone][:5])
            sys.exit(f"{len(stale) + len(gone)} generated files are stale ({names}): run python tools/generate_messages.py")
        return
    for path in stale:
        path.write_text(files[path])
    for path in gone:
        path.unlink()
    print(f"{len(files)} files, {len(stale)} written, {len(gone)} removed")


if __name__ == "__main__":
    main()
