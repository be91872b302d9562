"""Short histories, written in the order of events."""

from __future__ import annotations

from typing import Any

from tidelog.testing.checker import Anomaly, check_events

OUT = "out-0"


class Told:
    """``events`` is the history so far; each method is one thing that happened, both its question and its answer."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def note(self, process: str, kind: str, op: str, **fields: Any) -> Told:
        self.events.append({"time": len(self.events), "process": process, "type": kind, "op": op, **fields})
        return self

    def begin(self, process: str, txn: str) -> Told:
        return self.note(process, "ok", "begin", txn=txn)

    def send(self, process: str, value: str, offset: int | None, partition: str = OUT, kind: str = "ok", **more: Any) -> Told:
        self.note(process, "invoke", "send", partition=partition, value=value, **more)
        return self.note(process, kind, "send", value=value, offset=offset) if kind else self

    def end(self, process: str, op: str, txn: str, kind: str = "ok") -> Told:
        self.note(process, "invoke", op, txn=txn)
        return self.note(process, kind, op, txn=txn) if kind else self

    def commit(self, process: str, txn: str, kind: str = "ok") -> Told:
        return self.end(process, "commit", txn, kind)

    def abort(self, process: str, txn: str, kind: str = "ok") -> Told:
        return self.end(process, "abort", txn, kind)

    def poll(self, process: str, *records: tuple[int, str] | tuple[int, str, str], **more: Any) -> Told:
        """Records as (offset, value), in ``OUT`` unless a partition follows."""
        return self.note(
            process, "ok", "poll", records=[[*(record[2:] or (OUT,)), record[0], record[1]] for record in records], **more
        )

    def offsets(self, process: str, group: str, kind: str = "ok", *, txn: str | None = None, **offsets: int) -> Told:
        """``in_0=3`` is offset 3 of in-0."""
        more = {} if txn is None else {"txn": txn}
        named = {name.replace("_", "-"): offset for name, offset in offsets.items()}
        self.note(process, "invoke", "offsets", group=group, offsets=named, **more)
        return self.note(process, kind, "offsets", group=group, **more)

    def fetch(self, process: str, group: str, **offsets: int) -> Told:
        named = {name.replace("_", "-"): offset for name, offset in offsets.items()}
        return self.note(process, "invoke", "fetch").note(process, "ok", "fetch", group=group, offsets=named)

    def at(self, process: str, offset: int | None = 0, partition: str = OUT) -> Told:
        return self.note(process, "ok", "position", positions={partition: offset})

    def drain(self, process: str, position: int, partition: str = OUT) -> Told:
        return self.note(process, "ok", "drain", positions={partition: position})

    def found(self, *, write_order: bool = False) -> dict[Anomaly, int]:
        """What the checker says, with numbers."""
        return {anomaly: found.count for anomaly, found in check_events(self.events, write_order=write_order).anomalies.items()}
