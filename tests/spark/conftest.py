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


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with Iceberg, for the tests that only its PySpark runs: in a run with those of ``spark`` it would be another."""
    from tests.spark.iceberg import lake_in

    with lake_in(tmp_path_factory.mktemp("lake")) as made:
        yield made
