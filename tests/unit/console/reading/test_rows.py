from __future__ import annotations

import json

from tests.unit.console.reading.batches import batch, marker
from tidelog.console.access.rights import EVERYTHING, Access, Mask
from tidelog.console.filters.evaluation import compiled
from tidelog.console.reading.rows import Hidden, View, instant
from tidelog.console.reading.scanning import Scan, Seen
from tidelog.records.builder import RecordData, build_batch


def seen(value: bytes | None, *, key: bytes | None = b"k", headers: tuple[tuple[str | bytes, bytes | None], ...] = ()) -> Seen:
    data = build_batch([RecordData(key, value, 1000, headers)], base_offset=41)
    return next(iter(Scan(2, bytes(data), 41, 50, ())))


def test_a_record_as_the_browser_gets_it() -> None:
    row = View().row(seen(b'{"a":1}', headers=(("h", b"x"), ("n", None))))
    assert row is not None
    assert (row.partition, row.offset, row.timestamp) == (2, 41, 1000)
    line = row.line
    assert (line["offset"], line["timestamp_ms"], line["timestamp_type"]) == ("41", "1000", "create")
    assert line["value"]["decoder"] == "json"
    assert line["headers"] == [{"name": "h", "value": line["headers"][0]["value"]}, {"name": "n", "value": None}]
    assert line["batch"]["producer_id"] == "-1"
    assert (line["state"], line["size"]) == ("plain", 9)
    json.dumps(line)


def test_null_is_not_empty() -> None:
    row = View().row(seen(None, key=b""))
    assert row is not None
    assert row.line["value"] is None
    assert row.line["key"]["size"] == 0


def test_headers_without_utf8_stay_apart() -> None:
    row = View().row(seen(b"x", headers=((b"\xff".decode("utf-8", "surrogateescape"), b"1"),)))
    assert row is not None
    assert row.line["headers"][0]["name"] == "\udcff"


def test_control_and_aborted_records_are_shown_on_demand() -> None:
    (mark,) = Scan(0, marker(3, commit=True), 3, 9, ())
    assert View().row(mark) is None
    row = View(control=True).row(mark)
    assert row is not None
    assert (row.line["state"], row.line["control"], row.line["key"]["decoder"]) == ("control", "commit", "hex")
    of = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    (aborted,) = Scan(0, batch(0, "a", **of), 0, 9, ((7, 0),))
    assert View().row(aborted) is None
    assert View(aborted=True).row(aborted) is not None


def test_a_filter_takes_the_whole_payload_though_it_is_shown_cut() -> None:
    view = View(cut=3, test=compiled('value contains "END"', 0))
    row = view.row(seen(b"x" * 100 + b"END"))
    assert row is not None
    assert (row.line["value"]["text"], row.line["value"]["cut"]) == ("xxx", True)
    assert view.row(seen(b"x" * 100)) is None


def test_masks_hold_for_rows_and_for_filters() -> None:
    paths = (("value", "mail"), ("headers", "auth"), ("key",))
    hidden = Hidden.of(Access((EVERYTHING,), (Mask(("t",), paths),)), "c", "t")
    record = seen(b'{"mail":"a@b","n":1}', headers=(("auth", b"token"), ("x", b"y")))
    row = View(hidden=hidden).row(record)
    assert row is not None
    shown = json.dumps(row.line)
    assert "a@b" not in shown
    assert "token" not in shown
    assert row.line["key"] == {**row.line["key"], "masked": True, "text": ""}
    assert row.line["headers"][1]["value"]["text"] == "y"
    for guess in ('value.mail == "a@b"', '"a@b"', 'value contains "a@b"', 'key == "k"', 'header["auth"] == "token"'):
        assert View(hidden=hidden, test=compiled(guess, 0)).row(record) is None, guess
    assert View(hidden=hidden, test=compiled("value.n == 1", 0)).row(record) is not None


def test_times_beyond_the_calendar_are_none() -> None:
    assert instant(0) == "1970-01-01T00:00:00.000+00:00"
    assert instant(-1) is None
    assert instant(1 << 62) is None
