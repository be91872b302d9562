"""Pieces of code replaced for a while."""

import types

import pytest

from tidelog.testing.simulation.patching import patched


def test_what_was_there_is_back_afterwards_also_after_a_failure() -> None:
    place = types.SimpleNamespace(a=1, b=2)
    with pytest.raises(ZeroDivisionError), patched([(place, "a", 10), (place, "b", 20)]):
        assert (place.a, place.b) == (10, 20)
        raise ZeroDivisionError
    assert (place.a, place.b) == (1, 2)
