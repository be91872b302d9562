"""The checksum function, loaded past its package."""

import crc32c as package

from tidelog.records.checksum import crc32c


def test_the_check_value_of_crc_32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_every_kind_of_buffer_and_a_start_value() -> None:
    data = bytes(range(256)) * 300
    assert crc32c(data) == crc32c(bytearray(data)) == crc32c(memoryview(data)) == package.crc32c(data)
    assert crc32c(data[100:], crc32c(data[:100])) == crc32c(data)
