"""What holds for all tests: on CI one of real processes that failed is tried once more, and Hypothesis times no example."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Two hundred milliseconds for an example is a bound that a busy machine breaks.
settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")

HERE = Path(__file__).parent
REAL_PROCESSES = ("node", "interop", "spark", "pipeline", "churn", "matrix", "upgrade", "transactions", "security_matrix")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On CI (``CI=true``) a test of real processes gets a second try, and the summary names it. Nowhere else, and no pure machine
    or simulator: what fails there fails for its own reasons."""
    if os.environ.get("CI") != "true":
        return
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.relative_to(HERE).parts[0] in REAL_PROCESSES:
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=2))
