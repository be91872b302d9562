from __future__ import annotations

from tidelog.broker.audit.sampling import LEFT_OUT, PerSecond, Sampling


def plenty() -> PerSecond:
    return PerSecond(1_000_000)


def test_the_first_of_a_second_are_taken_and_the_others_counted() -> None:
    limit = PerSecond(2)
    assert [limit.takes(1_000), limit.takes(1_500), limit.takes(1_999), limit.takes(1_999)] == [True, True, False, False]
    assert limit.left_out == 2
    assert limit.takes(2_000)
    assert limit.left_out == 2


def test_one_event_of_a_kind_is_written_in_an_interval_and_says_how_many_were_left_out() -> None:
    sampling: Sampling[str] = Sampling(100, plenty())
    assert sampling.take("a", 0) == 0
    assert [sampling.take("a", now) for now in (1, 50, 99)] == [LEFT_OUT] * 3
    assert sampling.take("b", 99) == 0, "another kind is written at once"
    assert sampling.take("a", 100) == 3
    assert sampling.take("a", 101) == LEFT_OUT
    assert sampling.take("a", 200) == 1
    assert sampling.left_out == 4


def test_without_an_interval_every_event_is_written() -> None:
    sampling: Sampling[str] = Sampling(0, plenty())
    assert [sampling.take("a", 5) for _ in range(3)] == [0, 0, 0]


def test_kinds_whose_interval_is_over_are_forgotten_with_their_counts() -> None:
    sampling: Sampling[str] = Sampling(100, plenty())
    for kind, now in (("a", 0), ("a", 1), ("b", 10), ("c", 60), ("c", 61)):
        sampling.take(kind, now)
    assert list(sampling.forget(99)) == []
    assert list(sampling.forget(110)) == [("a", 1)]
    assert len(sampling) == 1
    assert list(sampling.forget(160)) == [("c", 1)]
    assert len(sampling) == 0
    assert sampling.take("a", 161) == 0


def test_a_renewed_kind_is_not_forgotten_before_its_new_interval_is_over() -> None:
    sampling: Sampling[str] = Sampling(100, plenty())
    sampling.take("a", 0)
    sampling.take("b", 50)
    sampling.take("a", 120)
    sampling.take("a", 121)
    assert list(sampling.forget(160)) == []
    assert len(sampling) == 1
    assert list(sampling.forget(220)) == [("a", 1)]


def test_a_kind_over_the_rate_is_counted_and_written_the_next_time() -> None:
    sampling: Sampling[str] = Sampling(100, PerSecond(1))
    assert sampling.take("a", 0) == 0
    assert sampling.take("b", 1) == LEFT_OUT
    assert sampling.take("a", 200) == LEFT_OUT, "its interval is over, but not the second"
    assert sampling.take("b", 1_000) == 0
    assert sampling.take("a", 2_000) == 1
    assert sampling.left_out == 2


def test_a_full_memory_takes_no_new_kind_until_one_is_over() -> None:
    sampling: Sampling[int] = Sampling(100, plenty(), most=3)
    for kind in range(3):
        assert sampling.take(kind, 0) == 0
    assert sampling.take(3, 50) == LEFT_OUT
    assert sampling.take(0, 60) == LEFT_OUT
    assert sampling.take(4, 100) == LEFT_OUT, "the oldest has a count that is not written yet"
    assert list(sampling.forget(100)) == [(0, 1)]
    assert sampling.take(4, 100) == 0
    assert len(sampling) == 1
    assert sampling.left_out == 3


def test_the_oldest_kind_makes_room_when_nothing_of_it_was_left_out() -> None:
    sampling: Sampling[int] = Sampling(100, plenty(), most=2)
    sampling.take(0, 0)
    sampling.take(1, 10)
    assert sampling.take(2, 100) == 0
    assert sampling.take(3, 100) == LEFT_OUT
    assert len(sampling) == 2
