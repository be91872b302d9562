"""Records as the console consumer prints them."""

import struct
import uuid

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.consumed_record import Consumed
from tidelog.cli.tools.message_formatters import deserializer, formatter

RECORD = Consumed("t", 2, 7, b"k", b"v", (("h", b"1"), ("n", None)), "CreateTime", 1000, 3)
ALL = {f"print.{name}": "true" for name in ("timestamp", "partition", "offset", "epoch", "headers", "key", "value")}


def test_only_the_value_is_printed_by_default():
    assert formatter("DefaultMessageFormatter", {})(RECORD) == b"v\n"


def test_the_columns_stand_in_kafkas_order():
    assert formatter("x.y.DefaultMessageFormatter", ALL)(RECORD) == (
        b"CreateTime:1000\tPartition:2\tOffset:7\tEpoch:3\th:1,n:null\tk\tv\n"
    )


def test_what_is_not_there_is_said():
    bare = Consumed("t", 0, 0, None, None)
    printed = formatter("DefaultMessageFormatter", ALL | {"null.literal": "NIL", "key.separator": "|"})(bare)
    assert printed == b"NO_TIMESTAMP|Partition:0|Offset:0|Epoch:NOT_PRESENT|NO_HEADERS|NIL|NIL\n"


def test_values_may_be_numbers():
    by_number = {"value.deserializer": "org.apache.kafka.common.serialization.LongDeserializer", "line.separator": ";"}
    printer = formatter("DefaultMessageFormatter", by_number)
    assert printer(RECORD._replace(value=struct.pack(">q", -5))) == b"-5;"
    with pytest.raises(ValueError, match="LongDeserializer is not 8: it is 1 bytes"):
        printer(RECORD)


def test_deserializers_go_by_their_class_names():
    assert deserializer("UUIDDeserializer")(str(uuid.UUID(int=1)).encode()) == str(uuid.UUID(int=1)).encode()
    assert deserializer("a.b.BooleanDeserializer")(b"\1") == b"true"
    with pytest.raises(CommandFailed, match="There is no deserializer Avro"):
        deserializer("Avro")


def test_unknown_formatters_and_properties_are_refused_with_what_there_is():
    with pytest.raises(CommandFailed, match="DefaultMessageFormatter"):
        formatter("bogus", {})
    with pytest.raises(CommandFailed, match=r"print\.kye"):
        formatter("DefaultMessageFormatter", {"print.kye": "true"})


def test_the_delivery_count_is_shown_where_a_share_group_delivered():
    printed = formatter("DefaultMessageFormatter", {"print.delivery": "true", "print.offset": "true"})
    record = Consumed("t", 0, 7, None, b"v")
    assert printed(record._replace(delivery_count=3)) == b"Offset:7\tDelivery:3\tv\n"
    assert printed(record) == b"Offset:7\tDelivery:NOT_PRESENT\tv\n"
