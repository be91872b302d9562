"""One Spark session for all tests that need Spark itself; without the extra ``spark`` they are left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    from tests.spark.session import session

    made = session()
    yield made
    made.stop()
