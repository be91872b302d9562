"""Kafka Streams and Flink with exactly once, killed with -9 in turn with the broker: the short form of ``make exactly-once``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.availability import unavailable
from tests.systems.exactly_once import HERE, run
from tools.jars import JarsMissing, compiled_against

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("name", "seed", "protocol"), [("streams", 4, "classic"), ("streams", 4, "streams"), ("flink", 1, "classic")]
)
def test_output_equals_input_exactly_while_they_and_the_broker_are_killed(
    name: str, seed: int, protocol: str, tmp_path: Path
) -> None:
    """The seeds are such that the broker and the application are among the victims. ``protocol``: of the group of Streams."""
    try:
        compiled_against(HERE / name)
    except JarsMissing as missing:
        unavailable(missing)
    print(run(name, "tidelog", 3, seed, tmp_path, protocol=protocol))
