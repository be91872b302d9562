from __future__ import annotations

from pathlib import Path

from tests.unit.cli.running_node import running_node
from tidelog.cli.cluster.local_controller import active_controller
from tidelog.cli.cluster.local_layout import new_cluster


def test_a_node_that_serves_says_which_controller_is_active(tmp_path: Path) -> None:
    with running_node(tmp_path) as address:
        assert active_controller(new_cluster("c", 1, int(address.rpartition(":")[2]), (), {})) == 1


def test_no_controller_is_known_where_no_node_answers() -> None:
    assert active_controller(new_cluster("c", 1, 1, (), {})) is None
