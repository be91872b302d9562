"""Fixtures for pytest: brokers in this process and in their own, and a schema registry.

``tidelog_broker``, fresh for each test; ``tidelog_session_broker``, one for all, reset before each; ``tidelog_process_broker``,
fresh and in a process that can be killed; ``tidelog_tls_broker``, fresh, with TLS; ``tidelog_schema_registry``, fresh. When a
test fails, what its child brokers have logged is shown beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pytest

if TYPE_CHECKING:
    from tidelog.testing.broker import Broker
    from tidelog.testing.schema_registry.server import SchemaRegistry


@pytest.fixture
def tidelog_broker() -> Iterator[Broker]:
    """A fresh broker with its data in memory."""
    from tidelog.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture
def tidelog_process_broker() -> Iterator[Broker]:
    """A fresh broker in a separate process: ``kill()`` it and ``start()`` it again."""
    from tidelog.testing.broker import Broker

    with Broker(process=True) as broker:
        yield broker


@pytest.fixture
def tidelog_tls_broker() -> Iterator[Broker]:
    """A fresh broker that speaks TLS: clients take their settings from its ``access``."""
    from tidelog.testing.broker import Broker

    with Broker(tls=True) as broker:
        yield broker


@pytest.fixture(scope="session")
def _tidelog_shared_broker() -> Iterator[Broker]:
    from tidelog.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture
def tidelog_session_broker(_tidelog_shared_broker: Broker) -> Broker:
    """The session's broker, emptied after earlier tests."""
    _tidelog_shared_broker.reset()
    return _tidelog_shared_broker


@pytest.fixture
def tidelog_schema_registry() -> Iterator[SchemaRegistry]:
    """A fresh schema registry."""
    from tidelog.testing.schema_registry.server import SchemaRegistry

    with SchemaRegistry() as registry:
        yield registry


_earlier: WeakKeyDictionary[Broker, str] = WeakKeyDictionary()
"""Logs of brokers that no longer run, from earlier tests whose tracebacks keep the brokers alive."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A broker that ended before this test does not belong to it."""
    child = sys.modules.get("tidelog.testing.child")
    for broker in list(child.CHILDREN) if child is not None else []:
        if not broker.runs:
            _earlier[broker] = broker.log


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test's report, with the logs of the brokers that run in processes of their own."""
    report = yield
    child = sys.modules.get("tidelog.testing.child")
    if report.failed and child is not None:
        for broker in list(child.CHILDREN):
            if broker.log and broker.log != _earlier.get(broker):
                report.sections.append((f"Captured log of the broker on port {broker.last_port}", broker.log))
    return report
