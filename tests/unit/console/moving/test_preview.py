"""What a preview of moves shows."""

from tidelog.console.moving.balance_plan import Move
from tidelog.console.moving.layout import Layout, Seen
from tidelog.console.moving.preview import MOST_ROWS, rows_of

MIB = 1 << 20


def layout(count: int) -> Layout:
    seen = tuple(Seen(("t", index), 1, (1,), (1,)) for index in range(count))
    return Layout("c", {1: None, 2: None}, {}, seen, {each.partition: MIB for each in seen}, {})


def test_a_preview_shows_brokers_cost_and_moves() -> None:
    rows = rows_of(layout(2), [Move(("t", 1), (1,), (2,), MIB)], 1024)
    assert [(row.what, row.before, row.after, row.note) for row in rows] == [
        ("broker 1", "2 replicas, 2 leaders, 2.0 MiB", "1 replicas, 1 leaders, 1.0 MiB", None),
        ("broker 2", "0 replicas, 0 leaders, 0 B", "1 replicas, 1 leaders, 1.0 MiB", None),
        ("1 replicas to copy", None, "1.0 MiB", "1.0 KiB/s at each broker: 17 min at least"),
        ("t-1", "1", "2", "1.0 MiB to copy"),
    ]


def test_another_order_costs_nothing() -> None:
    (row,) = rows_of(layout(0), [Move(("u", 0), (1, 2), (2, 1), MIB)], None)
    assert (row.before, row.after, row.note) == ("1, 2", "2, 1", "no copy")


def test_moves_beyond_a_number_are_counted() -> None:
    moves = [Move(("t", index), (1,), (2,), 0) for index in range(MOST_ROWS + 2)]
    rows = rows_of(layout(MOST_ROWS + 2), moves, None)
    assert (len(rows), rows[-1].what) == (MOST_ROWS + 4, "and 2 more")
