"""Dead letters: where they may go, what they hold, and how many fit into a batch."""

from __future__ import annotations

import pytest

from tidelog.broker.shares.dead_letter_plan import Copied, GivenUp, plan_round, refusal
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.image import TopicImage
from tidelog.model.ids import ZERO_UUID
from tidelog.records.batch import iter_headers
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.compression import Codec
from tidelog.replication.share.dead_letters import Cause, DeadLetter

CONFIG = BrokerConfig.from_properties({})
TOPIC = TopicImage(ZERO_UUID, "dlq.t", ())
CONSENTS = CONFIG.topic_config({"errors.deadletterqueue.group.enable": "true"})
PLAIN = CONFIG.topic_config({})
GIVEN_UP = GivenUp("g", "t", 3, DeadLetter(0, 99, 5, Cause.EXHAUSTED))


@pytest.mark.parametrize(
    ("name", "topic", "consents", "prefix", "creates", "said"),
    [
        ("dlq.t", TOPIC, True, "dlq.", False, None),
        ("dlq.t", None, False, "dlq.", True, None),
        ("other", TOPIC, True, "", False, None),
        ("", None, False, "", True, "has no errors.deadletterqueue.topic.name any more"),
        ("__t", TOPIC, True, "", True, "internal topic"),
        ("dlq.t", TOPIC, False, "dlq.", True, "does not have errors.deadletterqueue.group.enable=true"),
        ("dlq.t", None, False, "dlq.", False, "does not exist"),
        ("other", TOPIC, True, "dlq.", False, "does not begin with dlq."),
    ],
)
def test_who_may_write_where(
    name: str, topic: TopicImage | None, consents: bool, prefix: str, creates: bool, said: str | None
) -> None:
    found = refusal(name, topic, CONSENTS if consents else PLAIN, prefix=prefix, creates=creates)
    assert found is None if said is None else found is not None and said in found


def test_a_round_holds_what_fits_and_at_least_one() -> None:
    everything = plan_round(GIVEN_UP, 0, 99, {}, 1 << 20, 7)
    assert (len(everything.records), everything.next_offset) == (100, 100)
    assert {record.timestamp for record in everything.records} == {7}
    for limit in (0, 500, 3_000):
        offset, batches = 0, []
        while offset <= 99:
            made = plan_round(GIVEN_UP, offset, 99, {}, limit, 7)
            batches.append(build_batch(made.records))
            assert made.next_offset == offset + len(made.records)
            offset = made.next_offset
        assert all(len(batch) <= max(limit, 300) for batch in batches)
        assert (len(batches) == 100) == (limit < 300)
    assert len(build_batch(everything.records)) <= everything.size


def test_a_copy_that_leaves_no_room_for_headers_is_left_out() -> None:
    made = plan_round(GIVEN_UP, 0, 1, {0: (b"k", b"v" * 900), 1: (b"k", b"v")}, 1000, 7)
    assert [(record.key, record.value) for record in made.records] == [(None, None), (b"k", b"v")]


def read(copied: Copied, *batches: tuple[int, list[bytes]], codec: int = Codec.NONE) -> bool:
    data = b"".join(
        bytes(build_batch([RecordData(b"k", value, 1) for value in values], base_offset=base, codec=codec))
        for base, values in batches
    )
    return copied.read(data, list(iter_headers(data)))


def test_records_are_copied_until_there_is_no_room() -> None:
    copied = Copied(2, 9, 25)
    assert read(copied, (0, [b"0" * 9] * 5), (5, [b"1" * 9] * 5))
    assert copied.is_over
    assert (sorted(copied.records), copied.next_offset) == ([2, 3], 4)


def test_what_is_too_large_or_missing_is_passed_over() -> None:
    copied = Copied(0, 9, 25)
    assert read(copied, (0, [b"0" * 30, b"1"]), (5, [b"2"]))
    assert (sorted(copied.records), copied.next_offset) == ([1, 5], 6)
    assert read(copied, (6, [b"3"] * 10))
    assert copied.is_over and sorted(copied.records) == [1, 5, 6, 7, 8, 9]


def test_a_compressed_batch_larger_than_the_bound_is_not_unpacked() -> None:
    copied = Copied(0, 1, 400)
    assert read(copied, (0, [b"0" * 300, b"0" * 300]), codec=Codec.GZIP)
    assert (copied.records, copied.next_offset) == ({}, 2)


def test_the_rest_is_given_up_when_nothing_is_found() -> None:
    copied = Copied(0, 9, 100)
    assert not copied.read(b"", ())
    copied.give_up()
    assert copied.is_over and copied.next_offset == 10
