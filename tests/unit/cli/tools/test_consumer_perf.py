"""The columns of a measurement."""

from tidelog.cli.tools.consumer_perf import Span


def test_rates_count_the_rebalance_once_and_once_not():
    span = Span(records=1000, size=2 * 1024 * 1024, elapsed_ms=4000, rebalance_ms=3000)
    assert span.columns() == "2.0000, 0.5000, 1000, 250.0000, 3000, 1000, 2.0000, 1000.0000"
