"""Event loops in virtual time."""

import asyncio
import gc
import warnings

import pytest

from tidelog.testing.simulation.disk import PowerLoss
from tidelog.testing.simulation.loop import Agenda, Stuck, new_loop


def test_time_passes_only_from_one_entry_to_the_next() -> None:
    agenda = Agenda(1)
    loop = new_loop(agenda, "a", seed=1)
    task = loop.create_task(asyncio.sleep(3600, "woken"))
    assert agenda.run_until(task.done, 4000)
    assert (task.result(), agenda.now) == ("woken", 3600)


def test_what_was_asked_for_first_comes_first_at_the_same_moment() -> None:
    agenda = Agenda(1)
    order: list[str] = []
    first, second = new_loop(agenda, "a", seed=1), new_loop(agenda, "b", seed=2)
    second.call_later(1.0, order.append, "second's")
    first.call_later(1.0, order.append, "first's")
    agenda.run_until(lambda: len(order) == 2, 2)
    assert order == ["second's", "first's"]


def test_a_clock_that_is_fast_wakes_early() -> None:
    agenda = Agenda(1)
    fast = new_loop(agenda, "fast", seed=1, drift=0.25)
    task = fast.create_task(asyncio.sleep(10))
    agenda.run_until(task.done, 100)
    assert agenda.now == 8.0


def test_a_paused_process_does_later_what_came_due() -> None:
    agenda = Agenda(1)
    loop = new_loop(agenda, "a", seed=1)
    done: list[float] = []
    loop.call_later(1.0, lambda: done.append(agenda.now))
    loop.pause()
    agenda.call_later(5.0, loop.resume)
    agenda.run_until(lambda: bool(done), 10)
    assert done == [5.0]


def test_a_dead_process_does_nothing_any_more_not_even_what_its_tasks_would_do_at_their_end() -> None:
    agenda = Agenda(1)
    loop = new_loop(agenda, "a", seed=1)
    told: list[str] = []

    async def job(name: str) -> None:
        try:
            await asyncio.sleep(1)
        finally:
            told.append(name)

    loop.create_task(job("has begun"))
    agenda.step()
    gc.collect()  # what other tests have left
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        loop.create_task(job("has not begun"))
        loop.end()
        while agenda.step():
            pass
        assert told == []
        del loop
        gc.collect()
    assert [str(each.message) for each in heard] == []


def test_a_loss_of_power_ends_the_process_where_it_stands() -> None:
    agenda = Agenda(1)
    loop = new_loop(agenda, "a", seed=1)
    told: list[str] = []

    def write() -> None:
        raise PowerLoss

    loop.call_soon(write)
    loop.call_soon(told.append, "afterwards")
    with pytest.raises(Stuck):
        agenda.run_until(lambda: False, 1)
    assert loop.dead
    assert (told, loop.problems) == ([], [])


def test_a_job_of_a_thread_ends_later_and_its_failure_is_the_callers() -> None:
    agenda = Agenda(1)
    loop = new_loop(agenda, "a", seed=1)

    async def jobs() -> tuple[int, str]:
        found = await loop.run_in_executor(None, lambda: 7)
        try:
            await loop.run_in_executor(None, lambda: 1 // 0)
        except ZeroDivisionError as error:
            return found, str(error)
        raise AssertionError

    task = loop.create_task(jobs())
    agenda.run_until(task.done, 1)
    assert task.result()[0] == 7
    assert agenda.now > 0


def test_what_fails_in_a_callback_is_a_problem_of_its_machine() -> None:
    agenda = Agenda(1)
    loop = new_loop(agenda, "node 1", seed=1)
    loop.call_soon(lambda: 1 // 0)
    agenda.step()
    assert "node 1" in loop.problems[0]
    assert "ZeroDivisionError" in loop.problems[0]
