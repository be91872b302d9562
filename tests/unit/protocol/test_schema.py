"""The text of definitions, and the names it leads to."""

from __future__ import annotations

import pytest

from tests.unit.protocol.random_messages import all_messages
from tidelog.protocol.schema import FOREVER, NEVER, Field, intersect, parse, parse_versions, snake_case

TEXT = """
# a remark
request ThingRequest key=7 versions=1-3 flexible=2+ listeners=broker,controller latest-unstable
  Name string 1+ null=2+ default=null ignorable
  Parts []Part 1+
    Sizes []int32 2+ tag=0@2+
  Shared Shared 3+
  struct Shared
    Id uuid 3+
"""


def test_a_definition_is_read_with_all_it_says() -> None:
    (message,) = parse(TEXT)
    assert (message.kind, message.name, message.key, message.module) == ("request", "ThingRequest", 7, "thing")
    assert (message.versions, message.flexible, message.latest_unstable) == ((1, 3), (2, FOREVER), True)
    assert message.listeners == ("broker", "controller")
    name, parts, shared = message.fields
    assert name == Field("Name", "string", (1, FOREVER), nullable=(2, FOREVER), default="null", ignorable=True)
    assert (parts.is_array, parts.is_struct, parts.element) == (True, True, "Part")
    assert message.structs["Part"] == (Field("Sizes", "[]int32", (2, FOREVER), tagged=(2, FOREVER), tag=0),)
    assert shared.is_struct and message.structs["Shared"][0].type == "uuid"


def test_a_line_indented_too_far_is_named() -> None:
    with pytest.raises(ValueError, match="line 2 is indented"):
        parse("data X versions=0 flexible=0+\n    Y int8 0+")


@pytest.mark.parametrize(("text", "versions"), [("3", (3, 3)), ("3+", (3, FOREVER)), ("3-13", (3, 13)), ("none", NEVER)])
def test_version_ranges(text: str, versions: tuple[int, int]) -> None:
    assert parse_versions(text) == versions


def test_ranges_that_do_not_meet_are_empty() -> None:
    low, high = intersect((0, 2), (3, 5))
    assert low > high


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("TopicData", "topic_data"),
        ("KRaftVersionFeature", "kraft_version_feature"),
        ("MaxWaitMs", "max_wait_ms"),
        ("Isr", "isr"),
        ("topicId", "topic_id"),
    ],
)
def test_names_become_snake_case(name: str, snake: str) -> None:
    assert snake_case(name) == snake


def test_the_definitions_are_all_of_kafka() -> None:
    messages = all_messages()
    kinds: dict[str, int] = {}
    for message in messages:
        kinds[message.kind] = kinds.get(message.kind, 0) + 1
    assert kinds == {"request": 91, "response": 91, "header": 2, "metadata": 31, "key": 25, "value": 25, "data": 13}
    assert len({m.name for m in messages}) == len(messages)


def test_structures_that_a_field_names_exist() -> None:
    for message in all_messages():
        for fields in (message.fields, *message.structs.values()):
            for field in fields:
                assert not field.is_struct or field.element in message.structs
