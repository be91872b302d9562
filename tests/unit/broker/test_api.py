from __future__ import annotations

from tidelog.broker.api import Api
from tidelog.broker.apis import API_TABLE, APIS
from tidelog.protocol.api_keys import API_FACTS, ApiKey


def test_what_is_told_is_what_is_served_unless_the_row_says_otherwise() -> None:
    assert Api(ApiKey.METADATA, (0, 13), lambda ctx, request: None).told == (0, 13)
    assert Api(ApiKey.PRODUCE, (3, 13), lambda ctx, request: None, advertised=(0, 13)).told == (0, 13)


def test_every_api_has_one_row_and_no_version_beyond_the_definition() -> None:
    assert len(APIS) == len(API_TABLE)
    for row in API_TABLE:
        facts = API_FACTS[row.key]
        first, last = row.versions
        assert facts.min_version <= first <= last <= facts.stable_max, row.key.name


def test_produce_is_advertised_from_version_zero_so_that_librdkafka_compresses() -> None:
    assert APIS[ApiKey.PRODUCE].told == (0, 13)
    assert [row.key.name for row in API_TABLE if row.advertised is not None] == ["PRODUCE"]


def test_every_handler_says_who_sends_it_and_what_it_may_answer() -> None:
    assert [row.key.name for row in API_TABLE if not (row.handler.__doc__ or "").strip()] == []
