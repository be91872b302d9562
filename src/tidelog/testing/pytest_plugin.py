"""Fixtures for pytest: ``tidelog_broker``, fresh for each test; ``tidelog_session_broker``, one for all, reset before each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tidelog.testing.broker import Broker


@pytest.fixture
def tidelog_broker() -> Iterator[Broker]:
    """A broker that nobody else has used, with its data in memory."""
    from tidelog.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def _tidelog_shared_broker() -> Iterator[Broker]:
    from tidelog.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture
def tidelog_session_broker(_tidelog_shared_broker: Broker) -> Broker:
    """The session's broker without what earlier tests left in it."""
    _tidelog_shared_broker.reset()
    return _tidelog_shared_broker
