from __future__ import annotations

import subprocess
import sys

import pytest

from tidelog.model.addresses import ip_address, is_address, is_loopback


@pytest.mark.parametrize(("host", "expected"), [("127.0.0.1", True), ("::1", True), ("localhost", False), ("node-1", False)])
def test_only_addresses_need_no_look_up(host: str, expected: bool) -> None:
    assert is_address(host) is expected


def test_an_address_is_read_from_text_and_from_bytes() -> None:
    assert ip_address("10.1.2.3") == ip_address(bytes([10, 1, 2, 3]))
    with pytest.raises(ValueError, match="does not appear to be"):
        ip_address(bytes(5))


def test_the_library_is_loaded_by_the_first_address() -> None:
    script = (
        "import sys\n"
        "from tidelog.model.addresses import is_address\n"
        "before = 'ipaddress' in sys.modules\n"
        "is_address('::1')\n"
        "print(before, 'ipaddress' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout == "False True\n"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_this_machine_alone(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org"])
def test_other_machines_too(host: str) -> None:
    assert not is_loopback(host)
