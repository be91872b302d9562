"""What the kills came to so far: a file that runs add to, and a page for people."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEAD = """\
# Pipelines under kill -9

Made by `make pipeline-kills` (`tests/pipeline/kills.py`): pipelines from a topic of four partitions into several sinks at once,
with many kills in a run while records keep coming; then each sink is read without tidelog and compared with the topic. Victims:
the driver (its Python and its JVM, every other time with all workers; all sinks of a run are in that one driver), an executor of
a standalone cluster (a master and a worker with two executors), the broker (a tidelog node). Executors and broker are killed in
turns in the same runs. A sleeper is a driver that was stopped (SIGSTOP), woke after another one had taken its place, and went on
beside it for some seconds: a zombie. `bulk-` are sinks of `engine: bulk`; Iceberg is written on PySpark 4.1, the others on 4.2.
"In a batch" are kills at which Spark's checkpoint had a batch that was begun and not ended. A run counts with all its kills for
each of its sinks, once it has come to its end and its sinks were read.

What happened to others is played as well, for tables written by Spark's Iceberg (`tests/spark/test_iceberg_drivers.py`) and for
those written without it (`tests/unit/pipeline/lake/test_second_drivers.py`): apache/iceberg#17551, #17340, #16282 and #17637.
"""


@dataclass
class Note:
    """What was done so far, by victim and sink."""

    path: Path
    done: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Note:
        """From its file, or empty."""
        return cls(path, json.loads(path.read_text()) if path.exists() else {})

    def kills(self, victim: str, sink: str) -> int:
        """How many."""
        return int(self.done.get(victim, {}).get(sink, {}).get("kills", 0))

    def left(self, victim: str, sinks: tuple[str, ...], goal: int) -> int:
        """How many are to come until each sink has had so many."""
        return max(0, goal - min(self.kills(victim, sink) for sink in sinks))

    def add(
        self,
        verdicts: dict[str, str],
        kills: Counter[str],
        in_batch: Counter[str],
        rows: int,
        ended_alone: int,
        when: str,
    ) -> None:
        """Count a run that came to its end. What another process has added meanwhile stays."""
        self.done = Note.read(self.path).done
        for victim, times in kills.items():
            for sink, wrong in verdicts.items():
                row = self.done.setdefault(victim, {}).setdefault(sink, {"wrong": []})
                for name, value in (
                    ("kills", times),
                    ("in batch", in_batch[victim]),
                    ("runs", 1),
                    ("rows", rows),
                    ("ended alone", ended_alone),
                ):
                    row[name] = row.get(name, 0) + value
                row["last"] = when
                if wrong:
                    row["wrong"].append(f"{when}: {wrong}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.done, indent=1))

    def page(self) -> str:
        """As a page."""
        lines = [
            HEAD,
            "| victim | sink | kills | in a batch | runs | rows, each once | wrong | last run |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for victim, sinks in sorted(self.done.items()):
            for sink, row in sorted(sinks.items()):
                wrong = "none" if not row["wrong"] else "; ".join(row["wrong"])
                lines.append(
                    f"| {victim} | {sink} | {row['kills']} | {row['in batch']} | {row['runs']} | {row['rows']:,} | {wrong} "
                    f"| {row['last']} |"
                )
        return "\n".join(lines) + "\n"
