from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.cli.running_node import running_node


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a node with the settings that are usual."""
    with running_node(tmp_path_factory.mktemp("node")) as address:
        yield address
