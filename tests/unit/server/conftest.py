from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.server.loops import finish
from tidelog.server.runtime import LoopRuntime, new_event_loop


@pytest.fixture
def runtime() -> Iterator[LoopRuntime]:
    runtime = LoopRuntime(new_event_loop())
    yield runtime
    finish(runtime)
