"""DeadLetterSender: one request at a time to a broker, batches within the bound, and appends to partitions led here."""

from __future__ import annotations

from tests.unit.broker.shares.test_dead_letter_queue import QUEUE, QUEUE_ID, World
from tidelog.broker.shares.dead_letter_plan import Round
from tidelog.broker.shares.dead_letter_sender import DeadLetterSender, Destination, Sending
from tidelog.model.errors import ErrorCode
from tidelog.records.batch import iter_headers
from tidelog.records.builder import RecordData


def sendings(*places: tuple[int, int, int]) -> list[Sending]:
    """A round for each of (partition, records, bytes)."""

    def one(index: int, count: int, size: int) -> Sending:
        async def make() -> Round:
            return Round([RecordData(None, b"x", 1)] * count, size, count)

        return Sending(Destination(QUEUE, QUEUE_ID, index, 2, 1000), make)

    return [one(*each) for each in places]


def test_what_waits_for_one_broker_goes_in_one_request_while_batches_stay_within_the_bound() -> None:
    world = World()
    sender = DeadLetterSender(world.host, 2)
    several = sendings((0, 1, 400), (1, 2, 900), (0, 3, 600), (0, 4, 700), (1, 5, 2000))
    for each in several:
        sender.add(each)
    world.runtime.run()
    assert all(each.done and each.error is ErrorCode.NONE for each in several)
    batches = [
        [(part.index, sum(header.records_count for header in iter_headers(bytes(part.records or b"")))) for part in parts]
        for parts in (request.topic_data[0].partition_data for _, request in world.asked)
    ]
    assert batches == [[(0, 4), (1, 2)], [(0, 4)], [(1, 5)]]


def test_a_round_that_cannot_be_made_does_not_stop_the_others() -> None:
    world = World()
    sender = DeadLetterSender(world.host, 2)
    (good,) = sendings((0, 1, 100))

    async def fails() -> Round:
        raise ValueError("unreadable")

    bad = Sending(good.destination, fails)
    for each in (bad, good):
        sender.add(each)
    world.runtime.run()
    assert (bad.error, good.error) == (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE)


def test_a_leader_appends_to_its_own_partition() -> None:
    world = World()
    world.host.node_id, world.host.replicas = 2, world
    sender = DeadLetterSender(world.host, 2)
    here, gone = sendings((0, 3, 100), (1, 1, 100))
    for each in (here, gone):
        sender.add(each)
    world.runtime.run()
    assert (here.error, gone.error) == (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert world.source.log is not None and world.source.log.log_end_offset == 18
    assert not world.asked
