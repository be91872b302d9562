"""What is read from a classic member's own bytes; whole samples are taken from a broker in tests/node/test_why.py."""

from __future__ import annotations

from tidelog.console.collecting import subscribed
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


def test_a_classic_member_says_what_it_subscribes_to() -> None:
    version = ConsumerProtocolSubscription.MAX_VERSION
    body = ConsumerProtocolSubscription(topics=["a", "b"]).encode(version)
    assert subscribed(version.to_bytes(2, "big") + bytes(body)) == {"a", "b"}


def test_a_newer_version_is_read_as_the_newest_known_one() -> None:
    body = ConsumerProtocolSubscription(topics=["a"]).encode(ConsumerProtocolSubscription.MAX_VERSION)
    assert subscribed((99).to_bytes(2, "big") + bytes(body)) == {"a"}


def test_bytes_of_another_protocol_name_no_topic() -> None:
    assert subscribed(b"") == subscribed(b"\0") == subscribed(b"\0\1\xff\xff\xff\x7f") == frozenset()
