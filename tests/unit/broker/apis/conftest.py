"""What the tests of handlers share: a connection to the ``broker`` of the test's module, whose coordinators can be found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.broker.apis.live import Talk
from tidelog.testing import Broker


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    talk = Talk(broker.port)
    talk.find("any")
    yield talk
    talk.close()
