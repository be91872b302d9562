from __future__ import annotations

from tidelog.broker.audit.line_queue import LineQueue


def test_lines_leave_in_order_once_they_are_written() -> None:
    queue = LineQueue()
    for line in (b"a", b"b", b"c"):
        queue.add(line)
    assert queue.first(2, 100) == [b"a", b"b"]
    assert queue.first(2, 100) == [b"a", b"b"], "they stay until they are written"
    queue.done(2)
    assert (queue.first(2, 100), len(queue), queue.written) == ([b"c"], 1, 2)


def test_a_batch_is_bounded_in_bytes_but_never_empty() -> None:
    queue = LineQueue()
    for line in (b"aaaa", b"bb", b"cc"):
        queue.add(line)
    assert queue.first(10, 6) == [b"aaaa", b"bb"]
    assert queue.first(10, 1) == [b"aaaa"]


def test_what_does_not_fit_is_dropped_and_counted() -> None:
    queue = LineQueue(most_lines=2, most_bytes=5)
    for line in (b"aaa", b"bbb", b"cc", b"d"):
        queue.add(line)
    assert (queue.first(10, 10), queue.dropped) == ([b"aaa", b"cc"], 2)
    queue.done(1)
    queue.add(b"ddd")
    assert (queue.first(10, 10), queue.dropped) == ([b"cc", b"ddd"], 2)


def test_a_line_wakes_the_writer_and_a_dropped_one_does_not() -> None:
    woken: list[int] = []
    queue = LineQueue(most_lines=1)
    queue.add(b"before")
    queue.on_line = lambda: woken.append(len(queue))
    queue.add(b"dropped")
    assert woken == []
    queue.done(1)
    queue.add(b"after")
    assert woken == [1]
