"""The fixtures as other projects use them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from tidelog.testing import Broker, SchemaRegistry

seen: list[int] = []


def test_a_fresh_broker_has_nothing_in_it(tidelog_broker: Broker) -> None:
    assert tidelog_broker.topics == []
    tidelog_broker.produce("t", "a")


def test_the_next_test_gets_another_one(tidelog_broker: Broker) -> None:
    assert tidelog_broker.topics == []


def test_the_sessions_broker_is_filled_here(tidelog_session_broker: Broker) -> None:
    tidelog_session_broker.produce("t", "a")
    seen.append(tidelog_session_broker.port)


def test_and_empty_again_here_though_it_is_the_same(tidelog_session_broker: Broker) -> None:
    assert tidelog_session_broker.topics == []
    assert seen == [tidelog_session_broker.port]


def test_a_broker_of_its_own_process_and_a_registry_are_there(
    tidelog_process_broker: Broker, tidelog_schema_registry: SchemaRegistry
) -> None:
    tidelog_process_broker.produce("t", "a")
    tidelog_process_broker.kill()
    tidelog_process_broker.start()
    assert tidelog_process_broker.topics == []
    assert tidelog_schema_registry.subjects == []


def test_a_broker_with_tls_tells_clients_what_to_trust(tidelog_tls_broker: Broker) -> None:
    assert tidelog_tls_broker.access.client_settings()["ssl.ca.pem"] == tidelog_tls_broker.access.ca_pem


FAILING = """
def test_it(tidelog_process_broker):
    assert tidelog_process_broker.topics == ["nothing like this"]

def test_that_has_no_broker():
    raise AssertionError
"""


def test_a_test_that_fails_shows_what_its_broker_logged(tmp_path: Path) -> None:
    (tmp_path / "test_failing.py").write_text(FAILING)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path)]
    installed = any(each.value == "tidelog.testing.pytest_plugin" for each in entry_points(group="pytest11"))
    words += [] if installed else ["-p", "tidelog.testing.pytest_plugin"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(
        [*words, str(tmp_path)], env=environment, capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert run.stdout.count("Captured log of the broker on port") == 1, "of its own broker, and of no other test's"
    assert "formatted /memory for a new cluster" in run.stdout
