"""One broker for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidelog.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found
