"""What it means that other people's software cannot be had."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

from tools.jars import JarsMissing


def unavailable(missing: JarsMissing) -> NoReturn:
    """A failure on CI, elsewhere a skip that says what is missing."""
    if os.environ.get("CI"):
        pytest.fail(str(missing))
    pytest.skip(str(missing))
