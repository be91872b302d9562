"""A cluster whose nodes are of different versions: each process runs the sources that its node has at the moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.matrix.cluster import TOOL_LIMIT_S, MatrixCluster
from tests.node.cluster import CLUSTER_ID, ClusterFailed
from tests.upgrade.versions import Version
from tidelog.model.ids import uuid_to_text
from tidelog.protocol.messages.api_versions import ApiVersionsRequest
from tidelog.raft.voters import VoterSet


class VersionedCluster(MatrixCluster):
    """``versions``: what each node runs when it is started the next time. The first version formats all of them."""

    def __init__(self, directory: Path, count: int, first: Version, *, combined: bool, properties: dict[str, str]) -> None:
        self.first = first
        self.versions: dict[int, Version] = {}
        super().__init__(directory, count, combined=combined, properties=properties)

    def version(self, node_id: int) -> Version:
        """What it runs, or will run."""
        return self.versions.get(node_id, self.first)

    def format_node(self, node_id: int, voters: VoterSet | None) -> None:
        """By the first version's own tool."""
        file = self.directory / f"{node_id}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in self.settings(node_id).items()))
        named = [
            f"{each.voter_id}@{each.endpoints[0].host}:{each.endpoints[0].port}:{uuid_to_text(each.directory_id)}"
            for each in (voters.voters if voters is not None else ())
        ]
        how = ["--initial-controllers", ",".join(named)] if named else ["--no-initial-controllers"]
        self.run_tool(self.first, "format", "-c", str(file), "-t", CLUSTER_ID, *how)

    def command(self, node_id: int, properties: Path) -> list[str]:
        return [sys.executable, "-m", "tidelog.cli.main", "start", str(properties)]

    def environment(self, node_id: int) -> dict[str, str]:
        return self.version(node_id).environment()

    def run_tool(self, version: Version, *args: str) -> str:
        """``tidelog ARGS`` of that version; what it said. ClusterFailed unless it ends with 0."""
        command = [sys.executable, "-m", "tidelog.cli.main", *args]
        done = subprocess.run(
            command,
            env=version.environment(),
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=TOOL_LIMIT_S,
        )
        if done.returncode:
            raise ClusterFailed(f"tidelog {' '.join(args)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def finalized(self) -> dict[str, int]:
        """The levels of the cluster's features, as a broker tells them."""
        told = self.ask(self.answering(self.brokers)[0], ApiVersionsRequest("upgrade", "1"))
        return {each.name: each.max_version_level for each in told.finalized_features}
