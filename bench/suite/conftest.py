"""The broker of the fifty tests, as ``--broker`` says: a tidelog for each, one for all, or one Apache Kafka for all.

At the end the session writes what it knows about itself to the file in ``SUITE_REPORT``.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

KINDS = ("tidelog", "tidelog-session", "apache")
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
"""What anybody sets who tests against Kafka: else each first member of a group waits for three seconds."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--broker", choices=KINDS, default="tidelog")


class Report:
    """What is measured inside of the session."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {"start_s": 0.0, "broker_peak_mib": 0.0}

    def write(self) -> None:
        """With the peak memory of this process."""
        self.values["test_peak_mib"] = peak_mib("self")
        if path := os.environ.get("SUITE_REPORT"):
            Path(path).write_text(json.dumps(self.values))


def peak_mib(pid: int | str) -> float:
    """The largest resident set that a process ever had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} has no VmHWM")


@pytest.fixture(scope="session")
def report() -> Iterator[Report]:
    made = Report()
    yield made
    made.write()


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest, report: Report, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str | None]:
    """The broker of the whole session; None where each test has its own."""
    kind = request.config.getoption("--broker")
    began = time.perf_counter()
    if kind == "apache":
        from tests.interop.java import JavaSide
        from tests.interop.nodes import Node, running

        java = JavaSide(tmp_path_factory.mktemp("java") / "java.log")
        node = Node("apache", tmp_path_factory.mktemp("kafka"), java, SETTINGS, features={})
        node.home.mkdir(parents=True, exist_ok=True)
        node.format()
        java.close()
        with running(node):
            report.values["start_s"] = time.perf_counter() - began
            yield node.bootstrap
            assert node.process is not None
            report.values["broker_peak_mib"] = peak_mib(node.process.pid)
    elif kind == "tidelog-session":
        from tidelog.testing import Broker

        with Broker() as broker:
            report.values["start_s"] = time.perf_counter() - began
            yield broker.bootstrap_servers
    else:
        yield None


@pytest.fixture
def bootstrap(shared: str | None, report: Report) -> Iterator[str]:
    """Where the test's broker listens."""
    if shared is not None:
        yield shared
        return
    from tidelog.testing import Broker

    began = time.perf_counter()
    with Broker() as broker:
        report.values["start_s"] += time.perf_counter() - began
        yield broker.bootstrap_servers


@pytest.fixture
def topic(bootstrap: str) -> Callable[..., str]:
    """Makes topics under names that nobody else has."""

    def make(partitions: int = 1, **config: str) -> str:
        name = f"t-{uuid.uuid4().hex[:12]}"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
        return name

    return make
