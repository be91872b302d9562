"""A cluster is upgraded and downgraded node by node while clients use it; what they recorded is judged.

As the guide says it: `safe-to-stop`, stop, the other version's software, start, wait until all replicas are in sync. Features are
raised when every node runs the newer version, and lowered to what the older one supports before the first node goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.matrix.load import NODE_SETTINGS, Load
from tests.matrix.running import LAYOUTS, Outcome
from tests.upgrade.cluster import VersionedCluster
from tests.upgrade.versions import Version, levels_to_lower

SAFE_S = 50
MORE = 10
"""What every client has to be acknowledged after each step."""


@dataclass
class Result(Outcome):
    """Of one run."""

    older: str
    newer: str
    layout: str
    raised: dict[str, list[int]] = field(default_factory=dict)
    """Features whose level moved with the upgrade: before and after."""
    lowered: dict[str, int] = field(default_factory=dict)
    """What had to go down before the downgrade."""


@dataclass
class Rolling:
    """Two versions of one cluster under load."""

    cluster: VersionedCluster
    load: Load
    older: Version
    newer: Version
    say: Callable[[str], None]

    def roll(self, to: Version) -> None:
        """Node after node, nodes that are only controllers first, and last on the way back. Halfway the active controller is
        killed: a cluster of two versions has to stand that as well."""
        controllers_first = sorted(self.cluster.ids, key=lambda each: (each in self.cluster.brokers, each))
        for number, node_id in enumerate(controllers_first if to is self.newer else reversed(controllers_first)):
            if node_id in self.cluster.brokers:
                self.cluster.run_tool(
                    to, "safe-to-stop", str(node_id), "--wait", str(SAFE_S), "--bootstrap-server", self.cluster.bootstrap
                )
            self.cluster.stop(node_id)
            self.cluster.versions[node_id] = to
            self.cluster.start(node_id)
            self.say(f"node {node_id} runs {to.name}")
            self.whole()
            if number == len(self.cluster.ids) // 2:
                victim = self.cluster.controller()
                self.say(f"kill -9 node {victim}, the active controller ({self.cluster.version(victim).name})")
                self.cluster.kill(victim)
                self.load.go_on(MORE)
                self.cluster.start(victim)
                self.whole()

    def whole(self) -> None:
        """Every client goes on, every replica is in sync."""
        self.load.go_on(MORE)
        self.cluster.in_sync()

    def finalize(self) -> dict[str, list[int]]:
        """All features as of the newer version's release; what moved."""
        before = self.cluster.finalized()
        said = self.cluster.run_tool(
            self.newer, "features", "--bootstrap-server", self.cluster.bootstrap, "upgrade", "--release-version", self.release()
        )
        self.say(f"features upgrade: {said.strip().splitlines()}")
        after = self.cluster.finalized()
        return {name: [before.get(name, 0), after[name]] for name in sorted(after) if after[name] != before.get(name, 0)}

    def release(self) -> str:
        """The newest release that the newer version knows, such as 4.3-IV0."""
        lines = self.cluster.run_tool(self.newer, "features", "version-mapping").splitlines()
        return next(line for line in lines if line.startswith("metadata.version=")).partition("(")[2].rstrip(")")

    def lower(self) -> Mapping[str, int]:
        """Features down to what the older version supports."""
        lower = levels_to_lower(self.cluster.finalized(), self.older.supported())
        if lower:
            named = [text for name, level in lower.items() for text in ("--feature", f"{name}={level}")]
            self.cluster.run_tool(self.newer, "features", "--bootstrap-server", self.cluster.bootstrap, "downgrade", *named)
            self.say(f"features downgrade: {lower}")
        return lower


def run(older: Version, newer: Version, layout: str, home: Path, say: Callable[[str], None], seed: int = 7) -> Result:
    """There and back on a fresh cluster in ``home``."""
    assert layout in LAYOUTS, layout
    result = Result(older.name, newer.name, layout)
    with (
        result.timed(),
        VersionedCluster(home / "nodes", 3, older, combined=layout == "combined", properties=NODE_SETTINGS) as cluster,
        Load(home / "load", cluster, seed=seed, in_flight=1) as load,
    ):
        rolling = Rolling(cluster, load, older, newer, say)
        rolling.whole()
        rolling.roll(newer)
        result.raised = rolling.finalize()
        rolling.whole()
        result.lowered = dict(rolling.lower())
        rolling.roll(older)
        result.judge(cluster, load, errors=False)
    return result
