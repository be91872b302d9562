"""Spark's own parser finds mistakes in SQL, rules and schemas without a session."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tidelog.pipeline.sql_check import Kind, spark_parser


def test_sparks_parser_names_the_place_and_says_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    with spark_parser() as parse:
        assert parse(Kind.QUERY, "SELECT a, window.start FROM b GROUP BY window(at, '1 minute'), a") == ""
        assert parse(Kind.QUERY, "SELECT a FROM b WHER") == ""  # an alias
        assert "near 'WHER'" in parse(Kind.QUERY, "SELECT a, FROM b WHER")
        assert "near ')'" in parse(Kind.RULE, "fare > 0 )")
        assert parse(Kind.RULE, "fare > 0") == ""
        assert 'Unsupported data type "DOUBL"' in parse(Kind.SCHEMA, "id string not null, fare doubl")
        assert parse(Kind.SCHEMA, "id string not null, fare double") == ""
    assert capfd.readouterr() == ("", "")
