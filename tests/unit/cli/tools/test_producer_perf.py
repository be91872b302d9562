"""The summary of a measurement, and what is sent in it."""

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.producer_perf import Latencies, payloads


def flags(**given):
    return {"record_size": None, "payload_file": None, "payload_delimiter": "\\n", "payload_monotonic": False} | given


def test_the_summary_has_rates_and_percentiles_in_kafkas_words():
    span = Latencies(every=1, began=10.0)
    for latency_ms in range(1, 101):
        span.add(float(latency_ms), 1024 * 1024)
    assert span.line(12.0) == (
        "100 records sent, 50.000000 records/sec (50.00 MB/sec), 50.50 ms avg latency, 100.00 ms max latency, "
        "51 ms 50th, 96 ms 95th, 100 ms 99th, 100 ms 99.9th."
    )


def test_a_run_without_records_has_a_summary():
    assert Latencies(every=1, began=0.0).line(1.0).startswith("0 records sent, 0.000000 records/sec")


def test_long_runs_keep_a_part_of_the_latencies_and_count_all():
    span = Latencies(every=10, began=0.0)
    for _ in range(100):
        span.add(1.0, 1)
    assert (span.count, len(span.samples)) == (100, 10)


def test_payloads_are_of_a_size_or_counted_or_from_a_file(tmp_path):
    assert len(payloads(flags(record_size=7))(0)) == 7
    assert [payloads(flags(payload_monotonic=True))(number) for number in (0, 12)] == [b"0", b"12"]
    file = tmp_path / "payloads"
    file.write_bytes(b"a|b|")
    chosen = payloads(flags(payload_file=str(file), payload_delimiter="|"))
    assert {chosen(number) for number in range(50)} == {b"a", b"b"}
    file.write_bytes(b"")
    with pytest.raises(CommandFailed, match="no payload"):
        payloads(flags(payload_file=str(file)))
