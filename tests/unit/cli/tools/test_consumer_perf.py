"""The columns of a measurement."""

import pytest
from click.testing import CliRunner

from tidelog.cli.tools.consumer_perf import Span, command


def test_rates_count_the_rebalance_once_and_once_not():
    span = Span(records=1000, size=2 * 1024 * 1024, elapsed_ms=4000, rebalance_ms=3000)
    assert span.columns() == "2.0000, 0.5000, 1000, 250.0000, 3000, 1000, 2.0000, 1000.0000"


@pytest.mark.parametrize("pattern", ["qq", "'"])
def test_a_date_format_that_is_none_is_refused_before_anything_is_read(pattern):
    done = CliRunner().invoke(
        command, ["--bootstrap-server", "a:1", "--topic", "t", "--num-records", "1", "--date-format", pattern]
    )
    assert done.exit_code == 2
    assert "--date-format" in done.output
