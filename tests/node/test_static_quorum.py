"""Nodes whose quorum stands in ``controller.quorum.voters``: raised to kraft.version 1, it changes while the cluster runs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

from tests.interop.nodes import environment
from tests.node.cluster import CLUSTER_ID, Cluster
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.server.disk import DiskFileSystem


class StaticQuorum(Cluster):
    """``moved``: the nodes whose ``server.properties`` name bootstrap servers by now, as those of a dynamic quorum do."""

    moved = False

    def _format(self, features: dict[str, int] | None) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        for node_id in self.ids:
            request = FormatRequest([str(self.path(node_id))], node_id, CLUSTER_ID)
            format_dirs(DiskFileSystem(), request, rng=random.Random(node_id), now_ms=1_800_000_000_000)

    def settings(self, node_id: int) -> dict[str, str]:
        settings = super().settings(node_id)
        if not self.moved:
            del settings["controller.quorum.bootstrap.servers"]
            settings["controller.quorum.voters"] = ",".join(
                f"{each}@127.0.0.1:{port}" for each, port in self.controller_ports.items()
            )
        return settings

    def directory_id(self, node_id: int) -> str:
        lines = (self.path(node_id) / "meta.properties").read_text().splitlines()
        return next(line.split("=", 1)[1].strip() for line in lines if line.startswith("directory.id"))

    def tool(self, tool: str, *args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tidelog.cli.main", tool, "--bootstrap-server", self.bootstrap, *args]
        return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=60)

    def voters(self) -> dict[int, str]:
        """Directory ids by node, as the quorum's leader tells them."""
        shown = self.tool("metadata-quorum", "describe", "--status")
        assert shown.returncode == 0, shown.stdout + shown.stderr
        told = next(line.partition(":")[2] for line in shown.stdout.splitlines() if line.startswith("CurrentVoters:"))
        return {each["id"]: each["directoryId"] for each in json.loads(told)}


def test_a_quorum_of_the_configuration_becomes_one_that_changes(tmp_path: Path) -> None:
    with StaticQuorum(tmp_path, 3) as cluster:
        remove = ("remove-controller", "--controller-id", "3", "--controller-directory-id", cluster.directory_id(3))
        refused = cluster.tool("metadata-quorum", *remove)
        assert refused.returncode != 0 and "kraft.version 1" in refused.stdout + refused.stderr
        # A voter tells of itself some time after it has found the leader.
        cluster.until(
            lambda: cluster.tool("features", "upgrade", "--feature", "kraft.version=1").returncode == 0, "kraft.version is raised"
        )
        assert cluster.voters() == {each: cluster.directory_id(each) for each in (1, 2, 3)}
        back = cluster.tool("features", "downgrade", "--feature", "kraft.version=0")
        assert "cannot be lowered to 0" in back.stdout
        cluster.moved = True
        cluster.kill(1)
        cluster.start(1)
        removed = cluster.tool("metadata-quorum", *remove)
        assert removed.returncode == 0, removed.stdout + removed.stderr
        assert sorted(cluster.voters()) == [1, 2]
        assert cluster.complaints() == []
