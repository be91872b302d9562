from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tidelog.console.web.audit import Audit, to_file


def test_an_event_is_one_line_whatever_it_names(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = Audit(lambda: 0, to_file(str(path)))
    audit.add("read", user="a\nb", address="::1", outcome="done", topic="\u2028", filter=None, records=3)
    audit.add("login", user=None, address="::1", outcome="refused")
    first, second = path.read_text().splitlines()
    assert json.loads(first) == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "action": "read",
        "user": "a\nb",
        "address": "::1",
        "outcome": "done",
        "topic": "\u2028",
        "records": 3,
    }
    assert json.loads(second)["user"] is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_line_that_cannot_be_written_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    audit = Audit(lambda: 0, to_file("/dev/full"))
    audit.add("change", user="ann", address="::1", outcome="done")
    assert "No space left" in caplog.text
    assert '"user":"ann"' in caplog.text
