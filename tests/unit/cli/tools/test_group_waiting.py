from __future__ import annotations

from pathlib import Path

from tests.unit.cli.lonely_node import lonely_node
from tests.unit.cli.running_node import running_node
from tidelog.cli.tools.group_waiting import why_waiting


def test_a_cluster_that_cannot_create_the_topic_of_offsets_says_so(tmp_path: Path) -> None:
    with lonely_node(tmp_path) as address:
        # The first question makes the node create the topic; answers to later ones say why it could not.
        said = ""
        while "cannot be created" not in said:
            said = why_waiting({}, address, "work")
            assert said.startswith("group work has no coordinator, so nothing is read: __consumer_offsets ")
    assert "INVALID_REPLICATION_FACTOR" in said
    assert "set it in each broker's file to the number of brokers (1 for a single node)" in said


def test_where_there_is_a_coordinator_or_no_broker_nothing_is_said(tmp_path: Path) -> None:
    with running_node(tmp_path) as address:
        while why_waiting({}, address, "work"):  # until the topic of offsets is there
            pass
    assert why_waiting({}, address, "work") == ""
    assert why_waiting({"security.protocol": "nonsense"}, address, "work") == ""
