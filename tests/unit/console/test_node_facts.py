"""The pages of a node, as far as a diagnosis uses them."""

from __future__ import annotations

import pytest

from tidelog.console.node_facts import FETCH_THROTTLE, LOCK_TIMEOUTS, NodeFacts, node_facts, values

CLIENT = {"client_id": "app", "principal": None, "host": "10.0.0.1", "requests": 7, "bytes_out": 9, "share": 0.1}
PAGE = {"node": {"id": 3}, "loop": {"busy": 0.5}, "clients": {"busiest": [CLIENT]}}
TEXT = f"""# HELP {LOCK_TIMEOUTS} Locks.
{LOCK_TIMEOUTS}{{group="g",topic="a \\"b\\" \\\\ c",partition="0"}} 4
{FETCH_THROTTLE}{{user="",client_id="app"}} 1.5
kafka_server_fetch_throttle_time_else 3
kafka_controller_kafkacontroller_activecontrollercount 1
"""


def test_a_page_becomes_facts() -> None:
    found = node_facts(PAGE, TEXT)
    assert (found.node_id, found.busy, found.clients[0].client_id, found.clients[0].principal) == (3, 0.5, "app", None)
    assert found.value(LOCK_TIMEOUTS, group="g", topic='a "b" \\ c', partition="0") == 4
    assert found.value(FETCH_THROTTLE, user="", client_id="app") == 1.5
    assert found.value(FETCH_THROTTLE, user="", client_id="other") is None
    assert NodeFacts(1).value(FETCH_THROTTLE) is None


def test_only_wanted_metrics_are_kept() -> None:
    assert {name for name, _ in values(TEXT)} == {LOCK_TIMEOUTS, FETCH_THROTTLE}


def test_sections_may_be_null_and_another_page_is_refused() -> None:
    assert node_facts({"node": {"id": 1}, "loop": None, "clients": None}, None) == NodeFacts(1)
    with pytest.raises(KeyError):
        node_facts({}, None)
