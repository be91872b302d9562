import random

import pytest

from tidelog.model import ids


def test_text_of_an_id_is_kafkas_base64url_without_padding() -> None:
    assert ids.uuid_to_text(ids.METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert ids.uuid_from_text("AAAAAAAAAAAAAAAAAAAAAQ") == ids.METADATA_TOPIC_ID


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAA"])
def test_text_of_another_length_is_no_id(text: str) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        ids.uuid_from_text(text)


def test_random_ids_are_version_4_and_never_begin_with_a_dash() -> None:
    rng = random.Random(7)
    made = [ids.random_uuid(rng) for _ in range(2_000)]
    assert len(set(made)) == len(made)
    assert all(value[6] >> 4 == 4 and value[8] >> 6 == 2 for value in made)
    assert not any(ids.uuid_to_text(value).startswith("-") for value in made)


def test_reserved_ids_are_never_drawn() -> None:
    assert ids.ZERO_UUID in ids.RESERVED_UUIDS and ids.LOST_DIR in ids.RESERVED_UUIDS


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-0", ("orders", 0)),
        ("my-topic-12", ("my-topic", 12)),
        ("orders", None),
        ("-3", None),
        ("orders-x", None),
        ("orders-1.0123456789abcdef0123456789abcdef-delete", None),
    ],
)
def test_partition_directories_are_told_from_others(name: str, expected: tuple[str, int] | None) -> None:
    assert ids.parse_partition_dir(name) == expected


def test_a_partition_prints_as_its_directory_is_called() -> None:
    assert str(ids.TopicPartition("orders", 3)) == "orders-3"
