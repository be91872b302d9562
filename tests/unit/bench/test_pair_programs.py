"""The generator and the limit in C, against one another."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.pair import frames, servers
from bench.pair.processes import Failed
from bench.pair.rows import BATCH_16K, ONE_RECORD, tail_frames
from bench.pair.sampling import generate, parse_load
from bench.pair.servers import Server
from tidelog.protocol.messages.fetch import FetchResponse

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
TOPIC_ID = bytes(16)


@pytest.fixture
def limit(tmp_path: Path) -> Iterator[Server]:
    """The C limit, listening."""
    server = servers.limit(tmp_path / "limit")
    try:
        server.await_answer()
        yield server
    finally:
        server.stop()


def test_every_request_is_answered_once_and_every_batch_is_written(limit: Server) -> None:
    sent = [frames.produce("topic", [index], BATCH_16K) for index in range(3)]
    assert generate(limit.port, sent, 2, 5, 31).requests == 31
    lengths = [(limit.home / f"{index}.log").stat().st_size for index in range(3)]
    assert sum(lengths) == 31 * len(BATCH_16K)
    assert all(lengths)


def test_batches_get_their_offsets_and_come_back_by_fetch(limit: Server) -> None:
    generate(limit.port, [frames.produce("topic", [0], ONE_RECORD)], 1, 1, 3)
    answer = limit.ask(frames.fetch(TOPIC_ID, 0, 1, 1 << 20, 0).request)
    stored = (limit.home / "0.log").read_bytes()
    assert stored[len(ONE_RECORD) :] in answer
    assert [int.from_bytes(stored[at : at + 8], "big") for at in range(0, len(stored), len(ONE_RECORD))] == [0, 1, 2]


def test_a_fetch_at_the_end_waits_for_its_record(limit: Server) -> None:
    assert generate(limit.port, tail_frames("topic", TOPIC_ID, 0), 0, 0, 20).requests == 20
    assert generate(limit.port, tail_frames("topic", TOPIC_ID, 20), 0, 0, 5).requests == 5


def test_an_answer_that_is_too_short_ends_the_load(limit: Server) -> None:
    generate(limit.port, [frames.produce("topic", [0], ONE_RECORD)], 1, 1, 1)
    with pytest.raises(Failed, match="expected at least 100000"):
        generate(limit.port, [frames.fetch(TOPIC_ID, 0, 0, 1 << 20, 100_000)], 1, 1, 1)


def test_an_error_in_an_answer_ends_the_load(limit: Server) -> None:
    wrong = frames.Frame(frames.produce("topic", [0], ONE_RECORD).request, error_at=2)  # the correlation id, which is 1
    with pytest.raises(Failed, match="the broker answered error 1"):
        generate(limit.port, [wrong], 1, 1, 1)


def test_a_broken_batch_is_not_taken(limit: Server) -> None:
    broken = bytearray(ONE_RECORD)
    broken[-2] ^= 1
    with pytest.raises(Failed, match=r"closed the connection|reset"):
        generate(limit.port, [frames.produce("topic", [0], bytes(broken))], 1, 1, 1)
    limit.processes[0].wait(10)
    assert "a CRC does not match" in limit.said()


def test_the_generators_line_is_read() -> None:
    line = '{"requests": 7, "seconds": 2.0, "sent": 1, "received": 2, "user_s": 0.5, "system_s": 0.25}\n'
    found = parse_load(line)
    assert (found.requests, found.seconds, found.user, found.system) == (7, 2.0, 0.5, 0.25)


def test_a_fetch_of_several_partitions_brings_a_part_of_each(limit: Server) -> None:
    sent = [frames.produce("topic", [index], frames.batch(1, 100 + index)) for index in range(3)]
    generate(limit.port, sent, 1, 1, 3)
    answer = limit.ask(frames.fetch_several(TOPIC_ID, [2, 0, 1], 0, 1 << 20, 0).request)
    found = FetchResponse.decode(answer[5:], 17)
    parts = {each.partition_index: bytes(each.records or b"") for each in found.responses[0].partitions}
    assert list(parts) == [2, 0, 1]
    assert all(parts[index] == (limit.home / f"{index}.log").read_bytes() for index in range(3))
    assert all(parts.values())
