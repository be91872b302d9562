"""Rates."""

import click
import pytest

from tidelog.cli.sizes import rate

OPTION = click.Option(["--throttle"])
CONTEXT = click.Context(click.Command("rebalance"))


@pytest.mark.parametrize(
    ("text", "bytes_per_s"), [("50M", 50 << 20), ("1.5 GiB/s", 3 << 29), ("1000", 1000), ("2kb", 2048), ("none", None)]
)
def test_rates_are_read(text: str, bytes_per_s: int | None):
    assert rate(CONTEXT, OPTION, text) == bytes_per_s


@pytest.mark.parametrize("text", ["fast", "0", "-5", "5 miles"])
def test_what_is_no_rate_is_told(text: str):
    with pytest.raises(click.BadParameter, match="is no rate"):
        rate(CONTEXT, OPTION, text)
