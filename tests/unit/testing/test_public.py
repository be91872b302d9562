"""What ``tidelog.testing`` offers is there, and what is heavy is loaded only when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tidelog.testing


@pytest.mark.parametrize("name", tidelog.testing.__all__)
def test_every_public_name_loads_and_is_documented(name: str) -> None:
    assert getattr(tidelog.testing, name).__doc__


def test_registry_checker_and_simulation_are_loaded_when_they_are_used() -> None:
    code = (
        "import sys, tidelog.testing as t; loaded = [m for m in sys.modules if m.startswith('tidelog.testing.')]; "
        "assert not [m for m in loaded if m.split('.')[2] in ('simulation', 'checker', 'schema_registry')], loaded; "
        "t.checker.check; t.simulation.simulate; t.SchemaRegistry"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
