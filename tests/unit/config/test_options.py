"""The rows against the facts of Apache Kafka 4.3.1 (tests/golden/config), and how one value is read and written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.config.broker import BROKER_OPTIONS, KAFKA_BROKER_OPTIONS
from tidelog.config.group_options import CLIENT_METRICS_OPTIONS, GROUP_OPTIONS
from tidelog.config.options import (
    INT,
    LIST,
    LONG,
    LOW,
    PASSWORD,
    READ_ONLY,
    STRING,
    Between,
    NonEmpty,
    OneOf,
    Option,
    Password,
    ThrottledReplicas,
    value_text,
)
from tidelog.config.topic_options import TOPIC_OPTIONS
from tidelog.model.errors import ConfigError

GOLDEN = Path(__file__).parents[2] / "golden/config"
NOT_BOUNDS = {"", "non-null string", "non-empty list"}
"""What Kafka's tables call a bound and every text of that type fulfils."""


def facts(table: str) -> list[dict]:
    return [json.loads(line) for line in (GOLDEN / f"{table}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("table", "options"), [("broker", KAFKA_BROKER_OPTIONS), ("topic", TOPIC_OPTIONS)])
def test_every_row_has_the_type_default_bounds_and_importance_that_kafka_has(table: str, options: dict[str, Option]) -> None:
    wanted = facts(table)
    assert {fact["name"] for fact in wanted} == set(options)
    for fact in wanted:
        option = options[fact["name"]]
        assert option.type.name == fact["type"], option
        assert value_text(option.default) == fact["default"], option
        assert option.importance == fact["importance"], option
        assert option.internal == fact["internal"], option
        assert option.required == (not fact["has_default"]), option
        bounds = fact["validator"] or ""
        assert str(option.check or "") == ("" if bounds in NOT_BOUNDS else bounds), option
        if table == "broker":
            assert option.dynamic == fact["dynamic"], option


def test_group_and_client_metrics_rows_have_kafkas_types_and_defaults() -> None:
    for kind, options in (("GROUP", GROUP_OPTIONS), ("CLIENT_METRICS", CLIENT_METRICS_OPTIONS)):
        wanted = {fact["name"]: fact for fact in facts("group") if fact["kind"] == kind}
        assert set(wanted) == set(options)
        for name, fact in wanted.items():
            assert (options[name].type.name, value_text(options[name].default)) == (fact["type"], fact["value"])


@pytest.mark.parametrize("options", [BROKER_OPTIONS, TOPIC_OPTIONS, GROUP_OPTIONS, CLIENT_METRICS_OPTIONS])
def test_every_default_is_within_its_own_bounds_and_reads_back_as_itself(options: dict[str, Option]) -> None:
    for option in options.values():
        if option.default is None:
            continue
        text = value_text(option.default)
        assert text is not None
        assert option.parse(text) == option.default


def test_every_option_says_in_a_sentence_what_it_does_or_why_it_does_nothing() -> None:
    for option in (*BROKER_OPTIONS.values(), *TOPIC_OPTIONS.values(), *GROUP_OPTIONS.values(), *CLIENT_METRICS_OPTIONS.values()):
        assert option.doc.endswith("."), option
        assert option.doc[0].isupper() or option.doc.split()[0] in ("host:port", "segment.bytes", "min.insync.replicas"), option
        assert not (option.inert or "").endswith("."), option


def test_what_an_option_falls_back_to_exists() -> None:
    for option in (*BROKER_OPTIONS.values(), *TOPIC_OPTIONS.values(), *GROUP_OPTIONS.values()):
        for name, _ in option.falls_back_to:
            assert name in BROKER_OPTIONS, option


def row(type_, check=None) -> Option:
    return Option("some.option", type_, None, LOW, READ_ONLY, "Doc.", check=check)


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        (row(INT), " 5 ", 5),
        (row(INT), "+5", 5),
        (row(INT), "-2147483648", -(2**31)),
        (row(LONG), "9223372036854775807", 2**63 - 1),
        (BROKER_OPTIONS["log.preallocate"], "TRUE", True),
        (BROKER_OPTIONS["log.cleaner.min.cleanable.ratio"], "0.50", 0.5),
        (row(LIST), "a, b ,c", ("a", "b", "c")),
        (row(LIST), "", ()),
        (row(LIST), "a,a", ("a",)),
        (row(STRING), " spaced ", "spaced"),
        (BROKER_OPTIONS["group.consumer.migration.policy"], "Upgrade", "Upgrade"),
        (BROKER_OPTIONS["compression.gzip.level"], "-1", -1),
        (TOPIC_OPTIONS["leader.replication.throttled.replicas"], "*", ("*",)),
        (TOPIC_OPTIONS["leader.replication.throttled.replicas"], "0:1,1:1", ("0:1", "1:1")),
        (TOPIC_OPTIONS["cleanup.policy"], "compact, delete", ("compact", "delete")),
    ],
)
def test_a_text_is_read_as_kafka_reads_it(option: Option, text: str, value: object) -> None:
    assert option.parse(text) == value


