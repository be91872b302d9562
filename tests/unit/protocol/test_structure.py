"""What all generated classes do alike: defaults, equality, versions, errors."""

from __future__ import annotations

import re

import pytest

from tests.unit.protocol.random_messages import all_messages
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from tidelog.protocol.messages.api_versions import ApiVersionsRequest
from tidelog.protocol.messages.consumer_group_heartbeat import Assignment, ConsumerGroupHeartbeatResponse
from tidelog.protocol.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.fetch import FetchRequest, ReplicaState
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord
from tidelog.protocol.messages.produce import ProduceRequest
from tidelog.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tidelog.protocol.messages.topic_record import TopicRecord


def test_defaults_are_fresh_for_each_instance() -> None:
    first, second = MetadataRequest(), MetadataRequest()
    assert first.topics == [] and first.topics is not second.topics
    assert FetchRequest().replica_state == ReplicaState()
    assert FetchRequest().replica_state is not FetchRequest().replica_state
    assert ProduceRequest().transactional_id is None
    assert CreateTopicsRequest().timeout_ms == 60000


def test_equality_repr_and_copies_go_by_fields() -> None:
    record = TopicRecord(name="orders", topic_id=b"i" * 16)
    assert record == TopicRecord("orders", b"i" * 16)
    assert record != TopicRecord("orders")
    assert record != "orders"
    assert repr(record) == f"TopicRecord(name='orders', topic_id={b'i' * 16!r})"
    assert record.replace(name="bills") == TopicRecord("bills", b"i" * 16)
    with pytest.raises(TypeError):
        hash(record)


def test_secrets_are_absent_from_repr_at_any_depth() -> None:
    request = AlterUserScramCredentialsRequest(upsertions=[ScramCredentialUpsertion("alice", 1, 4096, b"salt", b"canary-salted")])
    assert "canary" not in repr(request)
    assert "salted_password=[hidden]" in repr(request)
    assert "alice" in repr(request)
    assert "canary" not in repr(SaslAuthenticateRequest(b"\0alice\0canary"))
    assert SaslAuthenticateRequest(b"one") != SaslAuthenticateRequest(b"two")


def test_every_field_whose_name_says_so_is_secret() -> None:
    """What a new Kafka adds is not forgotten."""
    words = re.compile("hmac|password|authbytes|storedkey|serverkey|secret", re.IGNORECASE)
    found = {
        f"{message.name}.{field.name}"
        for message in all_messages()
        for fields in (message.fields, *message.structs.values())
        for field in fields
        if words.search(field.name) and not field.secret
    }
    assert found == set()


def test_fields_that_do_not_exist_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        TopicRecord().nmae = "typo"  # type: ignore[attr-defined]


def test_null_and_empty_arrays_differ() -> None:
    assert MetadataRequest(topics=None).encode(1)[:4] == b"\xff\xff\xff\xff"
    assert MetadataRequest(topics=[]).encode(1)[:4] == b"\0\0\0\0"
    assert MetadataRequest.decode(b"\0\0\0\0", 0).topics == []
    with pytest.raises(ValueError, match=r"topics is null.*version 0"):
        MetadataRequest(topics=None).encode(0)
    with pytest.raises(ProtocolViolation, match="null"):
        MetadataRequest.decode(b"\xff\xff\xff\xff", 0)


def test_a_field_the_version_lacks_is_refused_or_dropped_as_the_schema_says() -> None:
    with pytest.raises(ValueError, match=r"include_topic_authorized_operations.*version 7"):
        MetadataRequest(include_topic_authorized_operations=True).encode(7)
    topic = MetadataRequestTopic(name="t", topic_id=b"i" * 16)
    assert MetadataRequest([topic]).encode(9) == MetadataRequest([MetadataRequestTopic(name="t")]).encode(9), "an ignorable id"


def test_versions_are_checked_outside() -> None:
    with pytest.raises(ValueError, match="no version 14"):
        MetadataRequest().encode(14)
    with pytest.raises(ProtocolViolation, match="no version 14"):
        MetadataRequest.decode(b"", 14)


