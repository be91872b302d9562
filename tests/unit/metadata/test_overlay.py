from tidelog.metadata.overlay import Overlay


def test_the_base_is_returned_until_the_first_write() -> None:
    base = {"a": 1}
    overlay = Overlay(base)
    assert overlay.now is base
    assert (overlay.get("a"), overlay.get("b")) == (1, None)


def test_writes_are_seen_above_the_base_and_leave_it_as_it_was() -> None:
    base = {"a": 1, "b": 2}
    overlay = Overlay(base)
    overlay.put("c", 3)
    overlay.discard("a")
    assert (overlay.now, base) == ({"b": 2, "c": 3}, {"a": 1, "b": 2})
    assert (overlay.get("a"), overlay.get("c")) == (None, 3)


def test_touched_keys_are_listed_once_in_the_order_of_the_first_write() -> None:
    overlay = Overlay({"a": 1})
    for key in ("b", "a", "b"):
        overlay.put(key, 5)
    overlay.discard("missing")
    assert list(overlay.touched) == ["b", "a", "missing"]
