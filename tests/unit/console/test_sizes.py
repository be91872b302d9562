"""Bytes and times as text."""

from tidelog.console.sizes import size_text, time_text


def test_sizes_and_times_are_short():
    assert [size_text(each) for each in (0, 1023, 1536, 3 << 30)] == ["0 B", "1023 B", "1.5 KiB", "3.0 GiB"]
    assert [time_text(each) for each in (4.4, 600, 7200)] == ["4 s", "10 min", "2.0 h"]
