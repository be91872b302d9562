"""Fixtures for the tests against other people's software: nodes, the Java side, and what a missing Java means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.availability import unavailable
from tests.interop.clients import Client, client
from tests.interop.java import JavaSide, classes
from tests.interop.nodes import Node, running
from tools.jars import JarsMissing

# The samples carry old timestamps: retention must not take them.
PROPERTIES = {"num.partitions": "2", "log.retention.ms": "-1"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--broker", choices=("tidelog", "apache"), default="tidelog", help="whom the client tests run against")
    parser.addoption("--kills", type=int, default=10, help="how often the kill test kills the node")


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaSide]:
    """The Java side. Without Java and Apache Kafka's jars: a failure on CI, elsewhere a skip that says what is missing."""
    try:
        classes()
    except JarsMissing as missing:
        unavailable(missing)
    side = JavaSide(tmp_path_factory.mktemp("java") / "java.log")
    yield side
    side.close()


@pytest.fixture(scope="module", autouse=True)
def clients_are_closed(request: pytest.FixtureRequest) -> Iterator[None]:
    """A module closes the Java clients that its tests have opened."""
    yield
    if "java" in request.fixturenames:
        side: JavaSide = request.getfixturevalue("java")
        assert side.open_clients() == []


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, java: JavaSide) -> Iterator[Node]:
    """A node that runs for a whole module, of the kind that ``--broker`` says; stopped in the end, and that must be clean."""
    fresh = Node(request.config.getoption("--broker"), tmp_path_factory.mktemp("node"), java, PROPERTIES)
    with running(fresh) as started:
        yield started
        started.stop()


@pytest.fixture(scope="module")
def tidelog_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A tidelog node for a module."""
    with running(Node("tidelog", tmp_path_factory.mktemp("tidelog"), None)) as started:
        yield started


@pytest.fixture(scope="module")
def apache_node(tmp_path_factory: pytest.TempPathFactory, java: JavaSide) -> Iterator[Node]:
    """A real Apache Kafka node for a module."""
    with running(Node("apache", tmp_path_factory.mktemp("apache"), java)) as started:
        yield started


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of a node that the test starts itself."""
    return tmp_path / "node"


@pytest.fixture
def clients(java: JavaSide) -> list[Client]:
    """All four."""
    return [client(name, java) for name in ("java", "librdkafka", "aiokafka", "kafka-python")]
