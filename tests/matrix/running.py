"""One scenario from an empty directory to its judgement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.matrix.cluster import MatrixCluster
from tests.matrix.load import NODE_SETTINGS, Load, longest_wait_s
from tests.matrix.scenarios import Row, Trial
from tests.matrix.secured_cluster import SecuredCluster
from tests.transactions.worker import INPUT, OUTPUT, PARTITIONS
from tidelog.testing.checker import Verdict

LAYOUTS = ("combined", "separate")
"""Three nodes that are broker and controller; three brokers, with three controllers beside them."""
SECURE = ", secure"
"""At the end of a layout whose listeners speak SASL_SSL, with an authorizer."""


@dataclass(kw_only=True)
class Outcome:
    """What came of a load on a cluster. ``wrong`` is empty when nothing is."""

    date: str = ""
    seconds: float = 0.0
    records: int = 0
    commits: int = 0
    aborts: int = 0
    longest_wait_s: float = 0.0
    replaced: int = 0
    """Clients that did not come back from a call."""
    wrong: list[str] = field(default_factory=list)

    def judge(self, cluster: MatrixCluster, load: Load, *, errors: bool) -> Verdict:
        """Takes what ``judge`` finds."""
        verdict, self.wrong = judge(cluster, load, errors=errors)
        if verdict.counts is not None:
            counts = verdict.counts
            self.records, self.commits, self.aborts = counts.sends, counts.commits, counts.aborts
        self.replaced = load.replaced
        self.longest_wait_s = round(longest_wait_s(load.files()), 1)
        return verdict

    @contextmanager
    def timed(self) -> Iterator[None]:
        """The run: when it was, how long it took, and how it failed, if it did."""
        self.date = datetime.now(UTC).strftime("%Y-%m-%d")
        began = time.monotonic()
        try:
            yield
        except Exception as failed:
            self.wrong.append(f"{type(failed).__name__}: {failed}")
        self.seconds = round(time.monotonic() - began, 1)

    @property
    def first_wrong(self) -> str:
        """A line for a table."""
        return self.wrong[0].splitlines()[0][:120].replace("|", "/") if self.wrong else "nothing"


@dataclass
class Result(Outcome):
    """Of a scenario."""

    scenario: str
    layout: str
    found: list[str] = field(default_factory=list)
    """What the checker found of a violation that was planted."""


def judge(cluster: MatrixCluster, load: Load, *, errors: bool) -> tuple[Verdict, list[str]]:
    """Clients end, everything is read; then the cluster must be whole. The verdict on the histories, and all that is wrong."""
    cluster.in_sync()
    verdict = load.finish()
    wrong = [] if verdict.valid else [verdict.text()]
    cluster.in_sync()
    said = [line for line in cluster.complaints() if not errors or "Traceback" in line]
    cluster.kill(*list(cluster.running))
    wrong += [f"replicas differ: {each}" for each in cluster.unlike((INPUT, OUTPUT), PARTITIONS)]
    wrong += [f"a node complained: {line}" for line in said[:20]]
    return verdict, wrong


def run(name: str, row: Row, layout: str, home: Path, say: Callable[[str], None], *, bounces: int = 5, seed: int = 7) -> Result:
    """The scenario on a fresh cluster in ``home``."""
    result = Result(name, layout)
    kind = SecuredCluster if layout.endswith(SECURE) else MatrixCluster
    combined = layout.removesuffix(SECURE) == "combined"
    with (
        result.timed(),
        kind(home / "nodes", row.brokers, combined=combined, properties=NODE_SETTINGS, seed=seed) as cluster,
        Load(home / "load", cluster, seed=seed, acks="1" if row.planted else "all") as load,
    ):
        trial = Trial(cluster, load, say, bounces)
        trial.whole()
        row.run(trial)
        trial.whole()
        verdict = result.judge(cluster, load, errors=row.errors)
        if row.planted:
            result.found = [anomaly.value for anomaly in verdict.anomalies]
    if row.planted:
        judged = [] if result.found else ["the planted violation was not found", *result.wrong]
        result.wrong = judged
    return result
