from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.server.controllers import Controllers
from tests.unit.server.several_nodes import SeveralNodes


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Controllers]:
    """One controller, not started."""
    world = Controllers(tmp_path, voters=1)
    yield world
    world.close()


@pytest.fixture
def three(tmp_path: Path) -> Iterator[SeveralNodes]:
    """Three combined nodes, not started."""
    world = SeveralNodes(tmp_path)
    yield world
    world.close()
