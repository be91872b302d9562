"""Classes are found by number and by name, and only then imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey


def test_every_api_has_a_request_and_a_response_with_its_number_and_versions() -> None:
    for key, facts in registry.API_FACTS.items():
        for cls in (registry.request_class(key), registry.response_class(key)):
            assert cls.__dict__["API_KEY"] == key
            assert (
                facts.min_version,
                facts.max_version,
                facts.flexible_from,
            ) == (cls.MIN_VERSION, cls.MAX_VERSION, cls.FLEXIBLE_FROM)


def test_an_unknown_number_or_name_is_a_key_error() -> None:
    for find in (registry.request_class, registry.response_class):
        with pytest.raises(KeyError):
            find(4)
    with pytest.raises(KeyError):
        registry.data_class("NoSuchRecord")


def test_the_registry_imports_no_message() -> None:
    code = (
        "import sys; from tidelog.protocol import registry\n"
        "before = [m for m in sys.modules if m.startswith('tidelog.protocol.messages.')]\n"
        "registry.request_class(3)\n"
        "after = [m for m in sys.modules if m.startswith('tidelog.protocol.messages.')]\n"
        "print(before, after, 'tidelog.protocol.schema' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[] ['tidelog.protocol.messages.metadata'] False"


def test_keys_are_plain_numbers_too() -> None:
    assert registry.request_class(ApiKey.METADATA) is registry.request_class(3)
