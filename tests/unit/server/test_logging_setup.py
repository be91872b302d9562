"""Lines on standard error."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from tidelog.model.errors import ConfigError
from tidelog.server.logging_setup import parse_levels, set_up


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers
    logging.getLogger("test.quiet").setLevel(logging.NOTSET)


def test_a_text_line_has_time_level_logger_and_message() -> None:
    stream = io.StringIO()
    set_up("info", "text", stream)
    record = logging.LogRecord("test.some", logging.INFO, "f", 1, "hello %s", ("you",), None)
    record.created, record.msecs = 1_795_260_000.25, 250
    logging.getLogger("test.some").handle(record)
    assert stream.getvalue() == "2026-11-21 11:20:00,250 INFO test.some: hello you\n"


def test_a_json_line_is_one_object_with_the_trace_of_an_exception() -> None:
    stream = io.StringIO()
    set_up("info", "json", stream)
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("test.some").exception("it failed: ü")
    (line,) = stream.getvalue().splitlines()
    entry = json.loads(line)
    assert (entry["level"], entry["logger"], entry["message"]) == ("ERROR", "test.some", "it failed: ü")
    assert entry["exception"].endswith("ValueError: two\nlines")
    assert entry["time"].endswith("Z")


FORGED = "x\n2026-11-21 11:20:00,250 INFO test.some: alice logged in\x1b[2J\x9b1A\u2028"


def test_a_name_that_a_client_chose_begins_no_line_and_controls_no_terminal() -> None:
    stream = io.StringIO()
    set_up("info", "text", stream)
    logging.getLogger("test.some").warning("client %s asked", FORGED)
    (line,) = stream.getvalue().split("\n")[:-1]
    assert line.isprintable()
    assert line.endswith(r"client x\n2026-11-21 11:20:00,250 INFO test.some: alice logged in\x1b[2J\x9b1A\u2028 asked")


def test_the_lines_of_a_traceback_are_indented_and_printable() -> None:
    stream = io.StringIO()
    set_up("info", "text", stream)
    try:
        raise ValueError(FORGED)
    except ValueError:
        logging.getLogger("test.some").exception("it failed")
    first, *others = stream.getvalue().split("\n")[:-1]
    assert first.endswith("ERROR test.some: it failed")
    assert others[0] == "  Traceback (most recent call last):"
    assert others[-1].startswith("  2026-11-21 11:20:00,250 INFO")
    assert all(line.startswith("  ") and line.isprintable() for line in others)


def test_a_stack_is_logged_like_a_traceback() -> None:
    stream = io.StringIO()
    set_up("info", "text", stream)
    logging.getLogger("test.some").warning("client %s is slow", FORGED, stack_info=True)
    first, *others = stream.getvalue().split("\n")[:-1]
    assert first.endswith(" is slow")
    assert others[0] == "  Stack (most recent call last):"
    assert any("test_a_stack_is_logged_like_a_traceback" in line for line in others)
    assert all(line.startswith("  ") and line.isprintable() for line in others)
    set_up("info", "json", stream := io.StringIO())
    logging.getLogger("test.some").warning("slow", stack_info=True)
    (line,) = stream.getvalue().split("\n")[:-1]
    assert json.loads(line)["stack"].startswith("Stack (most recent call last):\n")


def test_line_breaks_of_the_code_itself_begin_indented_lines() -> None:
    """As in asyncio's messages about a callback that failed."""
    stream = io.StringIO()
    set_up("info", "text", stream)
    logging.getLogger("test.some").error("Exception in callback f()\nhandle: <Handle f()>\x1b[2J\n2026-11-21 11:20:00 forged")
    assert stream.getvalue().split("\n")[1:-1] == [r"  handle: <Handle f()>\x1b[2J", "  2026-11-21 11:20:00 forged"]
    assert "Exception in callback f()\n" in stream.getvalue()
    stream.truncate(0)
    logging.getLogger("test.some").error("first\nsecond %s", FORGED)
    assert stream.getvalue().count("\n") == 1


def test_json_has_no_character_that_controls_a_terminal() -> None:
    stream = io.StringIO()
    set_up("info", "json", stream)
    logging.getLogger("test.some").warning("client %s asked", FORGED + "\ue000\U000e0041ü")
    (line,) = stream.getvalue().split("\n")[:-1]
    assert line.isprintable() and "ü" in line
    assert json.loads(line)["message"] == f"client {FORGED}\ue000\U000e0041ü asked"


def test_levels_are_one_for_all_and_others_for_single_loggers() -> None:
    stream = io.StringIO()
    set_up("warning,test.quiet=error", "text", stream)
    logging.getLogger("test.some").info("no")
    logging.getLogger("test.some").warning("yes")
    logging.getLogger("test.quiet.child").warning("no")
    logging.getLogger("test.quiet.child").error("yes")
    assert [line.rpartition(" ")[2] for line in stream.getvalue().splitlines()] == ["yes", "yes"]


def test_setting_up_again_replaces_the_first_time() -> None:
    first, second = io.StringIO(), io.StringIO()
    set_up("info", "text", first)
    set_up("info", "json", second)
    logging.getLogger("test.some").info("once")
    assert first.getvalue() == ""
    assert len(second.getvalue().splitlines()) == 1


def test_levels_that_cannot_be_read_are_refused() -> None:
    assert parse_levels(" DEBUG , a.b = warning ") == {"": logging.DEBUG, "a.b": logging.WARNING}
    assert parse_levels("") == {"": logging.INFO}
    for text in ("loud", "a=loud", "=info", "info;debug"):
        with pytest.raises(ConfigError, match=r"tidelog\.log\.level holds"):
            parse_levels(text)
