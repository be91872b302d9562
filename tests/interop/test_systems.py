"""Storm, Flume, Kafka Connect, HBase and HDFS between two topics of a node: 10,000 records through each, every one once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.availability import unavailable
from tests.systems.relays import HERE, SYSTEMS, run
from tools.jars import JarsMissing, compiled_against

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_record_goes_through_another_system_once(name: str, tmp_path: Path) -> None:
    try:
        compiled_against(HERE / name)
    except JarsMissing as missing:
        unavailable(missing)
    print(run(name, tmp_path))
