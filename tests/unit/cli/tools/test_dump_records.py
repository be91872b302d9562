from __future__ import annotations

from pathlib import Path

from tidelog.cli.tools.dump_records import DECODER_CLASSES, OFFSETS, by_class, cluster_metadata, control, utf8
from tidelog.metadata.records import encode_record
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.records.batch import iter_headers
from tidelog.records.record import Record, iter_records

GOLDEN = Path(__file__).parents[3] / "golden"


def test_text_is_utf8_and_what_is_not_is_replaced() -> None:
    text = by_class(utf8, utf8)
    assert text("Süd".encode(), b"\xff") == ("Süd", "\ufffd")
    assert text(None, b"") == (None, "")


def test_keys_and_values_are_numbers_where_that_is_asked_for() -> None:
    numbers = by_class(DECODER_CLASSES["IntegerDecoder"], DECODER_CLASSES["LongDecoder"])
    assert numbers(b"\xff\xff\xff\xfe", (2**40).to_bytes(8, "big")) == ("-2", str(2**40))
    assert numbers(None, b"\x01") == (None, "(not 8 bytes: 01)")
    assert DECODER_CLASSES["DefaultDecoder"](b"\x00\xff") == "00ff"


def test_a_metadata_record_is_its_type_version_and_fields() -> None:
    value = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=30), 30)
    expected = '{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":30}}'
    assert cluster_metadata(None, value) == (None, expected)
    assert "skipping" in str(cluster_metadata(None, b"\x01\x7f\x00")[1])
    assert "skipping" in str(cluster_metadata(None, None)[1])


def group_records() -> list[Record]:
    data = memoryview((GOLDEN / "groups" / "__consumer_offsets-1.log").read_bytes())
    return [record for header in iter_headers(data) for record in iter_records(data, header)]


def test_group_records_are_shown_down_to_what_consumers_keep_in_them() -> None:
    shown = [OFFSETS(record.key, record.value) for record in group_records()]
    groups = [payload for key, payload in shown if key == '{"type":"2","data":{"group":"gclassic"}}']
    assert any(payload and '"subscription":{"topics":["tp"],"userData":null' in payload for payload in groups)
    assert any(key and key.startswith('{"type":"1"') for key, _ in shown)


def test_what_a_coordinator_wrote_and_we_do_not_know_is_called_unknown() -> None:
    assert OFFSETS(None, b"x") == ("unknown", "unknown")
    assert OFFSETS(b"\x00\x63", b"x") == ("unknown::99", "unknown")
    assert OFFSETS(b"\x00\x01\xff", None)[1] == "unreadable"


def test_a_deletion_is_shown_as_such() -> None:
    record = next(record for record in group_records() if record.key)
    assert OFFSETS(record.key, None)[1] == "<DELETE>"


def test_control_records_are_named() -> None:
    data = memoryview((GOLDEN / "batches" / "voters.checkpoint").read_bytes())
    shown = [control(r) for h in iter_headers(data) if h.is_control for r in iter_records(data, h)]
    assert [line.split(" ")[0] for line in shown] == ["SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter"]
    assert '"voterId":' in shown[2]
    assert control(Record(0, 0, b"\0\0\0\x63", b"", ())).startswith("controlType: UNKNOWN")
