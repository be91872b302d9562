"""Which texts of a pipeline Spark's parser gets, and what is made of its words."""

from __future__ import annotations

import pytest

from tests.unit.pipeline.samples import RIDES
from tidelog.model.errors import ConfigError
from tidelog.pipeline.sql_check import Kind, check, sentence, texts_of
from tidelog.pipeline.yaml_text import parse

SAID = """
[PARSE_SYNTAX_ERROR] Syntax error at or near 'WHER': extra input 'WHER'. SQLSTATE: 42601 (line 2, pos 7)

== SQL ==
SELECT id
FROM b WHER
-------^^^
"""


def test_queries_rules_and_schemas_are_parsed() -> None:
    found = [(".".join(text.path), text.kind, text.text) for text in texts_of(parse(RIDES, "f", {}))]
    assert found == [
        ("transforms.silver.sql", Kind.QUERY, "SELECT id, fare FROM rides"),
        ("transforms.silver.expect.positive.check", Kind.RULE, "fare >= 0"),
        ("sources.rides.value.schema", Kind.SCHEMA, "id string not null, fare double"),
    ]


def test_a_json_schema_and_a_tree_of_another_shape_are_left_alone() -> None:
    text = "transforms: [1]\nsources: {a: {value: {format: json, schema: '{}'}, key: text}, b: 1}\n"
    assert list(texts_of(parse(text, "f", {}))) == []


def test_each_mistake_is_noted_with_its_line() -> None:
    document = parse(RIDES, "f", {})
    check(document, lambda kind, text: "wrong" if kind is not Kind.SCHEMA else "")
    with pytest.raises(ConfigError) as caught:
        document.problems.check()
    assert str(caught.value).splitlines() == [
        "f, line 11: transforms.silver.sql: wrong",
        "f, line 13: transforms.silver.expect.positive.check: wrong",
    ]


def test_the_parsers_words_become_a_sentence() -> None:
    assert sentence(SAID) == "Syntax error at or near 'WHER': extra input 'WHER'. (line 2, pos 7): FROM b WHER"
    assert sentence("something else") == "something else"