@pytest.mark.parametrize(
    ("option", "text", "wanted"),
    [
        (row(INT), "x", "whole number of 32 bits"),
        (row(INT), "", "whole number"),
        (row(INT), "1_000", "whole number"),
        (row(INT), "\u0664", "whole number"),
        (row(INT), "2147483648", "32 bits"),
        (row(LONG), "9" * 5000, "64 bits"),
        (BROKER_OPTIONS["offsets.topic.replication.factor"], "32768", "16 bits"),
        (BROKER_OPTIONS["log.preallocate"], "yes", "true or false"),
        (BROKER_OPTIONS["log.cleaner.min.cleanable.ratio"], "2", "from 0 to 1"),
        (BROKER_OPTIONS["log.cleaner.min.cleanable.ratio"], "half", "a number"),
        (BROKER_OPTIONS["log.cleaner.min.cleanable.ratio"], "nan", "from 0 to 1"),
        (BROKER_OPTIONS["log.segment.bytes"], "1", "at least 1048576"),
        (BROKER_OPTIONS["compression.gzip.level"], "0", "from 1 to 9, or -1"),
        (BROKER_OPTIONS["compression.type"], "none", "one of uncompressed"),
        (BROKER_OPTIONS["remote.log.storage.manager.class.name"], "", "not empty"),
        (TOPIC_OPTIONS["cleanup.policy"], "delete,", "without empty items"),
        (TOPIC_OPTIONS["cleanup.policy"], "compact,shred", "any of compact, delete"),
        (TOPIC_OPTIONS["leader.replication.throttled.replicas"], "0-1", "partition:broker"),
    ],
)
def test_a_text_that_does_not_hold_is_refused_with_what_would(option: Option, text: str, wanted: str) -> None:
    with pytest.raises(ConfigError, match=wanted) as refused:
        option.parse(text)
    assert option.name in str(refused.value)


def test_a_secret_shows_itself_in_no_text() -> None:
    option = row(PASSWORD)
    value = option.parse(" s3cret ")
    assert isinstance(value, Password)
    assert value.secret == " s3cret "
    assert "s3cret" not in f"{value} {value!r} {value_text(value)}"
    assert value == Password(" s3cret ")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.5, "0.5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (123456789.5, "1.234567895E8"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (-2e-9, "-2.0E-9"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
        (0.0, "0.0"),
    ],
)
def test_a_double_is_written_as_java_writes_it(number: float, text: str) -> None:
    assert value_text(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_double_reads_back_as_the_same_number(number: float) -> None:
    text = value_text(number)
    assert text is not None
    assert float(text) == number


def test_bounds_say_nothing_about_what_is_not_theirs() -> None:
    assert Between(0).problem("text") is None
    assert OneOf("a").problem(None) is None
    assert NonEmpty().problem(None) is None
    assert ThrottledReplicas().problem("x") is None