def test_the_whole_buffer_must_be_the_message() -> None:
    data = MetadataRequest().encode(12)
    with pytest.raises(ProtocolViolation, match="ends at byte"):
        MetadataRequest.decode(data + b"\0", 12)
    with pytest.raises(ProtocolViolation, match="cut off"):
        MetadataRequest.decode(data[:-1], 12)
    assert MetadataRequest.decode_from(b"xx" + data + b"yy", 2, 12) == (MetadataRequest(), 2 + len(data))


def test_values_that_do_not_fit_are_a_value_error() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        CreateTopicsRequest(timeout_ms=2**31).encode(7)
    with pytest.raises(ValueError, match="does not fit"):
        CreateTopicsRequest(topics=[CreatableTopic(name="x" * 32768)]).encode(4)
    with pytest.raises(ValueError, match="16 bytes"):
        TopicRecord(name="t", topic_id=b"").encode(0)


def test_a_nullable_structure_has_one_byte_before_it() -> None:
    assert ConsumerGroupHeartbeatResponse(assignment=None).encode(0)[-2:] == b"\xff\x00"
    with_empty = ConsumerGroupHeartbeatResponse(assignment=Assignment())
    assert with_empty.encode(0)[-4:] == b"\x01\x01\x00\x00"
    assert ConsumerGroupHeartbeatResponse.decode(with_empty.encode(0), 0) == with_empty


def test_a_tagged_nullable_structure_without_a_null_default_writes_null_out() -> None:
    empty, null = ConsumerGroupMemberMetadataValue(), ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    assert empty.classic_member_metadata == ClassicMemberMetadata()
    assert empty.encode(0)[-1:] == b"\x00", "no tag at all"
    assert null.encode(0)[-4:] == b"\x01\x00\x01\x00", "one tag, number 0, one byte, 0 for null"
    assert ConsumerGroupMemberMetadataValue.decode(null.encode(0), 0) == null


def test_tags_are_written_in_ascending_order_and_only_when_set() -> None:
    assert PartitionChangeRecord(partition_id=1, topic_id=b"i" * 16).encode(0)[20:] == b"\x00"
    record = PartitionChangeRecord(partition_id=1, topic_id=b"i" * 16, isr=[5], leader=7, replicas=[5])
    tags = record.encode(0)[20:]
    assert tags == b"\x03" + b"\x00\x05\x02\0\0\0\x05" + b"\x01\x04\0\0\0\x07" + b"\x02\x05\x02\0\0\0\x05"


def test_unknown_tags_are_skipped_in_any_order() -> None:
    data = ApiVersionsRequest(client_software_name="n", client_software_version="v").encode(3)
    assert data[-1] == 0
    with_tags = data[:-1] + b"\x02\x63\x03abc\x05\x00"
    assert ApiVersionsRequest.decode(with_tags, 3) == ApiVersionsRequest.decode(data, 3)


def test_a_tag_whose_value_does_not_fill_its_size_is_a_violation() -> None:
    data = PartitionChangeRecord(leader=7).encode(0)
    assert data[20:] == b"\x01\x01\x04\0\0\0\x07"
    with pytest.raises(ProtocolViolation, match="tag 1"):
        PartitionChangeRecord.decode(data[:20] + b"\x01\x01\x05\0\0\0\x07\x00", 0)


def test_text_that_is_not_utf8_is_a_violation() -> None:
    data = TopicRecord(name="name", topic_id=b"i" * 16).encode(0).replace(b"name", b"n\xffme")
    with pytest.raises(ProtocolViolation, match="TopicRecord version 0 has a string that is not UTF-8"):
        TopicRecord.decode(data, 0)


def test_a_request_is_read_though_bytes_follow_it_and_a_file_is_not() -> None:
    # librdkafka 2.16 sends three bytes behind a Metadata request for all topics; Kafka leaves them alone.
    body = MetadataRequest(topics=None).encode(13) + b"\0\0\0"
    assert MetadataRequest.read(b"head" + body, 4, 13) == MetadataRequest(topics=None)
    with pytest.raises(ProtocolViolation, match="ends at byte"):
        MetadataRequest.decode(body, 13)
