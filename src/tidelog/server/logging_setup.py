"""Logs to standard error: text, or one JSON object per line, with a level per logger.

Messages hold names that clients choose. A line break or a terminal's control sequence in one is written as an escape. Only a
message without arguments has further lines, as asyncio's have, and like those of a traceback or a stack they are indented: no
client can forge a line.

Levels are given as a default and exceptions for single loggers: ``info,tidelog.storage=debug``.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Final, TextIO

from tidelog.model.errors import ConfigError
from tidelog.model.printable import printable

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_OPTION: Final = "tidelog.log.level"


class TextFormatter(logging.Formatter):
    """``2026-11-21 12:37:31,123 INFO tidelog.server.node: message``, in UTC."""

    def __init__(self, node_id: int | None = None) -> None:
        """``node_id``: of one among several processes that write the same log; each line then has it behind the level."""
        node = "" if node_id is None else f"[node {node_id}] "
        super().__init__(f"%(asctime)s %(levelname)s {node}%(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return f"{time.strftime(datefmt or '%Y-%m-%d %H:%M:%S', time.gmtime(record.created))},{int(record.msecs):03d}"

    def format(self, record: logging.LogRecord) -> str:
        # Not that of the base class, which takes the text of an exception from whichever handler made it first.
        message = record.getMessage()
        # With arguments, the line breaks may be those of a client's name.
        record.message, *others = [message] if record.args else message.split("\n")
        record.asctime = self.formatTime(record)
        if record.exc_info:
            others += self.formatException(record.exc_info).split("\n")
        if record.stack_info:
            others += self.formatStack(record.stack_info).split("\n")
        return "\n".join([printable(self.formatMessage(record)), *(f"  {printable(line)}" for line in others)])


class JsonFormatter(logging.Formatter):
    """One object per line: time (UTC, ISO 8601), level, logger, message, and the traceback of an exception or the stack."""

    def __init__(self, node_id: int | None = None) -> None:
        """``node_id``: as for text; the value of ``node``."""
        super().__init__()
        self._node = {} if node_id is None else {"node": node_id}

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            **self._node,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            entry["stack"] = self.formatStack(record.stack_info)
        import json  # only nodes that log JSON need it

        text = json.dumps(entry, ensure_ascii=False)
        # JSON escapes line breaks; some terminals obey characters that it leaves.
        return text if text.isprintable() else "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def parse_levels(text: str) -> dict[str, int]:
    """Levels by logger, the default under the empty name. ConfigError names an invalid item."""
    levels = {"": logging.INFO}
    for item in filter(None, (part.strip() for part in text.split(","))):
        logger, equals, level = item.rpartition("=")
        if level.strip().lower() not in LEVELS or (equals and not logger.strip()):
            raise ConfigError(f"{_OPTION} holds {item!r}, but must hold a level ({', '.join(LEVELS)}) or logger=level.")
        levels[logger.strip()] = LEVELS[level.strip().lower()]
    return levels


def set_up(levels: str = "info", form: str = "text", stream: TextIO | None = None, node_id: int | None = None) -> None:
    """Sends all logs to ``stream`` (standard error) in this format, at these levels. ``node_id``: see ``TextFormatter``. May be
    called again."""
    parsed = parse_levels(levels)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(node_id) if form == "json" else TextFormatter(node_id))
    root = logging.getLogger()
    for old in root.handlers[:]:
        if isinstance(old.formatter, TextFormatter | JsonFormatter):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(parsed.pop(""))
    for name, level in parsed.items():
        logging.getLogger(name).setLevel(level)
