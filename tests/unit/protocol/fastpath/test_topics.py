"""How Produce and Fetch name a topic."""

from __future__ import annotations

import pytest

from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.protocol.fastpath.topics import read_topic, write_node_endpoints, write_topic
from tidelog.protocol.messages.fetch import FetchResponse, NodeEndpoint

ID = Uuid(b"i" * 16)


@pytest.mark.parametrize(("version", "flexible"), [(4, False), (12, True)])
def test_old_versions_have_the_name(version: int, flexible: bool) -> None:
    out = bytearray()
    write_topic(out, version, "orders", ID, flexible)
    assert read_topic(out, 0, version, flexible) == ("orders", ZERO_UUID, len(out))


def test_new_versions_have_the_id() -> None:
    out = bytearray()
    write_topic(out, 13, "orders", ID, True)
    assert out == ID
    assert read_topic(out, 0, 13, True) == (None, ID, 16)
    with pytest.raises(IndexError):
        read_topic(out[:15], 0, 13, True)


def test_a_name_is_needed_where_the_version_has_one() -> None:
    with pytest.raises(AssertionError, match="name the topic"):
        write_topic(bytearray(), 12, None, ID, True)
    with pytest.raises(AssertionError, match="16 bytes"):
        write_topic(bytearray(), 13, "orders", Uuid(b""), True)


def test_node_endpoints_are_the_tag_section_of_the_generated_response() -> None:
    for endpoints in ([], [(1, "localhost", 9092, None)], [(i, "h" * 100, i, "rack") for i in range(9)]):
        out = bytearray()
        write_node_endpoints(out, endpoints)
        plain = FetchResponse(node_endpoints=[NodeEndpoint(*endpoint) for endpoint in endpoints]).encode(16)
        assert plain.endswith(out)
        assert len(plain) == len(FetchResponse().encode(16)) - 1 + len(out)
