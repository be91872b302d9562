from __future__ import annotations

from tidelog.broker.producer_ids import ProducerIds


def test_without_a_block_there_is_no_id() -> None:
    ids = ProducerIds()
    assert ids.take() is None
    assert ids.wants_block


def test_each_id_is_given_once_and_blocks_follow_each_other() -> None:
    ids = ProducerIds()
    ids.add((1000, 10))
    ids.add((5000, 2))
    assert [ids.take() for _ in range(13)] == [*range(1000, 1010), 5000, 5001, None]


def test_the_next_block_is_wanted_when_nine_tenths_are_gone_and_only_once() -> None:
    ids = ProducerIds()
    ids.add((0, 10))
    for _ in range(8):
        ids.take()
    assert not ids.wants_block
    ids.take()
    assert ids.wants_block
    ids.requested += 1
    assert not ids.wants_block
    ids.requested -= 1
    ids.add((10, 10))
    assert not ids.wants_block
