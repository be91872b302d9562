from sim.workload import NOW_MS
from tidelog.storage.segment import LogSegment
from tidelog.storage.segments import Segments
from tidelog.testing.simulation.disk import SimDisk


def made(*bases: int) -> list[LogSegment]:
    disk = SimDisk()
    disk.make_dirs("/d")
    return [LogSegment.create(disk, "/d", base, NOW_MS) for base in bases]


def test_the_last_is_active_and_the_others_wait_to_be_sealed() -> None:
    first, second, third = made(0, 10, 20)
    segments = Segments([first, second])
    segments.add(third)
    assert (segments.active, segments.unsealed) == (third, [first, second])
    segments.sealed([first])
    assert first.sealed and segments.unsealed == [second]
    segments.check()


def test_a_cut_makes_an_earlier_one_active_which_is_not_sealed_as_it_is() -> None:
    first, second, third = made(0, 10, 20)
    segments = Segments([first, second, third], aborting=[first, third])
    segments.keep(2)
    assert (segments.all, segments.active, segments.unsealed, segments.aborting) == ([first, second], second, [first], [first])
    segments.check()


def test_a_reader_keeps_the_list_that_it_has_taken() -> None:
    first, second, third, new = made(0, 10, 20, 5)
    segments = Segments([first, second, third])
    taken = segments.all
    segments.replace([first, second], [new])
    assert taken == [first, second, third] and segments.all == [new, third]
    segments.replace([new], [])
    assert segments.all == [third] and segments.unsealed == []


def test_the_segment_of_an_offset_is_the_last_that_begins_at_or_before_it() -> None:
    segments = Segments(made(5, 10, 20))
    assert [segments.index_of(offset) for offset in (0, 5, 9, 10, 19, 20, 99)] == [0, 0, 0, 1, 1, 2, 2]
