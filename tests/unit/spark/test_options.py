"""The source's options: the connector's names in any case, and no typing error that passes."""

from __future__ import annotations

import pytest

from tidelog.model.errors import ConfigError
from tidelog.model.ids import TopicPartition
from tidelog.spark.options import Bound, SourceOptions, parse_options

BASE = {"kafka.bootstrap.servers": "a:1", "subscribe": "t"}


def options(streaming: bool = True, **given: str) -> SourceOptions:
    return parse_options(BASE | given, streaming=streaming)


def test_without_more_a_stream_begins_at_the_end_and_a_batch_at_the_beginning() -> None:
    assert options().starting == Bound(word="latest")
    assert options(streaming=False).starting == Bound(word="earliest")
    assert options(streaming=False).ending == Bound(word="latest", or_latest=False)
    assert options().fail_on_data_loss


def test_names_are_compared_without_regard_to_case() -> None:
    found = parse_options({"KAFKA.bootstrap.servers": "a:1", "SUBSCRIBE": "b, a,a", "maxoffsetspertrigger": "5"}, streaming=True)
    assert (found.topics, found.max_offsets) == (("a", "b"), 5)


def test_offsets_by_partition_are_the_connectors_json() -> None:
    found = options(startingOffsets='{"t": {"0": 23, "1": -2}}').starting
    assert found.offsets == {TopicPartition("t", 0): 23, TopicPartition("t", 1): -2}


def test_a_timestamp_for_all_wins_over_timestamps_by_partition_and_those_over_offsets() -> None:
    every = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"t": {"0": 5}}', "startingTimestamp": "7"}
    assert options(**every).starting == Bound(timestamp=7)
    del every["startingTimestamp"]
    assert options(**every, startingOffsetsByTimestampStrategy="latest").starting == Bound(
        timestamps={TopicPartition("t", 0): 5}, or_latest=True
    )


def test_partitions_may_be_assigned() -> None:
    given = {"kafka.bootstrap.servers": "a:1", "assign": '{"t": [1, 0], "s": [4]}'}
    assert parse_options(given, streaming=None).assigned == (("s", 4), ("t", 0), ("t", 1))


def test_a_delay_has_a_unit() -> None:
    assert options(maxTriggerDelay="2m").max_trigger_delay_ms == 120_000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"failOnDatLoss": "false"}, "'failOnDatLoss' is not known. Did you mean failOnDataLoss"),
        ({"failOnDataLoss": "no"}, "must be true or false"),
        ({"subscribePattern": "t.*"}, "given is subscribe and subscribePattern"),
        ({"subscribe": "a,b c"}, "names the topic 'b c'"),
        ({"startingOffsets": "first"}, "must be earliest, latest or JSON"),
        ({"startingOffsets": "{"}, "must be JSON like"),
        ({"startingOffsets": '{"t": 5}'}, "must look like"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "numbers from -2 on"),
        ({"startingOffsets": '{"t": {"0": true}}'}, "numbers from -2 on"),
        ({"startingOffsetsByTimestamp": '{"t": {"0": 9223372036854775808}}'}, "numbers from 0 on"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp is 'yesterday'"),
        ({"maxOffsetsPerTrigger": "0"}, "must be a whole number from 1 on"),
        ({"maxTriggerDelay": "5 weeks"}, "must be a number with a unit"),
        ({"groupIdPrefix": "x"}, "no consumer group is joined"),
        ({"path": "x"}, "load\\(\\) takes no path"),
        ({"endingOffsets": "latest"}, "is for spark.read, and this is spark.readStream"),
        ({"kafka.group.id": "g"}, "no consumer group is joined"),
        ({"kafka.fetch.max.byte": "1"}, "Did you mean fetch.max.bytes"),
        ({"kafka.bootstrap.servers": ""}, "bootstrap.servers is missing"),
    ],
)
def test_a_wrong_option_is_refused_with_what_would_be_right(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        options(**given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"endingOffsets": "earliest"}, "nothing would be read"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, "nothing would be read"),
        ({"maxOffsetsPerTrigger": "5"}, "is for spark.readStream, and this is spark.read"),
    ],
)
def test_a_batch_refuses_what_only_a_stream_has(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        options(streaming=False, **given)


@pytest.mark.parametrize(
    ("given", "said"),
    [({}, "none of them"), ({"assign": '{"t": 1}'}, "must look like"), ({"assign": "{}"}, "names no partition"),
     ({"subscribePattern": "("}, "is not a regular expression")],
)  # fmt: skip
def test_topics_must_be_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_options({"kafka.bootstrap.servers": "a:1", **given}, streaming=True)
