"""One Spark session with Delta for all tests of pipelines; without the extra ``pipeline`` they are left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tidelog.testing import Broker


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    for package in ("pyspark", "yaml", "fastavro"):
        pytest.importorskip(package, reason="the extra pipeline is not installed")
    from tests.pipeline.world import lake_session

    made = lake_session()
    yield made
    made.stop()


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found
